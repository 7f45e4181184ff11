"""A database that is away, slow, full, read-only, or of another version: what clients of every protocol hear, and that all goes on
by itself."""

import contextlib
import imaplib
import os
import poplib
import re
import smtplib
import socket
import unittest

import support
from mariadb import Database
from support import Case, Server, all_messages, tool

MESSAGE = b"Subject: %s\r\n\r\nhello\r\n"


# What it lets in at once with `--max-connections=10`: an administrator comes in always, and without a table of users everybody is one.
CONNECTIONS = 11


class SqlFailures(Case):
    def setUp(self):
        super().setUp()
        # Connections that say nothing may stay.
        self.database = self.enterContext(Database(self.folder / "mariadb", "--max-connections=10", "--connect-timeout=3600"))
        self.url = self.database.create("mail")
        self.config = self.folder / "mailyard.toml"
        # Errors are to come at once, answers may take long.
        self.configure(60)
        tool(self.data, "sql", "update", "--config", self.config)
        tool(self.data, "user", "add", support.USER, "--password-stdin", "--format", "sql", "--config", self.config,
             stdin=support.PASSWORD.encode() + b"\n")
        self.pop_port, self.lmtp_port = support.free_port(), support.free_port()
        self.server = self.enterContext(Server(
            self.data, "--config", self.config, "--listen", f"pop3=127.0.0.1:{self.pop_port}",
            "--listen", f"lmtp=127.0.0.1:{self.lmtp_port}"))
        self.imap = self.connect()
        self.append("first")
        self.append("second")

    def configure(self, timeout):
        self.config.write_text(
            f'[sql]\nurls = ["{self.url}"]\nretry_seconds = 0\ntimeout_seconds = {timeout}\nconnections_max = 4\n')

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

    def nobody_comes_in(self):
        with self.assertRaisesRegex(imaplib.IMAP4.error, r"\[UNAVAILABLE\]"):
            self.server.connect()
        code, text = self.deliver("refused")
        self.assertEqual(code // 100, 4, text)
        with self.assertRaisesRegex(poplib.error_proto, r"\[SYS/TEMP\]"):
            self.pop3()

    def messages(self):
        return len(all_messages(self.connect(), "INBOX"))

    def comes_in(self):
        """Connects as soon as the database lets somebody in."""
        def connected():
            try:
                self.imap = self.connect()
            except imaplib.IMAP4.error as error:
                self.assertIn("[UNAVAILABLE]", str(error))
                return False
            return True
        support.until("somebody comes in", connected, seconds=support.IMAP_SECONDS)

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
        self.database.end_connections("mail")
        self.nobody_writes()
        self.assertEqual(self.messages(), 2, "reading goes on")
        self.database.query("SET GLOBAL tx_read_only = 0")
        self.database.end_connections("mail")
        self.goes_on(2)

    def test_another_version(self):
        self.server.stop()
        self.database.query("INSERT INTO schema_version VALUES (99)", "mail")
        self.server.start()
        self.nobody_comes_in()
        self.database.query("DELETE FROM schema_version WHERE version = 99", "mail")
        self.comes_in()
        self.goes_on(2)

    def test_out_of_connections(self):
        self.server.stop()
        with contextlib.ExitStack() as held:
            count = 0
            while count < CONNECTIONS:
                # Those of others that have just ended may still count.
                greeted = self.occupy(held)
                count += greeted
            self.server.start()
            self.nobody_comes_in()
        self.comes_in()
        self.goes_on(2)

    def occupy(self, held):
        """Takes one of the database's connections, if there is one."""
        connection = held.enter_context(socket.socket(socket.AF_UNIX))
        connection.settimeout(support.IMAP_SECONDS)
        connection.connect(os.fspath(self.database.socket))
        # The length of a packet, its number, and what it is: a greeting of protocol 10, or an error.
        return connection.recv(5, socket.MSG_WAITALL)[4:] == b"\n"

    def test_slow(self):
        self.server.stop()
        self.configure(3)
        self.server.start()
        self.comes_in()
        self.database.pause()
        try:
            self.nobody_writes()
        finally:
            self.database.go_on()
        # On a machine that is slow itself a change may be done and not be answered in time: then it is there twice.
        for subject in ("third", "fourth"):
            support.until("it goes on", lambda: self.imap.append("INBOX", None, None, MESSAGE % subject.encode())[0] == "OK",
                          seconds=support.IMAP_SECONDS)
        support.until("mail is taken", lambda: self.deliver("delivered")[0] == 250, seconds=support.IMAP_SECONDS)
        found = None

        def looked():
            nonlocal found
            try:
                rows = all_messages(self.connect(), "INBOX", "(UID BODY.PEEK[HEADER])")
            except (AssertionError, imaplib.IMAP4.error):
                return False
            found = {re.search(rb"(?m)^Subject: (\w+)", row["BODY[HEADER]"])[1] for row in rows}
            return True
        support.until("it can be read", looked, seconds=support.IMAP_SECONDS)
        self.assertEqual(found, {b"first", b"second", b"third", b"fourth", b"delivered"})


if __name__ == "__main__":
    unittest.main()
