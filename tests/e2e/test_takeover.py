"""Accounts that another server has made are taken over: a client that had synchronised with that server downloads nothing again.

Each test has the old server make an account (mailboxes, flags, keywords, gaps in the UIDs), lets mbsync synchronise with it, ends it, and gives its files to
Mailyard: in place, or by `mailyard import`. Then mbsync goes on with its state as it was, by way of a relay that counts the messages it asks for.
"""

import os
import re
import shutil
import socket
import subprocess
import threading
import unittest

import cyrus
import dovecot
import support
from courier import Courier
from support import Case, Server, add_user, all_messages, flags_of, tool

MBSYNC_SECONDS = 300
USER = support.USER
# As people type them and as they are on the wire of IMAP4rev1.
MAILBOXES = ["INBOX", "Lists", "Lists/ilug", "Gr&APYA3w-e"]
# With mbox files Dovecot has no mailbox with both messages and others below it.
FLAT_MAILBOXES = ["INBOX", "Lists", "Deep/ilug", "Gr&APYA3w-e"]
FLAGS = ["", "\\Seen", "\\Flagged $Label1", "\\Answered \\Seen", "\\Draft", "work \\Seen"]
MESSAGES = 12


def message(mailbox, number):
    text = f"From: a@example.org\r\nSubject: {mailbox} {number}\r\nMessage-ID: <{number}.{mailbox}@example.org>\r\n\r\nline\r\n"
    return (text + "another\r\n" * number).encode()


def fill(imap, separator, prefix="", mailboxes=MAILBOXES):
    """Makes the account: mailboxes of messages with every flag, of which some are expunged again, the last one included."""
    for mailbox in mailboxes:
        name = mailbox if mailbox == "INBOX" else prefix + mailbox.replace("/", separator)
        quoted = f'"{name}"'
        if mailbox != "INBOX":
            expect(imap.create(quoted))
            expect(imap.subscribe(quoted))
        for number in range(MESSAGES):
            date = f'"{number + 1:2}-Feb-2003 04:05:06 +0000"'
            expect(imap.append(quoted, f"({FLAGS[number % len(FLAGS)]})", date, message(mailbox, number)))
        expect(imap.select(quoted))
        expect(imap.store(f"3,7,{MESSAGES}", "+FLAGS.SILENT", "(\\Deleted)"))
        expect(imap.expunge())


def expect(answer):
    assert answer[0] == "OK", answer


def summary(imap, separator, prefix="", mailboxes=MAILBOXES):
    """Of each mailbox UIDVALIDITY, UIDNEXT, and UID, flags, date and size of its messages."""
    found = {}
    for mailbox in mailboxes:
        name = mailbox if mailbox == "INBOX" else prefix + mailbox.replace("/", separator)
        status = imap.status(f'"{name}"', "(UIDVALIDITY UIDNEXT)")[1][0]
        numbers = [int(re.search(key + rb" (\d+)", status)[1]) for key in (b"UIDVALIDITY", b"UIDNEXT")]
        rows = [(values["UID"], frozenset(flags_of(values)), values["INTERNALDATE"].lstrip(b" 0"), values["RFC822.SIZE"])
                for values in all_messages(imap, name, "(UID FLAGS INTERNALDATE RFC822.SIZE)")]
        found[mailbox] = (numbers, rows)
    return found


