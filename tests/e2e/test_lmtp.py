"""Delivery: LMTP with Python's smtplib over TCP and over a Unix socket, `mailyard deliver`, and what IMAP sees of it."""

import smtplib
import socket
import ssl
import statistics
import threading
import time
import unittest

import support
from support import Case, Server, add_user, corpus, crlf, fetch, tool
from test_idle import MEDIAN_MS, Idler
from test_tls import make_certificate

USERS = ["alice", "bob", "carol", "dave", "erin"]
CONNECTIONS = 20
EACH = 15
KILLS = 5


def deliver(lmtp, sender, recipients, message, options=()):
    """What was refused: {recipient: code}. smtplib's own sendmail takes one reply for all recipients."""
    lmtp.ehlo_or_helo_if_needed()
    refused, taken = {}, []
    code, text = lmtp.mail(sender, options)
    if code != 250:
        raise smtplib.SMTPSenderRefused(code, text, sender)
    for recipient in recipients:
        code, _ = lmtp.rcpt(recipient)
        if code == 250:
            taken.append(recipient)
        else:
            refused[recipient] = code
    replies = [lmtp.data(message)] + [lmtp.getreply() for _ in taken[1:]]
    refused.update({recipient: code for recipient, (code, _) in zip(taken, replies) if code != 250})
    return refused


