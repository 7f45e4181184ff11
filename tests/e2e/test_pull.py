"""`mailyard import --from imap://...`: an account comes from another server with its UIDs, flags and dates, as often as one likes."""

import imaplib
import json
import os
import random
import signal
import socketserver
import subprocess
import threading
import time
import unittest

import dovecot
import support
from dovecot import Dovecot
from support import PROGRAM, Case, Server, add_user, fetch, flags_of, tool
from test_tls import make_certificate

MAILBOXES = ["INBOX", "Work", "Work.2002", "Gr&APYA3w-e", "Empty"]
HERE = {"INBOX": "INBOX", "Work": "Work", "Work.2002": "Work/2002", "Gr&APYA3w-e": "Gr&APYA3w-e", "Empty": "Empty"}
FLAGS = ["", "\\Seen", "\\Flagged $Forwarded", "\\Answered \\Seen", "\\Draft", "\\Seen work"]


def message(number, size=200):
    body = f"Text {number}.\r\n" * (1 + size // 12)
    return f"From: a@example.org\r\nSubject: number {number}\r\nMessage-ID: <{number}@example.org>\r\n\r\n{body}".encode()


def fill(imap, mailbox, numbers, size=200):
    for number in numbers:
        date = imaplib.Time2Internaldate(1_000_000_000 + number * 1000)
        status, answer = imap.append(mailbox, f"({FLAGS[number % len(FLAGS)]})", date, message(number, size))
        assert status == "OK", answer


def contents(imap, mailbox):
    """(UIDVALIDITY, {uid: (flags, date, bytes)})"""
    status, answer = imap.select(f'"{mailbox}"', readonly=True)
    assert status == "OK", answer
    validity = int(imap.response("UIDVALIDITY")[1][0])
    if answer == [b"0"]:
        return validity, {}
    found = fetch(imap, "1:*", "(UID FLAGS INTERNALDATE BODY.PEEK[])").values()
    return validity, {row["UID"]: (flags_of(row), support_date(row["INTERNALDATE"]), row["BODY[]"]) for row in found}


def support_date(text):
    """Seconds, since servers may write the same moment in another zone."""
    return time.mktime(imaplib.Internaldate2tuple(b'INTERNALDATE "' + text + b'"'))


class Unordered(socketserver.StreamRequestHandler):
    """A server with MESSAGES in INBOX that answers what was sent together from the last message to the first, and ends it so (RFC 9051 §5.5)."""

    MESSAGES = 650
    TOGETHER = 3

    def answer(self, text):
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self):
        waiting = []
        self.answer("* OK [CAPABILITY IMAP4rev1] here")
        for line in self.rfile:
            tag, _, command = line.decode().rstrip().partition(" ")
            if command.upper().startswith("UID FETCH"):
                uids = [uid for part in command.split()[2].replace("*", str(self.MESSAGES)).split(",")
                        for uid in range(int(part.split(":")[0]), int(part.split(":")[-1]) + 1)]
                if "BODY" not in command:
                    for uid in uids:
                        self.answer(f"* {uid} FETCH (UID {uid} FLAGS () INTERNALDATE \"01-Jan-2002 00:00:00 +0000\" "
                                    f"RFC822.SIZE {len(message(uid))})")
                else:
                    waiting.append((tag, uids))
                    if len(waiting) < self.TOGETHER and self.MESSAGES not in uids:
                        continue
                    for uid in reversed([uid for _, uids in waiting for uid in uids]):
                        self.answer(f"* {uid} FETCH (UID {uid} BODY[] {{{len(message(uid))}}}\r\n{message(uid).decode()})")
                    for tag, _ in reversed(waiting):
                        self.answer(f"{tag} OK done")
                    waiting = []
                    continue
            elif command.startswith("LIST"):
                self.answer('* LIST () "/" INBOX')
            elif command.startswith("EXAMINE"):
                self.answer(f"* {self.MESSAGES} EXISTS")
                self.answer("* OK [UIDVALIDITY 7] x")
                self.answer(f"* OK [UIDNEXT {self.MESSAGES + 1}] x")
            elif command.startswith("LOGOUT"):
                self.answer("* BYE")
            self.answer(f"{tag} OK done")