class Relay:
    """A way to a server on which the messages are counted that a client asks for."""

    def __init__(self, port):
        self.to = port
        self.asked = 0
        self.listener = socket.create_server(("127.0.0.1", support.free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.to))
            threading.Thread(target=self.copy, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, False), daemon=True).start()

    def copy(self, source, to, counts):
        with source, to:
            for piece in iter(lambda: source.recv(65536), b""):
                if counts:
                    self.asked += len(re.findall(rb"BODY(?:\.PEEK)?\[\]|RFC822[ )]", piece))
                to.sendall(piece)
            try:
                to.shutdown(socket.SHUT_WR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Takeover(Case):
    def mbsync(self, where):
        """Synchronises both ways; gives what it says it has done: `+1 *2 #3` for the far and for the near side."""
        near = self.folder / "near"
        (near / "state").mkdir(parents=True, exist_ok=True)
        config = self.folder / "mbsyncrc"
        config.write_text(f"""
FSync no
IMAPAccount far
DisableExtension COMPRESS=DEFLATE
{where}

IMAPStore far
Account far

MaildirStore near
Path {near}/
Inbox {near}/INBOX
SubFolders Verbatim

Channel all
Far :far:
Near :near:
Patterns *
Create Both
Expunge Both
Sync All
CopyArrivalDate yes
SyncState {near}/state/
""")
        done = subprocess.run(["mbsync", "-c", config, "all"], capture_output=True, timeout=MBSYNC_SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8"))
        said = done.stdout.decode() + done.stderr.decode()
        self.assertEqual(done.returncode, 0, said)
        return {str(path.relative_to(near)) for path in near.rglob("*") if path.is_file() and path.parent.name in ("cur", "new")}

    @staticmethod
    def host(port, user=USER, password=support.PASSWORD):
        return f'Host 127.0.0.1\nPort {port}\nUser {user}\nPass "{password}"\nSSLType None\nAuthMechs LOGIN'

    def check(self, before, files):
        """The account is what it was, and the client has nothing to download."""
        count = sum(len(rows) for _, rows in before.values())
        self.assertEqual(len(files), count)
        with Server(self.data) as server:
            relay = Relay(server.port)
            self.addCleanup(relay.close)
            # Commands have to be readable on the way: without compression.
            imap = server.connect()
            self.assertEqual(summary(imap, "/", mailboxes=list(before)), before)
            self.assertEqual(self.mbsync(self.host(relay.port)), files)
            self.assertEqual(relay.asked, 0, "messages were downloaded again")
            # It is really in step: what comes now is one message there.
            expect(imap.append("Lists", "", None, message("new", 1)))
            self.assertEqual(len(self.mbsync(self.host(relay.port)) - files), 1)
            self.assertEqual(relay.asked, 1)
            self.assertEqual(self.last_uid(imap, "Lists"), before["Lists"][0][1], "UIDNEXT of the old server is the next UID here")
            imap.logout()

    def last_uid(self, imap, mailbox):
        expect(imap.select(mailbox))
        return int(imap.uid("SEARCH", "*")[1][0])

    def of_dovecot(self, location, separator, mailboxes=MAILBOXES):
        """An account that Dovecot has made, and its home; what it was; what mbsync has of it."""
        with dovecot.Dovecot(self.folder, location) as old:
            imap = old.connect(USER)
            fill(imap, separator, mailboxes=mailboxes)
            files = self.mbsync(self.host(old.port, USER, dovecot.PASSWORD))
            before = summary(imap, separator, mailboxes=mailboxes)
            imap.logout()
            return old.home / USER, before, files

    def of_courier(self):
        old = Courier(self.folder / "courier")
        imap = old.connect()
        fill(imap, ".", "INBOX.")
        files = self.mbsync(f'Tunnel "{old.command()}"')
        before = summary(imap, ".", "INBOX.")
        imap.logout()
        return old.folder / "Maildir", before, files

    def of_cyrus(self):
        server = cyrus.Cyrus(self.folder)
        with server as old:
            old.add_user(USER)
            old.add_user("bob")
            imap = old.connect(USER)
            fill(imap, "/")
            files = self.mbsync(self.host(old.port, USER, "anything"))
            before = summary(imap, "/")
            imap.logout()
        return server.folder, before, files

    def bring(self, *paths):
        """Imports twice: the second time there is nothing to do."""
        add_user(self.data)
        _, out, err = tool(self.data, "import", "--user", USER, *paths)
        _, again, _ = tool(self.data, "import", "--user", USER, *paths)
        self.assertRegex(again, r"(?m)^imported: 0$", out + err + again)

    def test_import_of_dovecots_maildir(self):
        home, before, files = self.of_dovecot("maildir:~/Maildir", ".")
        self.bring(home / "Maildir")
        self.check(before, files)

    def test_import_of_dovecots_maildir_with_directories(self):
        home, before, files = self.of_dovecot("maildir:~/Maildir:LAYOUT=fs", "/")
        self.bring(home / "Maildir")
        self.check(before, files)

    def test_import_of_couriers_maildir(self):
        maildir, before, files = self.of_courier()
        self.bring(maildir)
        self.check(before, files)

    def test_import_of_a_cyrus_spool(self):
        folder, before, files = self.of_cyrus()
        subscriptions = sorted((folder / "conf/user").rglob("sub.db"))
        self.assertTrue(subscriptions)
        self.bring(folder / "spool", *subscriptions[:1])
        self.check(before, files)

    def serve(self, root, *more):
        """Makes an account of the Maildirs that are there."""
        tool(self.data, "user", "add", USER, "--password-stdin", "--format", "maildir", "--mail-root", root, *more,
             stdin=support.PASSWORD.encode() + b"\n")

    def test_dovecots_maildir_in_place(self):
        home, before, files = self.of_dovecot("maildir:~/Maildir", ".")
        self.serve(home / "Maildir")
        self.check(before, files)

    def test_dovecots_maildir_with_directories_in_place(self):
        home, before, files = self.of_dovecot("maildir:~/Maildir:LAYOUT=fs", "/")
        self.serve(home / "Maildir", "--layout", "fs")
        self.check(before, files)

    def test_couriers_maildir_in_place(self):
        maildir, before, files = self.of_courier()
        self.serve(maildir)
        self.check(before, files)

    def test_import_of_dovecots_mbox_files(self):
        home, before, files = self.of_dovecot("mbox:~/mail:INBOX=~/inbox", "/", FLAT_MAILBOXES)
        self.bring(home / "mail")
        tool(self.data, "import", "--user", USER, "--mailbox", "INBOX", home / "inbox")
        self.check(before, files)

    def test_dovecots_mbox_files_in_place(self):
        home, before, files = self.of_dovecot("mbox:~/mail:INBOX=~/inbox", "/", FLAT_MAILBOXES)
        tool(self.data, "user", "add", USER, "--password-stdin", "--format", "mbox", "--inbox", home / "inbox", "--mail-root",
             home / "mail", stdin=support.PASSWORD.encode() + b"\n")
        self.check(before, files)


if __name__ == "__main__":
    unittest.main()
