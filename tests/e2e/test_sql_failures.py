"""A database that is away, read-only, or of another version: what clients of every protocol hear, and that all goes on
by itself."""

import imaplib
import poplib
import smtplib
import unittest

import support
from mariadb import Database
from support import Case, Server, all_messages, tool

MESSAGE = b"Subject: %s\r\n\r\nhello\r\n"
OTHERS = ("SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist "
          "WHERE id <> CONNECTION_ID() AND db = 'mail'")


class SqlFailures(Case):
    def setUp(self):
        super().setUp()
        self.database = self.enterContext(Database(self.folder / "mariadb"))
        self.database.restart()
        self.url = self.database.create("mail")
        config = self.folder / "mailyard.toml"
        # Errors are to come at once, answers may take long.
        config.write_text(f'[sql]\nurls = ["{self.url}"]\nretry_seconds = 0\ntimeout_seconds = 60\n')
        tool(self.data, "sql", "update", "--config", config)
        tool(self.data, "user", "add", support.USER, "--password-stdin", "--format", "sql", "--config", config,
             stdin=support.PASSWORD.encode() + b"\n")
        self.pop_port, self.lmtp_port = support.free_port(), support.free_port()
        self.server = self.enterContext(Server(
            self.data, "--config", config, "--listen", f"pop3=127.0.0.1:{self.pop_port}",
            "--listen", f"lmtp=127.0.0.1:{self.lmtp_port}"))
        self.imap = self.connect()
        self.append("first")
        self.append("second")

    def connect(self):
        imap = self.server.connect()
        self.addCleanup(imap.shutdown)
        return imap

    def append(self, subject):
        return self.ok(self.imap.append("INBOX", None, None, MESSAGE % subject.encode()))

    def deliver(self, subject):
        """The code and text of LMTP's answer."""
        with smtplib.LMTP("127.0.0.1", self.lmtp_port, local_hostname="client.example.net") as lmtp:
            lmtp.ehlo_or_helo_if_needed()
            self.assertEqual(lmtp.mail("sender@example.org")[0], 250)
            code, text = lmtp.rcpt(support.USER)
            try:
                return lmtp.data(MESSAGE % subject.encode()) if code == 250 else (code, text)
            except smtplib.SMTPDataError as error:
                return error.smtp_code, error.smtp_error

    def pop3(self):
        pop = poplib.POP3("127.0.0.1", self.pop_port, timeout=support.IMAP_SECONDS)
        self.addCleanup(pop.close)
        pop.user(support.USER)
        pop.pass_(support.PASSWORD)
        return pop

    def unavailable(self, answer):
        status, [text] = answer
        self.assertEqual(status, "NO", text)
        self.assertIn(b"[UNAVAILABLE]", text)

    def nobody_writes(self):
        self.unavailable(self.imap.append("INBOX", None, None, MESSAGE % b"refused"))
        code, text = self.deliver("refused")
        self.assertEqual(code // 100, 4, text)

    def messages(self):
        return len(all_messages(self.connect(), "INBOX"))

    def goes_on(self, before):
        """Without a restart of anything, everybody can do everything, and nothing that was refused is there."""
        def appended():
            return self.imap.append("INBOX", None, None, MESSAGE % b"again")[0] == "OK"
        support.until("it goes on", appended, seconds=support.IMAP_SECONDS)
        support.until("mail is taken", lambda: self.deliver("delivered")[0] == 250, seconds=support.IMAP_SECONDS)
        self.assertEqual(self.messages(), before + 2)
        self.assertEqual(self.pop3().stat()[0], before + 2)

    def test_away(self):
        pop = self.pop3()
        self.ok(self.imap.select("INBOX"))
        self.database.kill()
        self.nobody_writes()
        self.unavailable(self.imap.uid("STORE", "1", "+FLAGS", r"(\Seen)"))
        self.unavailable(self.imap.create("box"))
        pop.dele(1)
        with self.assertRaisesRegex(poplib.error_proto, r"\[SYS/TEMP\]"):
            pop.quit()
        with self.assertRaisesRegex(poplib.error_proto, r"\[SYS/TEMP\]"):
            self.pop3()
        self.database.start()
        self.goes_on(2)

    def test_read_only(self):
        self.database.query("SET GLOBAL tx_read_only = 1")
        self.database.query(self.database.query(OTHERS))
        self.nobody_writes()
        self.assertEqual(self.messages(), 2, "reading goes on")
        self.database.query("SET GLOBAL tx_read_only = 0")
        self.database.query(self.database.query(OTHERS))
        self.goes_on(2)

    def test_another_version(self):
        self.server.stop()
        self.database.query("INSERT INTO schema_version VALUES (99)", "mail")
        self.server.start()
        with self.assertRaisesRegex(imaplib.IMAP4.error, r"\[UNAVAILABLE\]"):
            self.server.connect()
        code, text = self.deliver("refused")
        self.assertEqual(code // 100, 4, text)
        self.database.query("DELETE FROM schema_version WHERE version = 99", "mail")
        self.imap = self.connect()
        self.goes_on(2)


if __name__ == "__main__":
    unittest.main()