class PullUnordered(Case):
    def test_answers_in_another_order(self):
        add_user(self.data)
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Unordered) as other:
            threading.Thread(target=other.serve_forever, daemon=True).start()
            tool(self.data, "import", "--user", support.USER, "--from", f"imap://ann@127.0.0.1:{other.server_address[1]}",
                 "--password-stdin", "--allow-plaintext", stdin=b"secret\n")
            other.shutdown()
        with Server(self.data) as server:
            here = server.connect()
            validity, found = contents(here, "INBOX")
            self.assertEqual((validity, list(found)), (7, list(range(1, Unordered.MESSAGES + 1))))
            for uid, (_, _, raw) in found.items():
                self.assertEqual(raw, message(uid))
            here.logout()


@unittest.skipUnless(os.geteuid() == 0, "Dovecot is started as root")
class Pull(Case):
    def setUp(self):
        super().setUp()
        add_user(self.data)
        self.other = Dovecot(self.folder).start()
        self.addCleanup(self.other.stop)

    def command(self, *extra, user="ann"):
        return ["--json", "--user", support.USER, "--from", f"imap://{user}@127.0.0.1:{self.other.port}", "--password-stdin",
                "--allow-plaintext", *extra]

    def pull(self, *extra, check=True, password=dovecot.PASSWORD):
        code, out, err = tool(self.data, "import", *self.command(*extra), stdin=password.encode() + b"\n", check=check)
        return (json.loads(out), err) if check else (code, out + err)

    def fill(self):
        imap = self.other.connect("ann")
        for at, mailbox in enumerate(MAILBOXES):
            if mailbox != "INBOX":
                self.ok(imap.create(mailbox))
            if mailbox != "Empty":
                fill(imap, mailbox, range(at * 1000, at * 1000 + 120))
        self.ok(imap.subscribe("Work"))
        for mailbox in ("INBOX", "Work"):
            self.ok(imap.select(mailbox))
            self.ok(imap.store("3:9,50,118:120", "+FLAGS", "(\\Deleted)"))
            self.ok(imap.expunge())
            self.ok(imap.unselect())
        return imap

    def check_equal(self, imap, mailboxes=MAILBOXES):
        with Server(self.data) as server:
            here = server.connect()
            for mailbox in mailboxes:
                self.assertEqual(contents(here, HERE[mailbox]), contents(imap, mailbox), mailbox)
            here.logout()

    def test_everything_is_kept_and_followed(self):
        imap = self.fill()
        report, _ = self.pull()
        self.assertEqual((report["imported"], report["failed"], report["mailboxes_with_their_uids"]), (4 * 120 - 22, [], 5))
        self.check_equal(imap)
        report, _ = self.pull()
        self.assertEqual((report["imported"], report["flags_changed"], report["skipped"]), (0, 0, 0))
        # Changes there, and a second run.
        self.ok(imap.select("INBOX"))
        self.ok(imap.store("1:20", "+FLAGS", "(\\Seen later)"))
        self.ok(imap.store("30:35", "-FLAGS", "(\\Seen)"))
        self.ok(imap.store("40:44", "+FLAGS", "(\\Deleted)"))
        self.ok(imap.expunge())
        fill(imap, "INBOX", range(7000, 7010))
        self.ok(imap.unselect())
        report, _ = self.pull()
        self.assertEqual((report["imported"], report["expunged"]), (10, 0))
        self.assertGreaterEqual(report["flags_changed"], 20)
        report, _ = self.pull("--delete")
        self.assertEqual((report["imported"], report["expunged"]), (0, 5))
        self.check_equal(imap)
        with Server(self.data) as server:
            here = server.connect()
            subscribed = b" ".join(self.ok(here.lsub()))
            self.assertIn(b"Work", subscribed)
            here.logout()

    def test_into_mail_that_is_there(self):
        """UIDs cannot be kept, but everything else, and changes still find their messages."""
        imap = self.fill()
        with Server(self.data) as server:
            here = server.connect()
            fill(here, "INBOX", [1, 2, 3])
            here.logout()
        report, _ = self.pull("--only", "INBOX")
        self.assertEqual((report["imported"], report["mailboxes_with_their_uids"], report["mailboxes"]), (109, 0, ["INBOX"]))
        self.ok(imap.select("INBOX"))
        self.ok(imap.store("1:10", "FLAGS", "(\\Draft new)"))
        self.ok(imap.store("11:13", "+FLAGS", "(\\Deleted)"))
        self.ok(imap.expunge())
        report, _ = self.pull("--only", "INBOX", "--delete")
        self.assertEqual((report["flags_changed"], report["expunged"]), (10, 3))
        with Server(self.data) as server:
            here = server.connect()
            rows = list(contents(here, "INBOX")[1].values())
            self.assertEqual(rows[3:], list(contents(imap, "INBOX")[1].values()))
            self.assertEqual([row[2] for row in rows[:3]], [message(number) for number in (1, 2, 3)])
            here.logout()

    def test_killed_anywhere(self):
        imap = self.other.connect("ann")
        fill(imap, "INBOX", range(400), size=30_000)
        chance = random.Random(5)
        for _ in range(12):
            process = subprocess.Popen([PROGRAM, "import", "--data", self.data, *self.command()], stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            process.stdin.write(dovecot.PASSWORD.encode() + b"\n")
            process.stdin.close()
            try:
                process.wait(chance.uniform(0.01, 0.25))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
        self.pull()
        self.check_equal(imap, ["INBOX"])

    def test_while_the_server_runs(self):
        imap = self.fill()
        with Server(self.data) as server:
            self.pull()
            here = server.connect()
            self.assertEqual(contents(here, "Work/2002"), contents(imap, "Work.2002"))
            here.logout()

    def test_errors_are_clear(self):
        self.fill().logout()
        code, text = self.pull(check=False, password="wrong")
        self.assertEqual(code, 1)
        self.assertIn("the login is refused", text)
        self.assertNotIn("wrong", text)
        code, text = self.pull("--only", "Nowhere", check=False)
        self.assertEqual(code, 1)
        self.assertIn("there is no mailbox Nowhere to import", text)
        self.other.stop()
        code, text = self.pull(check=False)
        self.assertEqual(code, 1)
        self.assertIn("refused", text)
        code, out, err = tool(self.data, "import", "--user", support.USER, "--from", "pop://ann@host", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("imaps://USER@HOST", out + err)

    def test_no_password_without_tls(self):
        arguments = [argument for argument in self.command() if argument != "--allow-plaintext"]
        code, out, err = tool(self.data, "import", *arguments, stdin=b"x\n", check=False)
        self.assertEqual(code, 1)
        self.assertIn("--allow-plaintext", out + err)


class Tls(Case):
    """From another Mailyard, so that TLS is there."""

    def test_certificates_are_checked(self):
        certificate, key = make_certificate(self.folder, "first")
        config = self.folder / "mailyard.toml"
        config.write_text(f'[tls]\ncertificate_file = "{certificate}"\nkey_file = "{key}"\n')
        add_user(self.data)
        copy = self.folder / "copy"
        copy.mkdir()
        add_user(copy)
        tls_port = support.free_port()
        with Server(self.data, "--listen", f"imaps=127.0.0.1:{tls_port}", "--config", config) as server:
            imap = imaplib.IMAP4_SSL("127.0.0.1", tls_port, ssl_context=self.trusting(certificate), timeout=support.IMAP_SECONDS)
            imap.login(support.USER, support.PASSWORD)
            fill(imap, "INBOX", range(50))
            there = contents(imap, "INBOX")
            imap.logout()
            for url, trust in ((f"imaps://{support.USER}@localhost:{tls_port}", True),
                               (f"imap://{support.USER}@127.0.0.1:{server.port}", True),
                               (f"imaps://{support.USER}@localhost:{tls_port}", False)):
                with self.subTest(url=url, trust=trust):
                    extra = ["--ca-file", certificate] if trust else []
                    code, out, err = tool(copy, "import", "--user", support.USER, "--from", url, "--password-stdin", *extra,
                                          stdin=support.PASSWORD.encode() + b"\n", check=False)
                    self.assertEqual(code, 0 if trust else 1, out + err)
                    if not trust:
                        self.assertIn("certificate", (out + err).lower())
        with Server(copy) as server:
            here = server.connect()
            # The second server is another origin, though it holds the same mail.
            validity, rows = contents(here, "INBOX")
            self.assertEqual(validity, there[0])
            self.assertEqual(list(rows.values())[:50], list(there[1].values()))
            here.logout()

    def trusting(self, certificate):
        import ssl
        return ssl.create_default_context(cafile=certificate)


if __name__ == "__main__":
    unittest.main()
