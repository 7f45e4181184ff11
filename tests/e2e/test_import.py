"""mailyard import and export, and the other commands that look after an account."""

import collections
import datetime
import imaplib
import re
import shutil
import signal
import subprocess
import unittest

import support
from support import Case, Server, add_user, all_messages, corpus, crlf, flags_of, tool, write_maildir, write_mbox

SECOND = "bob"


def small_messages(count):
    return [(str(n), f"From: a@example.org\nSubject: number {n}\nMessage-ID: <{n}@example.org>\n\nText {n}.\n".encode())
            for n in range(count)]


class Import(Case):
    def setUp(self):
        super().setUp()
        add_user(self.data)

    def load(self, source, mailbox="INBOX", user=support.USER, check=True):
        _, out, err = tool(self.data, "import", "--user", user, "--mailbox", mailbox, source, check=check)
        return out + err

    def contents(self, mailbox="INBOX", user=support.USER):
        """(bytes, flags, date) of each message, counted."""
        with Server(self.data) as server:
            imap = server.connect(user)
            found = all_messages(imap, mailbox, "(UID FLAGS INTERNALDATE BODY.PEEK[])")
            imap.logout()
        return collections.Counter((values["BODY[]"], flags_of(values), values["INTERNALDATE"]) for values in found)

    def bodies(self, mailbox="INBOX"):
        return collections.Counter(raw for raw, _, _ in self.contents(mailbox).elements())

    def test_twice(self):
        """Run twice, nothing is imported twice; what is new since then is."""
        messages = small_messages(500)
        maildir, mbox = self.folder / "Maildir", self.folder / "mbox"
        write_maildir(maildir, messages[:300])
        write_mbox(mbox, messages[:300])
        for source, mailbox in ((maildir, "INBOX"), (mbox, "Mbox")):
            self.load(source, mailbox)
            self.assertRegex(self.load(source, mailbox), r"already there: +300\b")
            self.assertEqual(self.bodies(mailbox), collections.Counter(crlf(raw) for _, raw in messages[:300]))
        write_maildir(maildir, messages)
        write_mbox(mbox, messages)
        for source, mailbox in ((maildir, "INBOX"), (mbox, "Mbox")):
            self.load(source, mailbox)
            self.assertEqual(self.bodies(mailbox), collections.Counter(crlf(raw) for _, raw in messages))

    def test_killed(self):
        """Killed anywhere and run again, it completes, with every message once."""
        messages = corpus()[:4000]
        mbox = self.folder / "mbox"
        write_mbox(mbox, messages)
        wanted = collections.Counter(crlf(raw if raw.endswith(b"\n") else raw + b"\n") for _, raw in messages)
        command = [support.PROGRAM, "import", "--data", self.data, "--user", support.USER, "--mailbox", "INBOX", mbox]
        kills = 0
        for delay in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(process.wait(delay), 0)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                kills += 1
        print(f"killed {kills} times")
        self.assertGreater(kills, 1, "it was always done before it could be killed")
        self.load(mbox)
        self.assertEqual(self.bodies() - wanted, collections.Counter(), "more than there was")
        self.assertEqual(wanted - self.bodies(), collections.Counter(), "lost")
        tool(self.data, "check")

    def test_odd_mbox(self):
        """Odd input is taken as far as it is mail, and reported."""
        mbox = self.folder / "odd"
        good = b"From a@example.org Mon Jan  5 10:00:00 2004\nSubject: good\n\ntext\n\n"
        cases = {
            "a From line without a date": b"From nowhere\nSubject: x\n\ny\n\n" + good,
            "a message without a header": b"From a@example.org Mon Jan  5 10:00:00 2004\n\njust text\n\n" + good,
            "an empty message": b"From a@example.org Mon Jan  5 10:00:00 2004\n\n" + good,
            "no newline at the end": good + good[:-2].replace(b"text", b"last"),
            "NULs": good.replace(b"text", b"te\0xt") + good,
            "CRLF line ends": good.replace(b"\n", b"\r\n") + good.replace(b"\n", b"\r\n").replace(b"good", b"better"),
            "an unquoted From in a body": good.replace(b"text", b"From my point of view\nthis is text") + good,
        }
        for number, (what, content) in enumerate(cases.items()):
            with self.subTest(what):
                mbox.write_bytes(content)
                self.load(mbox, f"Odd{number}")
                found = self.bodies(f"Odd{number}")
                self.assertTrue(any(b"Subject: good" in raw for raw in found), found)
                self.assertTrue(all(not re.search(rb"(?<!\r)\n", raw) for raw in found), "a bare LF")
        with self.subTest("an empty file"):
            mbox.write_bytes(b"")
            self.load(mbox, "Empty")
        for what, content in {"no mbox at all": bytes(range(256)) * 100, "junk first": b"this is no mbox line\n\n" + good}.items():
            with self.subTest(what):
                mbox.write_bytes(content)
                said = self.load(mbox, "Nothing", check=False)
                self.assertIn("odd", said, "the refusal names the file")

    def test_tree(self):
        """A Maildir++ tree becomes mailboxes; flags and dates come along."""
        tree = self.folder / "tree"
        write_maildir(tree, small_messages(3), ["", "S", "FRS"])
        write_maildir(tree / ".Lists", small_messages(2))
        write_maildir(tree / ".Lists.ilug", small_messages(4), ["T", "D"])
        tool(self.data, "import", "--user", support.USER, tree)
        with Server(self.data) as server:
            imap = server.connect()
            names = {line.decode().split(' "/" ')[-1].strip('"') for line in self.ok(imap.list())}
            self.assertLessEqual({"INBOX", "Lists", "Lists/ilug"}, names)
            flags = [set(flags_of(values)) for values in all_messages(imap, "INBOX")]
            self.assertEqual(flags, [set(), {"\\Seen"}, {"\\Seen", "\\Flagged", "\\Answered"}])
            found = all_messages(imap, "Lists/ilug")
            self.assertEqual([set(flags_of(values)) for values in found], [{"\\Deleted"}, {"\\Draft"}, set(), set()])
            self.assertIn(b" 9-Sep-2001 01:46:40 +0000", found[0]["INTERNALDATE"])
            imap.logout()

    def test_export_and_back(self):
        """Exported as mbox or as Maildir and imported into another account: equal bytes, flags and dates."""
        messages = corpus()[::5]
        maildir = self.folder / "Maildir"
        letters = ["", "S", "FS", "RS", "D"]
        write_maildir(maildir, messages, [letters[n % 5] for n in range(len(messages))])
        self.load(maildir)
        wanted = self.contents()
        self.assertEqual(sum(wanted.values()), len(messages))
        for kind in ("mbox", "maildir"):
            with self.subTest(kind):
                target = self.folder / f"exported-{kind}"
                tool(self.data, "export", "--user", support.USER, "--mailbox", "INBOX", "--format", kind, target)
                user = f"{SECOND}-{kind}"
                add_user(self.data, user)
                written = list(target.iterdir())
                self.assertEqual(len(written), 1, "one mailbox, one file or Maildir")
                self.load(written[0], user=user)
                found = self.contents(user=user)
                self.assertEqual(sum(found.values()), sum(wanted.values()))
                self.assertEqual(wanted - found, collections.Counter(), "changed on the way")


