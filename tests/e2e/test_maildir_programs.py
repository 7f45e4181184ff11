"""mutt and mbsync on a Maildir that Mailyard serves, and Dovecot beside it: flags travel both ways, nothing is lost or doubled, UIDs stay."""

import mailbox
import os
import shutil
import subprocess
import unittest

import dovecot
import support
from mbox_sharing import WatchingCase, field, letter, listed
from support import Server, add_maildir_user, add_user, fetch, flags_of, until
from test_mutt import Terminal

MUTT = """
set mbox_type = Maildir
set spoolfile = "{root}"
set folder = "{root}"
unset record
set move = no
set mark_old = no
set sleep_time = 0
set sort = subject
set delete = yes
set confirmappend = no
set mail_check = 1
set timeout = 1
set index_format = "%4C %Z %-20.20L %s"
"""

MBSYNC = """
FSync no
IMAPAccount far
Host 127.0.0.1
Port {port}
User {user}
Pass "{password}"
SSLType None
AuthMechs LOGIN

IMAPStore far
Account far

MaildirStore near
Path {folder}/nothing/
Inbox {root}
SubFolders Verbatim

Channel both
Far :far:INBOX
Near :near:INBOX
Expunge Both
Sync All
SyncState {folder}/state/
"""
MBSYNC_SECONDS = 120
SECOND = "bob"


def subjects(imap):
    """{subject: (UID, flags)} of the selected mailbox; nobody is there twice."""
    if not imap.search(None, "ALL")[1][0]:
        return {}
    found = {}
    for values in fetch(imap, "1:*", "(UID FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])").values():
        name = field(values["BODY[HEADER.FIELDS (SUBJECT)]"].replace(b"\r\n", b"\n"), "Subject")
        if name in found:
            raise AssertionError(f"{name} is there twice: {found[name]} and {values['UID']}")
        found[name] = (values["UID"], flags_of(values))
    return found


