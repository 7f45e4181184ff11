"""POP3 with Python's poplib and curl: in the clear on loopback, with STLS and over TLS; beside IMAP on the same account."""

import poplib
import ssl
import statistics
import subprocess
import time
import unittest

import support
from support import Case, Server, add_user, corpus, crlf, tool, write_mbox
from test_idle import MEDIAN_MS, Idler
from test_tls import make_certificate

MESSAGES = 300


class Pop3(Case):
    def setUp(self):
        super().setUp()
        self.certificate, key = make_certificate(self.folder, "first")
        config = self.folder / "mailyard.toml"
        config.write_text(f'[tls]\ncertificate_file = "{self.certificate}"\nkey_file = "{key}"\n')
        add_user(self.data)
        self.port, self.tls_port = support.free_port(), support.free_port()
        self.server = Server(self.data, "--listen", f"pop3=127.0.0.1:{self.port}", "--listen", f"pop3s=127.0.0.1:{self.tls_port}",
                             "--config", config)

    def connect(self):
        pop = poplib.POP3("127.0.0.1", self.port, timeout=support.IMAP_SECONDS)
        pop.user(support.USER)
        pop.pass_(support.PASSWORD)
        return pop

    def trusting(self):
        return ssl.create_default_context(cafile=self.certificate)

    def test_real_mail(self):
        messages = corpus()[:MESSAGES]
        write_mbox(self.folder / "mbox", messages)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", self.folder / "mbox")
        with self.server:
            pop = self.connect()
            count, octets = pop.stat()
            self.assertEqual(count, MESSAGES)
            sizes = [int(line.split()[1]) for line in pop.list()[1]]
            self.assertEqual(sum(sizes), octets)
            names = [line.split()[1] for line in pop.uidl()[1]]
            self.assertEqual(len(set(names)), MESSAGES)
            for number, (name, raw) in enumerate(messages, 1):
                expected = crlf(raw)
                # poplib takes each line's end away.
                self.assertEqual(b"\r\n".join(pop.retr(number)[1]) + b"\r\n", expected if expected.endswith(b"\n") else expected + b"\r\n", name)
                self.assertEqual(sizes[number - 1], len(expected), name)
            head = pop.top(7, 3)[1]
            self.assertEqual(head, crlf(messages[6][1]).split(b"\r\n")[:len(head)])
            for number in range(1, MESSAGES + 1, 2):
                pop.dele(number)
            other = self.connect()
            self.assertEqual(other.stat()[0], MESSAGES, "a mark is nobody else's business")
            imap = self.server.connect()
            self.ok(imap.select("INBOX"))
            pop.quit()
            self.ok(imap.noop())
            self.assertEqual(len(imap.response("EXPUNGE")[1]), MESSAGES // 2)
            imap.logout()
            other.quit()
            pop = self.connect()
            self.assertEqual([line.split()[1] for line in pop.uidl()[1]], names[1::2])
            pop.quit()

    def test_idle_sees_deletions(self):
        """What QUIT deletes, and what another client put there before, is seen in IDLE at once."""
        with self.server:
            changer, watcher = self.server.connect(), self.server.connect()
            self.ok(watcher.select("INBOX"))
            idler, taken = Idler(watcher), []
            for _ in range(40):
                since = len(idler.lines)
                self.ok(changer.append("INBOX", None, None, b"Subject: x\r\n\r\ny\r\n"))
                idler.when(b"* 1 EXISTS", since)
                pop = self.connect()
                pop.dele(1)
                since, began = len(idler.lines), time.perf_counter()
                pop.quit()
                taken.append((idler.when(b"* 1 EXPUNGE", since) - began) * 1000)
            idler.done()
            print(f"deletion seen in IDLE: median {statistics.median(taken):.2f} ms, worst {max(taken):.2f} ms")
            self.assertLess(statistics.median(taken), MEDIAN_MS)

    def test_tls(self):
        with self.server:
            plain = poplib.POP3("127.0.0.1", self.port, timeout=support.IMAP_SECONDS)
            self.assertIn("STLS", plain.capa())
            plain.stls(self.trusting())
            self.assertNotIn("STLS", plain.capa())
            secure = poplib.POP3_SSL("127.0.0.1", self.tls_port, context=self.trusting(), timeout=support.IMAP_SECONDS)
            for pop in (plain, secure):
                pop.user(support.USER)
                pop.pass_(support.PASSWORD)
                self.assertEqual(pop.stat(), (0, 0))
                pop.quit()

    def test_wrong_password(self):
        with self.server:
            pop = poplib.POP3("127.0.0.1", self.port, timeout=support.IMAP_SECONDS)
            pop.user(support.USER)
            with self.assertRaisesRegex(poplib.error_proto, r"-ERR \[AUTH\] Wrong user or password"):
                pop.pass_("wrong")
            pop.user(support.USER)
            pop.pass_(support.PASSWORD)
            pop.quit()

    def test_killed_after_quit(self):
        """What QUIT has acknowledged is gone, and nothing else."""
        write_mbox(self.folder / "mbox", corpus()[:20])
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", self.folder / "mbox")
        left = 20
        for turn in range(5):
            with self.server:
                pop = self.connect()
                self.assertEqual(pop.stat()[0], left)
                pop.dele(1)
                if turn % 2 == 0:
                    pop.quit()
                    left -= 1
                self.server.kill()
                pop.close()


if __name__ == "__main__":
    unittest.main()