class Care(Case):
    def setUp(self):
        super().setUp()
        add_user(self.data)
        self.messages = corpus()[::20]
        write_maildir(self.folder / "Maildir", self.messages)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", self.folder / "Maildir")

    def state(self):
        with Server(self.data) as server:
            imap = server.connect()
            items = "(UID FLAGS INTERNALDATE MODSEQ RFC822.SIZE ENVELOPE BODYSTRUCTURE BODY.PEEK[])"
            found = all_messages(imap, "INBOX", items)
            status = self.ok(imap.status("INBOX", "(MESSAGES UIDNEXT UIDVALIDITY UNSEEN HIGHESTMODSEQ)"))
            imap.logout()
        return found, status

    def test_index_is_derived(self):
        """Without its index an account is what it was."""
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX"))
            self.ok(imap.store("1:40", "+FLAGS", "(\\Flagged $Label)"))
            self.ok(imap.store("10:20", "+FLAGS", "(\\Deleted)"))
            self.ok(imap.expunge())
            imap.logout()
        before = self.state()
        folders = [path for path in self.data.rglob("index") if path.is_dir()]
        self.assertTrue(folders, "no index folder was found")
        for folder in folders:
            shutil.rmtree(folder)
        self.assertEqual(self.state(), before)
        tool(self.data, "check")
        for path in folders:
            shutil.rmtree(path, ignore_errors=True)
        tool(self.data, "check", "--repair")
        self.assertEqual(self.state(), before)

    def test_damage_is_found_and_confined(self):
        """One flipped byte: check names it, all other messages still come."""
        self.state()
        tool(self.data, "check")
        # The largest file holds the messages; its middle is one of them.
        path = max((path for path in self.data.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.write_bytes(content)
        code, out, err = tool(self.data, "check", check=False)
        self.assertNotEqual(code, 0, "check found nothing")
        self.assertIn(path.name, out + err)
        good = 0
        with Server(self.data) as server:
            imap = server.connect()
            count = int(self.ok(imap.select("INBOX"))[0])
            self.assertEqual(count, len(self.messages))
            for number in range(1, count + 1):
                status, data = imap.fetch(str(number), "(BODY.PEEK[])")
                if status == "OK" and data[0] is not None:
                    good += data[0][1] == crlf(self.messages[number - 1][1])
            imap.logout()
        print(f"{good} of {count} messages are readable after one flipped byte")
        self.assertGreaterEqual(good, count * 9 // 10)
        self.assertLess(good, count, "the damage went unnoticed")

    def test_stats(self):
        _, out, _ = tool(self.data, "stats")
        self.assertIn(str(len(self.messages)), re.sub(r"(?<=\d)[,_ ](?=\d{3})", "", out))
        self.assertIn(support.USER, out)

    def test_restore(self):
        """Expunged by mistake: brought back."""
        before, _ = self.state()
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=5)
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX"))
            self.ok(imap.store("1:100", "+FLAGS.SILENT", "(\\Deleted)"))
            self.ok(imap.expunge())
            imap.logout()
        self.assertEqual(len(self.state()[0]), len(before) - 100)
        tool(self.data, "restore", "--user", support.USER, "--mailbox", "INBOX", "--since", since.strftime("%Y-%m-%dT%H:%M:%SZ"))
        after, _ = self.state()
        self.assertEqual(collections.Counter(v["BODY[]"] for v in after), collections.Counter(v["BODY[]"] for v in before))
        self.assertTrue({v["UID"] for v in after[-100:]}.isdisjoint({v["UID"] for v in before}), "a UID was used again")

    def test_users(self):
        add_user(self.data, "carol", "carol's password")
        self.assertIn("carol", tool(self.data, "user", "list")[1])
        code, _, _ = tool(self.data, "user", "add", "carol", "--password-stdin", stdin=b"x\n", check=False)
        self.assertNotEqual(code, 0, "a user was added twice")
        tool(self.data, "user", "passwd", "carol", "--password-stdin", stdin=b"another\n")
        with Server(self.data) as server:
            server.connect("carol", "another").logout()
            with self.assertRaises(imaplib.IMAP4.error):
                server.connect("carol", "carol's password")
        tool(self.data, "user", "remove", "carol")
        self.assertNotIn("carol", tool(self.data, "user", "list")[1])
        with Server(self.data) as server:
            with self.assertRaises(imaplib.IMAP4.error):
                server.connect("carol", "another")

    def test_configuration(self):
        """The printed sample is a configuration; a misspelled key is refused with the right one."""
        sample = tool(None, "config", "--defaults")[1]
        config = self.folder / "mailyard.toml"
        config.write_text(sample)
        with Server(self.data, "--config", config):
            pass
        config.write_text("[limits]\nconections_max = 5\n")
        server = Server(self.data, "--config", config)
        with self.assertRaises(AssertionError) as refused:
            server.start()
        self.assertIn("connections_max", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
