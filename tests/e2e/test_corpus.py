"""Real mail goes in, and comes out as it was: every byte, and every structure that IMAP wants to know.

The corpus has what real mail has: 8-bit headers, broken MIME, CRs that end no line, a message without a last newline.
"""

import collections
import email
import email.policy
import hashlib
import random
import unittest

import support
from support import Case, Server, add_user, all_messages, corpus, crlf, fetch, tool, write_maildir, write_mbox

# Spot checks of sections need a request each.
SAMPLE = 400


def digest(raw):
    return hashlib.sha256(raw).hexdigest()


class Corpus(Case):
    @classmethod
    def setUpClass(cls):
        cls.messages = corpus()

    def setUp(self):
        super().setUp()
        add_user(self.data)

    def imported(self):
        maildir = self.folder / "Maildir"
        write_maildir(maildir, self.messages)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", maildir)
        server = Server(self.data).start()
        self.addCleanup(server.kill)
        return server

    def test_maildir(self):
        server = self.imported()
        imap = server.connect()
        with self.subTest("bytes"):
            found = all_messages(imap, "INBOX", "(UID RFC822.SIZE INTERNALDATE BODY.PEEK[])")
            self.assertEqual(len(found), len(self.messages))
            wanted = collections.Counter(digest(crlf(raw)) for _, raw in self.messages)
            got = collections.Counter(digest(values["BODY[]"]) for values in found)
            names = {digest(crlf(raw)): name for name, raw in self.messages}
            self.assertEqual([names[key] for key in wanted - got], [], "messages that did not come back byte by byte")
            for values in found:
                self.assertEqual(values["RFC822.SIZE"], len(values["BODY[]"]))
            uids = [values["UID"] for values in found]
            self.assertEqual(uids, sorted(set(uids)))
        with self.subTest("structures"):
            self.check_structures(imap, found)
        with self.subTest("sections"):
            self.check_sections(imap, found)
        imap.logout()
        server.stop()

    def test_mbox(self):
        """The order of an mbox is kept, its quoting undone."""
        mbox = self.folder / "mbox"
        write_mbox(mbox, self.messages)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "From an mbox", mbox)
        with Server(self.data) as server:
            imap = server.connect()
            found = all_messages(imap, "From an mbox", "(INTERNALDATE BODY.PEEK[])")
            self.assertEqual(len(found), len(self.messages))
            for number, (values, (name, raw)) in enumerate(zip(found, self.messages)):
                # The file ends every message's last line.
                wanted = crlf(raw if raw.endswith(b"\n") else raw + b"\n")
                self.assertTrue(values["BODY[]"] == wanted, f"{name} came back changed")
                date = email.utils.parsedate_to_datetime(values["INTERNALDATE"].decode().strip())
                self.assertEqual(date.timestamp(), 1_000_000_000 + number, name)
            imap.logout()

    def check_structures(self, imap, found):
        """Every ENVELOPE and BODYSTRUCTURE is answered, well formed, and adds up."""
        answers = fetch(imap, "1:*", "(UID RFC822.SIZE ENVELOPE BODYSTRUCTURE BODY)")
        self.assertEqual(len(answers), len(found))
        for number, values in answers.items():
            raw = found[number - 1]["BODY[]"]
            self.check_envelope(values["ENVELOPE"], raw)
            leaves = list(self.leaves(values["BODYSTRUCTURE"]))
            octets = sum(size for _, size in leaves)
            self.assertLessEqual(octets, len(raw), f"message {number}")
            short = [path for path, _ in self.leaves(values["BODY"])]
            self.assertEqual(short, [path for path, _ in leaves], "BODY and BODYSTRUCTURE differ in their parts")

    def check_envelope(self, envelope, raw):
        self.assertEqual(len(envelope), 10, envelope)
        for addresses in envelope[2:8]:
            self.assertTrue(addresses is None or addresses, "an empty list is NIL")
            for address in addresses or []:
                self.assertEqual(len(address), 4, address)
        parsed = email.message_from_bytes(raw, policy=email.policy.compat32)
        ids = parsed.get_all("Message-ID") or []
        if len(ids) == 1 and str(ids[0]).isascii() and "\n" not in str(ids[0]):
            self.assertEqual((envelope[9] or b"").strip(), str(ids[0]).encode().strip())

    def leaves(self, body, path=""):
        """(part number, octets) of every leaf; checks the shape on the way."""
        self.assertIsInstance(body, list)
        if isinstance(body[0], list):
            parts = [part for part in body if isinstance(part, list) and part and isinstance(part[0], (list, bytes))]
            count = 0
            while count < len(body) and isinstance(body[count], list):
                count += 1
            self.assertIsInstance(body[count], bytes, "the subtype follows the parts")
            for number, part in enumerate(parts[:count], 1):
                yield from self.leaves(part, f"{path}.{number}" if path else str(number))
            return
        kind, subtype, parameters, _, _, encoding, octets = body[:7]
        self.assertIsInstance(kind, bytes)
        self.assertIsInstance(subtype, bytes)
        self.assertIsInstance(encoding, bytes)
        self.assertIsInstance(octets, int)
        self.assertTrue(parameters is None or len(parameters) % 2 == 0, parameters)
        if kind.lower() == b"text":
            self.assertIsInstance(body[7], int, "text parts count their lines")
        if (kind.lower(), subtype.lower()) == (b"message", b"rfc822"):
            self.assertEqual(len(body[7]), 10, "message parts have an envelope")
            self.assertIsInstance(body[9], int)
        yield path or "1", octets

    def check_sections(self, imap, found):
        """Sections against the whole message, and against Python's idea of it where the message is well formed."""
        chosen = random.Random(1).sample(range(1, len(found) + 1), min(SAMPLE, len(found)))
        compared = 0
        for number in chosen:
            raw = found[number - 1]["BODY[]"]
            items = "(BODY.PEEK[HEADER] BODY.PEEK[TEXT] BODY.PEEK[HEADER.FIELDS (SUBJECT FROM)]"
            items += " BODY.PEEK[]<7.50> BODY.PEEK[TEXT]<10.20> BODYSTRUCTURE)"
            values = fetch(imap, str(number), items)[number]
            header, text = values["BODY[HEADER]"], values["BODY[TEXT]"] or b""
            self.assertEqual(header + text, raw, f"message {number}: HEADER and TEXT are not the message")
            self.assertEqual(values["BODY[]<7>"], raw[7:57])
            self.assertEqual(values["BODY[TEXT]<10>"] or b"", text[10:30])
            fields = values["BODY[HEADER.FIELDS (SUBJECT FROM)]"]
            self.assertTrue(fields.endswith(b"\r\n"), "the empty line that ends a header is part of it")
            for line in fields.split(b"\r\n"):
                self.assertTrue(not line or line[:1] in b" \t" or line.lower().startswith((b"subject:", b"from:")), line)
            leaves = dict(self.leaves(values["BODYSTRUCTURE"]))
            asked = " ".join(f"BODY.PEEK[{path}]" for path in leaves)
            parts = fetch(imap, str(number), f"({asked})")[number]
            for path, octets in leaves.items():
                self.assertEqual(len(parts[f"BODY[{path}]"] or b""), octets, f"message {number} part {path}")
            compared += self.compare_with_python(raw, parts)
        self.assertGreater(compared, SAMPLE // 4, "hardly any message could be compared with Python's reading")

    def compare_with_python(self, raw, parts):
        # One character a byte: of text in a charset Python would give the decoded form.
        parsed = email.message_from_string(raw.decode("latin-1"), policy=email.policy.compat32)
        walked = list(parsed.walk())
        if any(part.defects for part in walked) or any(part.get_content_maintype() == "message" for part in walked):
            return 0
        leaves = [part for part in walked if not part.is_multipart()]
        if len(leaves) != len(parts):
            return 0
        for part, (path, body) in zip(leaves, parts.items()):
            payload = part.get_payload().encode("latin-1")
            self.assertEqual(body or b"", payload, f"part {path}")
        return 1


if __name__ == "__main__":
    unittest.main()