class Programs(WatchingCase):
    def setUp(self):
        super().setUp()
        self.root = add_maildir_user(self.data, self.folder / "mail")
        self.server = Server(self.data)
        self.addCleanup(lambda: self.server.kill())

    def client(self, user=support.USER, name="INBOX"):
        imap = self.server.connect(user)
        self.ok(imap.select(name))
        return imap

    def deliver(self, *names):
        box = mailbox.Maildir(self.root, factory=None, create=False)
        for name in names:
            box.add(letter(name))

    def subjects_in_files(self, root=None):
        return sorted(message["Subject"] for message in mailbox.Maildir(root or self.root, factory=None, create=False))

    def comes_to(self, imap, what, look):
        """NOOP until what is there satisfies `look`; gives it."""
        def looking():
            self.ok(imap.noop())
            found = subjects(imap)
            return (found,) if look(found) else None
        return until(what, looking)[0]

    def test_mutt(self):
        self.deliver(*(f"letter-{number:02}" for number in range(1, 11)))
        rc = self.folder / "muttrc"
        rc.write_text(MUTT.format(root=self.root))
        with self.server:
            imap = self.client()
            self.ok(imap.create("work"))
            before = self.sees(imap, "all", lambda there: len(there) == 10)
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc, "-f", self.root)
            self.addCleanup(terminal.close)
            terminal.wait_for("letter-10")
            # Important, read, deleted, moved; and written.
            terminal.keys("2", "Enter", "F", "4", "Enter", "N", "6", "Enter", "d")
            terminal.keys("7", "Enter", "s", "C-u", f"{self.root}/.work", "Enter", "$")
            after = self.sees(imap, "what mutt did", lambda there: not {"letter-06", "letter-07"} & there.keys() and
                              "\\Flagged" in there["letter-02"][1] and "\\Seen" in there["letter-04"][1])
            self.assertEqual(len(after), 8)
            self.same_uids(before, after)
            # With a Content-Length from mutt.
            work = self.client(name="work")
            self.comes_to(work, "what was moved", lambda there: there.keys() == {"letter-07"})

            # The other way.
            self.ok(imap.uid("STORE", str(after["letter-08"][0]), "+FLAGS", "(\\Flagged \\Answered)"))
            self.ok(imap.uid("STORE", str(after["letter-09"][0]), "+FLAGS", "(\\Deleted)"))
            self.ok(imap.expunge())
            self.assertNotIn("letter-09", self.subjects_in_files())
            # What mutt has open it may not know yet: another one looks.
            terminal.keys("x")
            terminal.close()
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc, "-f", self.root)
            self.addCleanup(terminal.close)
            screen = terminal.wait_for("letter-10")
            line = next(line for line in screen.splitlines() if "letter-08" in line)
            self.assertIn("!", line)
            self.assertNotIn("letter-09", screen)
            terminal.keys("x")
            final = self.sees(imap, "all that is left", lambda there: len(there) == 7)
            self.same_uids(before, final)

    def test_mbsync(self):
        add_user(self.data, SECOND)
        for directory in ("state", "nothing"):
            (self.folder / directory).mkdir()
        config = self.folder / "mbsyncrc"
        config.write_text(MBSYNC.format(port=self.server.port, user=SECOND, password=support.PASSWORD, root=self.root,
                                        folder=self.folder))
        self.deliver("one", "two", "three")
        with self.server:
            near, far = self.client(), self.client(SECOND)
            before = self.comes_to(near, "all three", lambda there: len(there) == 3)
            self.mbsync(config)
            # Its names have a field more; the messages are who they were.
            self.assertTrue(all(",U=" in path.name for path in (self.root / "cur").iterdir()))
            copied = self.comes_to(far, "all three", lambda there: len(there) == 3)
            self.same(before, self.comes_to(near, "the same", lambda there: len(there) == 3))
            # New mail, flags and deletions on both sides at once.
            self.ok(near.uid("STORE", str(before["one"][0]), "+FLAGS", r"(\Seen)"))
            self.ok(far.uid("STORE", str(copied["one"][0]), "+FLAGS", r"(\Flagged)"))
            self.ok(near.uid("STORE", str(before["two"][0]), "+FLAGS", r"(\Deleted)"))
            self.ok(near.expunge())
            self.ok(far.uid("STORE", str(copied["three"][0]), "+FLAGS", r"(\Deleted)"))
            self.ok(far.expunge())
            self.ok(far.append("INBOX", r"(\Answered)", None, support.crlf(letter("four"))))
            self.ok(near.append("INBOX", None, None, support.crlf(letter("five"))))
            self.deliver("six")
            self.mbsync(config)
            names = {"one", "four", "five", "six"}
            here = self.comes_to(near, "what came", lambda there: there.keys() == names)
            there = self.comes_to(far, "what came", lambda there: there.keys() == names)
            self.same(before, here)
            self.same(copied, there)
            for found in (here, there):
                self.assertEqual(found["one"][1], {"\\Seen", "\\Flagged"})
                self.assertEqual(found["four"][1], {"\\Answered"})
            self.mbsync(config)
            self.assertEqual((subjects(near), subjects(far)), (here, there))
            self.assertEqual(self.subjects_in_files(), sorted(names))
        with self.server:
            self.assertEqual(subjects(self.client()), here)

    def same(self, before, after):
        """Whoever is in both has the same UID."""
        for name in before.keys() & after.keys():
            self.assertEqual(before[name][0], after[name][0], name)

    def mbsync(self, config):
        done = subprocess.run(["mbsync", "-c", config, "both"], capture_output=True, timeout=MBSYNC_SECONDS,
                              env=dict(os.environ, LC_ALL="C.UTF-8", HOME=str(self.folder)))
        self.assertEqual(done.returncode, 0, done.stdout.decode() + done.stderr.decode())

    def test_uids_are_those_of_dovecot(self):
        """Both serve the tree at the same time, as one user; who was there first does not matter."""
        for first in ("dovecot", "mailyard"):
            with self.subTest(first):
                self.uids_are_shared(first)

    def uids_are_shared(self, first):
        place = self.folder / first
        place.mkdir()
        for directory in (self.folder, place):
            os.chmod(directory, 0o755)
        user = f"user-{first}"
        self.root = add_maildir_user(self.data, place / "mail", user=user)
        config = place / "mailyard.toml"
        config.write_text('[maildir]\nuid_lists = "always"\n' if first == "mailyard" else "")
        program = place / "mailyard"
        shutil.copy(support.PROGRAM, program)
        for top in (self.data, place):
            for path in (top, *top.rglob("*")):
                os.chown(path, *dovecot.OWNER)
        self.server = Server(self.data, "--config", config, owner=dovecot.OWNER)
        self.server.program = program
        self.server.log = place / "log"
        other = dovecot.Dovecot(place, f"maildir:{self.root}")
        with self.server, other:
            ours = theirs = None
            for who in (first, "mailyard", "dovecot"):
                if who == "mailyard" and ours is None:
                    ours = self.client(user)
                if who == "dovecot" and theirs is None:
                    theirs = other.connect(user)
                    self.ok(theirs.select("INBOX"))
            names, has_mail = set(), {"mailyard": ours, "dovecot": theirs}
            for number in range(4):
                # Who looks first gives the UID.
                for who in has_mail:
                    names.add(f"{who}-sees-{number}")
                    self.as_owner(lambda: self.deliver(f"{who}-sees-{number}"))
                    self.comes_to(has_mail[who], "what was delivered", lambda there: there.keys() == names)
                    names.add(f"{who}-takes-{number}")
                    self.ok(has_mail[who].append("INBOX", None, None, support.crlf(letter(f"{who}-takes-{number}"))))
            self.agree(has_mail, names)
            # A mailbox that is new, and what is copied there by either.
            self.ok(ours.create("work"))
            self.ok(ours.copy("1:2", "work"))
            self.ok(theirs.copy("3:4", "work"))
            self.ok(ours.uid("MOVE", "5:6", "work"))
            for imap in has_mail.values():
                self.ok(imap.select("work"))
            found = self.comes_to(ours, "six", lambda there: len(there) == 6)
            self.agree(has_mail, set(found))
            self.ok(ours.uid("STORE", "1", "+FLAGS", r"(\Seen $Label1)"))
            self.comes_to(theirs, "the keyword", lambda there: any("$Label1" in flags for _, flags in there.values()))
        # One after the other.
        with other:
            theirs = other.connect(user)
            self.ok(theirs.select("work"))
            self.ok(theirs.append("work", None, None, support.crlf(letter("while it was away"))))
            after = self.comes_to(theirs, "all", lambda there: len(there) == 7)
        with self.server:
            ours = self.client(user, "work")
            self.assertEqual(subjects(ours), after)

    def as_owner(self, work):
        """Does something that makes files, which then belong to the servers' user."""
        work()
        for path in self.root.rglob("*"):
            if path.stat().st_uid != dovecot.OWNER[0]:
                os.chown(path, *dovecot.OWNER)

    def agree(self, servers, names):
        """Both have these messages, with the same UIDs and the same UIDVALIDITY."""
        found = [self.comes_to(imap, "everything", lambda there: there.keys() == names) for imap in servers.values()]
        uids = [{name: uid for name, (uid, _) in one.items()} for one in found]
        self.assertEqual(uids[0], uids[1])
        validity = [imap.response("UIDVALIDITY")[1] for imap in servers.values()]
        self.assertEqual(validity[0], validity[1])


if __name__ == "__main__":
    unittest.main()
