"""mutt, in a terminal: it opens the account, shows the index and a message, and what one does in it arrives."""

import os
import subprocess
import unittest

import support
from support import Case, Server, add_user, corpus, tool, until, write_maildir

COLUMNS, ROWS = 140, 40


class Terminal:
    """A program in a terminal of its own (tmux), driven by keys, looked at as text."""

    count = 0

    def __init__(self, folder, *command):
        # Of its own: the last one's server may be on its way out.
        Terminal.count += 1
        self.socket = folder / f"tmux-{Terminal.count}"
        environment = dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", HOME=str(folder))
        environment.pop("TMUX", None)
        self.environment = environment
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), *map(os.fspath, command))

    def run(self, *arguments):
        command = ["tmux", "-S", os.fspath(self.socket), *arguments]
        done = subprocess.run(command, capture_output=True, timeout=support.WAIT_SECONDS, env=self.environment)
        if done.returncode != 0:
            raise AssertionError(f"{command}: {done.stderr.decode()}")
        return done.stdout.decode(errors="replace")

    def keys(self, *keys):
        self.run("send-keys", *keys)

    def screen(self):
        return self.run("capture-pane", "-p")

    def wait_for(self, text):
        last = ""

        def look():
            nonlocal last
            last = self.screen()
            return text in last

        try:
            until(f"{text!r} on the screen", look)
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows:\n{last}") from None
        return last

    def close(self):
        subprocess.run(["tmux", "-S", os.fspath(self.socket), "kill-server"], capture_output=True, timeout=support.WAIT_SECONDS)


def configuration(port):
    return f"""
set folder = "imap://127.0.0.1:{port}/"
set spoolfile = "imap://127.0.0.1:{port}/INBOX"
set imap_user = "{support.USER}"
set imap_pass = "{support.PASSWORD}"
set imap_authenticators = "login"
set ssl_starttls = no
set ssl_force_tls = no
set tunnel = ""
unset record
set sleep_time = 0
set sort = mailbox-order
set delete = yes
set mail_check = 1
set timeout = 1
set imap_idle = yes
set charset = "utf-8"
set index_format = "%4C %Z %-20.20L %s"
"""


class Mutt(Case):
    def test_reads_and_deletes(self):
        letters = [
            (str(number), f"From: Writer {number} <w{number}@example.org>\nTo: alice@example.org\n"
                          f"Subject: Letter number {number}\nDate: Mon, 5 Jan 2004 10:00:{number:02} +0000\n"
                          f"Message-ID: <{number}@example.org>\n\nThis is the text of letter {number}.\n".encode())
            for number in range(1, 21)
        ]
        umlauts = (
            "From: =?utf-8?q?J=C3=B6rg?= <j@example.org>\nSubject: =?utf-8?b?R3LDvMOfZQ==?=\nMIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nSch=C3=B6ne Gr=C3=BC=C3=9Fe!\n"
        ).encode()
        write_maildir(self.folder / "source", [*letters, ("umlauts", umlauts)])
        add_user(self.data)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", self.folder / "source")
        with Server(self.data) as server:
            rc = self.folder / "muttrc"
            rc.write_text(configuration(server.port))
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc)
            self.addCleanup(terminal.close)
            screen = terminal.wait_for("Letter number 20")
            for number in range(1, 21):
                self.assertIn(f"Letter number {number}", screen)
            self.assertIn("Jörg", screen)
            self.assertIn("Grüße", screen)

            terminal.keys("7", "Enter")
            terminal.keys("Enter")
            screen = terminal.wait_for("This is the text of letter 7.")
            self.assertIn("Subject: Letter number 7", screen)

            imap = server.connect()
            self.ok(imap.select("INBOX"))
            with self.subTest("reading sets Seen"):
                terminal.keys("i", "$")
                until("\\Seen", lambda: b"\\Seen" in imap.fetch("7", "(FLAGS)")[1][0])
            with self.subTest("deleting expunges"):
                terminal.keys("3", "Enter")
                terminal.keys("d", "$")
                until("expunge", lambda: int(imap.select("INBOX")[1][0]) == 20)
                left = imap.search(None, "SUBJECT", '"Letter number 3"')[1][0]
                self.assertEqual(left, b"")
            with self.subTest("new mail appears"):
                new = b"From: new@example.org\r\nSubject: Fresh from the server\r\n\r\nHello.\r\n"
                self.ok(imap.append("INBOX", None, None, new))
                terminal.wait_for("Fresh from the server")
            terminal.keys("q")
            imap.logout()

    def test_opens_the_corpus(self):
        """6,046 real messages; the last page of the index is drawn, and a message of it opens."""
        messages = corpus()
        write_maildir(self.folder / "source", messages)
        add_user(self.data)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", self.folder / "source")
        with Server(self.data) as server:
            rc = self.folder / "muttrc"
            rc.write_text(configuration(server.port))
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc)
            self.addCleanup(terminal.close)
            terminal.wait_for(f"Msgs:{len(messages)}")
            terminal.keys("End")
            terminal.wait_for(f"\n{len(messages)} ")
            terminal.keys("Enter")
            terminal.wait_for(f"{len(messages)}/{len(messages)}")
            terminal.keys("q")
            terminal.keys("q")


if __name__ == "__main__":
    unittest.main()