class Lmtp(Case):
    def setUp(self):
        super().setUp()
        self.certificate, key = make_certificate(self.folder, "first")
        self.socket = self.folder / "lmtp"
        config = self.folder / "mailyard.toml"
        config.write_text(f'[tls]\ncertificate_file = "{self.certificate}"\nkey_file = "{key}"\n'
                          f'[listen]\nlmtp_socket = "lmtp"\n'
                          '[delivery]\nhostname = "mail.example.org"\ndomains = ["example.org"]\nsocket_mode = "0660"\n'
                          'aliases = { "sales" = "bob", "@example.org" = "carol" }\n')
        for user in USERS:
            add_user(self.data, user, support.PASSWORD)
        self.port = support.free_port()
        self.server = Server(self.data, "--listen", f"lmtp=127.0.0.1:{self.port}", "--config", config)
        self.addCleanup(self.server.kill)

    def connect(self):
        return smtplib.LMTP("127.0.0.1", self.port, local_hostname="client.example.net")

    def inbox(self, user=support.USER, mailbox="INBOX"):
        imap = self.server.connect(user)
        self.ok(imap.select(mailbox))
        found = fetch(imap, "1:*", "(BODY.PEEK[])")
        imap.logout()
        return [found[number]["BODY[]"] for number in sorted(found)]

    def test_real_mail(self):
        messages = corpus()[:200]
        with self.server:
            lmtp = self.connect()
            self.assertEqual(lmtp.ehlo()[1].splitlines()[0], b"mail.example.org")
            for number, (name, raw) in enumerate(messages):
                # smtplib makes CRLF of a bare CR as well.
                raw = crlf(raw.replace(b"\r", b""))
                raw = raw if raw.endswith(b"\r\n") else raw + b"\r\n"
                to = ["alice@example.org", "bob@example.org"] if number % 2 else ["alice@example.org"]
                self.assertEqual(deliver(lmtp, "list@example.com", to, raw, ["BODY=8BITMIME", f"SIZE={len(raw)}"]), {}, name)
            lmtp.quit()
            found = self.inbox()
            self.assertEqual(len(found), len(messages))
            for (name, raw), stored in zip(messages, found):
                top, *rest = stored.split(b"\r\n")
                self.assertEqual(top, b"Return-Path: <list@example.com>")
                self.assertEqual(rest[0], b"Delivered-To: alice@example.org")
                self.assertEqual(rest[1], b"Received: from client.example.net ([127.0.0.1])")
                raw = crlf(raw.replace(b"\r", b""))
                self.assertTrue(stored.endswith(raw if raw.endswith(b"\r\n") else raw + b"\r\n"), name)
            self.assertEqual(len(self.inbox("bob")), len(messages) // 2)

    def test_recipients(self):
        message = b"Subject: x\r\n\r\n.y\r\n"
        with self.server:
            imap = self.server.connect()
            self.ok(imap.create("lists"))
            lmtp = self.connect()
            to = ["alice+lists@example.org", "alice+none@example.org", "SALES@example.org", "nobody@elsewhere.example", "any@example.org"]
            refused = deliver(lmtp, "", to, message)
            self.assertEqual(refused, {"nobody@elsewhere.example": 550})
            self.assertEqual(len(self.inbox("alice", "lists")), 1)
            for user in ("alice", "bob", "carol"):
                found = self.inbox(user)
                self.assertEqual(len(found), 1, user)
                self.assertTrue(found[0].endswith(message) and found[0].startswith(b"Return-Path: <>\r\n"))
            context = ssl.create_default_context(cafile=self.certificate)
            context.check_hostname = False
            lmtp = smtplib.LMTP("127.0.0.1", self.port)
            self.assertEqual(lmtp.starttls(context=context)[0], 220)
            self.assertEqual(deliver(lmtp, "", ["dave@example.org"], message), {})
            self.assertIn(b" with LMTPS ", self.inbox("dave")[0])
            self.assertEqual(self.socket.stat().st_mode & 0o777, 0o660)
            unix = smtplib.LMTP(str(self.socket))
            self.assertFalse(unix.has_extn("starttls"))
            self.assertEqual(deliver(unix, "", ["erin@example.org"], message), {})
            self.assertEqual(len(self.inbox("erin")), 1)
        self.assertFalse(self.socket.exists())

    def test_only_trusted_networks(self):
        config = self.folder / "closed.toml"
        config.write_text('[delivery]\nnetworks = ["192.0.2.0/24"]\n')
        with Server(self.data, "--listen", f"lmtp=127.0.0.1:{self.port}", "--config", config):
            with socket.create_connection(("127.0.0.1", self.port)) as probe:
                self.assertEqual(probe.makefile().read(), "554 5.7.1 This network is not trusted\n")

    def test_deliver(self):
        message = b"From bob Thu Jan  1 00:00:00 1970\nSubject: x\n\n.\ny\n"

        def command(*arguments):
            return tool(self.data, "deliver", *arguments, stdin=message, check=False)[0]

        def all_ways():
            self.assertEqual(command("--user", "alice", "--from", "bea@example.com"), 0)
            self.assertEqual(command("--user", "alice", "--mailbox", "a \"b\" c"), 0)
            self.assertEqual(command("--user", "zoe"), 67)
            self.assertEqual(command("--user", "alice", "--mailbox", "none"), 73)
            self.assertEqual(command("--user"), 64)
            self.assertEqual(command("--user", "alice", "--from", "a b"), 64)

        with self.server:
            self.ok(self.server.connect().create('"a \\"b\\" c"'))
            all_ways()
        all_ways()
        with self.server:
            found = self.inbox()
            self.assertEqual(len(found), 2)
            for stored in found:
                self.assertTrue(stored.startswith(b"Return-Path: <bea@example.com>\r\nDelivered-To: \"alice\"\r\n"), stored)
                self.assertTrue(stored.endswith(b"\r\nSubject: x\r\n\r\n.\r\ny\r\n"), stored)
            self.assertEqual(len(self.inbox(mailbox='"a \\"b\\" c"')), 2)

    def test_many_connections(self):
        failures = []

        def work(number):
            try:
                lmtp = self.connect()
                for count in range(EACH):
                    refused = deliver(lmtp, "", [f"{user}@example.org" for user in USERS], f"Subject: {number} {count}\r\n\r\nx\r\n")
                    assert not refused, refused
                lmtp.quit()
            except Exception as error:
                failures.append(error)

        with self.server:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(CONNECTIONS)]
            began = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(support.IMAP_SECONDS)
            took = time.perf_counter() - began
            self.assertEqual(failures, [])
            for user in USERS:
                subjects = {stored.split(b"Subject: ")[1].split(b"\r\n")[0].decode() for stored in self.inbox(user)}
                self.assertEqual(subjects, {f"{number} {count}" for number in range(CONNECTIONS) for count in range(EACH)})
            copies = CONNECTIONS * EACH * len(USERS)
            print(f"{CONNECTIONS} connections: {copies} copies to {len(USERS)} accounts in {took:.2f} s, {copies / took:.0f}/s")

    def test_idle_sees_a_delivery(self):
        with self.server:
            watcher = self.server.connect()
            self.ok(watcher.select("INBOX"))
            idler = Idler(watcher)
            lmtp = self.connect()
            taken = []
            for number in range(1, 41):
                since, began = len(idler.lines), time.perf_counter()
                deliver(lmtp, "", ["alice@example.org"], b"Subject: x\r\n\r\ny\r\n")
                taken.append((idler.when(b"* %d EXISTS" % number, since) - began) * 1000)
            idler.done()
            print(f"delivery seen in IDLE: median {statistics.median(taken):.2f} ms, worst {max(taken):.2f} ms")
            self.assertLess(statistics.median(taken), MEDIAN_MS)

    def test_sigkill(self):
        """What was answered 250 is there after a SIGKILL."""
        taken, stop = set(), threading.Event()

        def work(number):
            try:
                lmtp = self.connect()
                for count in range(100_000):
                    subject = f"{round_} {number} {count}"
                    if deliver(lmtp, "", ["alice@example.org", "bob@example.org"], f"Subject: {subject}\r\n\r\nx\r\n") == {}:
                        taken.add(subject)
                        if len(taken) >= 40 * (round_ + 1):
                            stop.set()
            except (smtplib.SMTPException, OSError):
                pass

        for round_ in range(KILLS):
            self.server.start()
            threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            self.assertTrue(stop.wait(support.IMAP_SECONDS))
            self.server.kill()
            for thread in threads:
                thread.join(support.IMAP_SECONDS)
            stop.clear()
            with self.server:
                for user in ("alice", "bob"):
                    subjects = [stored.split(b"Subject: ")[1].split(b"\r\n")[0].decode() for stored in self.inbox(user)]
                    self.assertLessEqual(taken, set(subjects))
                    self.assertEqual(len(subjects), len(set(subjects)))
        tool(self.data, "check")
        print(f"{KILLS} kills, {len(taken)} acknowledged messages, each to two accounts")


if __name__ == "__main__":
    unittest.main()
