"""Debian's Dovecot and Mailyard on one mbox file: each reads the UIDs, flags and keywords that the other wrote, and nothing is lost."""

import imaplib
import os
import shlex
import unittest

from mbox_sharing import SharedCase, file_names, letter, listed
from support import Server, add_mbox_user, tool, until

IMAP = "/usr/lib/dovecot/imap"
# Dovecot opens no mail as root; who runs this as root lends the files to nobody (Debian: 65534).
NOBODY = 65_534
CONFIG = """
mail_location = mbox:{folder}/dovecot:INBOX={inbox}:INDEX={folder}/dovecot-index
base_dir = {folder}/run
log_path = {folder}/log
ssl = no
mbox_read_locks = fcntl
mbox_write_locks = fcntl dotlock
mbox_lazy_writes = yes
mail_fsync = always
namespace inbox {{
  inbox = yes
}}
"""
FLAGS = {"\\Seen", "\\Answered", "\\Flagged", "\\Deleted", "\\Draft", "work", "$Forwarded"}


class DovecotImap(imaplib.IMAP4_stream):
    """Dovecot's imap, logged in from the start, without its master process."""


class Dovecot(SharedCase):
    def setUp(self):
        super().setUp()
        self.place = self.folder / "dovecot"
        for name in ("dovecot", "run", "home"):
            (self.place / name).mkdir(parents=True)
        self.dovecot_config = self.place / "dovecot.conf"
        self.dovecot_config.write_text(CONFIG.format(folder=self.place, inbox=self.inbox))
        self.as_root = os.geteuid() == 0

    def lend(self):
        """Makes the files such that Dovecot may change them. Dotlocks are made beside INBOX."""
        if not self.as_root:
            return
        self.folder.chmod(0o711)
        for top in (self.folder / "mail", self.place):
            for path in [top, *top.rglob("*")]:
                os.chown(path, NOBODY, NOBODY)

    def dovecot(self):
        """A session of Dovecot on the same INBOX."""
        self.lend()
        words = [IMAP, "-c", str(self.dovecot_config)]
        if self.as_root:
            words = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *words]
        home = self.place / "home"
        command = f"cd {shlex.quote(str(home))} && HOME={shlex.quote(str(home))} USER=alice exec {shlex.join(words)}"
        imap = DovecotImap(command)
        self.addCleanup(self.end, imap)
        self.ok(imap.select("INBOX"))
        return imap

    def end(self, imap):
        imap.process.kill()
        imap.process.wait()

    def numbers(self, imap):
        """UIDVALIDITY and what is listed."""
        return int(imap.response("UIDVALIDITY")[1][-1]), listed(imap)

    def test_dovecot_reads_what_we_write(self):
        self.put(*(letter(f"letter-{number}") for number in range(8)))
        with self.server:
            imap = self.client()
            # Gaps in the UIDs, and one of every flag.
            self.ok(imap.store("2,5", "+FLAGS.SILENT", "(\\Deleted)"))
            self.ok(imap.expunge())
            for number, flag in enumerate(sorted(FLAGS - {"\\Deleted"}), start=1):
                self.ok(imap.store(str(number), "FLAGS", f"({flag})"))
            self.ok(imap.store("3", "+FLAGS", "(\\Deleted work $Forwarded)"))
            self.ok(imap.append("INBOX", "(\\Seen other)", None, letter("appended").replace(b"\n", b"\r\n")))
            self.ok(imap.check())
            ours = self.numbers(imap)
            until("the file", lambda: len(file_names(self.inbox)) == len(ours[1]))
            theirs = self.dovecot()
            self.assertEqual(self.numbers(theirs), ours)
            theirs.logout()
            self.ok(imap.noop())
            self.assertEqual(listed(imap), ours[1])
            imap.logout()

    def test_we_read_what_dovecot_writes(self):
        self.put(*(letter(f"letter-{number}") for number in range(8)))
        theirs = self.dovecot()
        self.ok(theirs.store("1,4", "+FLAGS.SILENT", "(\\Deleted)"))
        self.ok(theirs.expunge())
        for number, flag in enumerate(sorted(FLAGS - {"\\Deleted"}), start=1):
            self.ok(theirs.store(str(number), "FLAGS", f"({flag} \\Seen)"))
        self.ok(theirs.store("3", "+FLAGS", "(\\Deleted work $Forwarded)"))
        self.ok(theirs.append("INBOX", "(\\Answered other)", None, letter("appended").replace(b"\n", b"\r\n")))
        known = self.numbers(theirs)
        self.ok(theirs.check())
        theirs.logout()
        with self.server:
            imap = self.client()
            self.assertEqual(self.numbers(imap), known)
            imap.logout()

    def test_both_at_once(self):
        self.put(*(letter(f"letter-{number}") for number in range(12)))
        with self.server:
            imap = self.client()
            ours = self.numbers(imap)
            # A file that is only read says nothing of UIDs, and Dovecot would take a UIDVALIDITY from the clock.
            self.ok(imap.store("12", "+FLAGS.SILENT", "(\\Seen)"))
            self.ok(imap.check())
            theirs = self.dovecot()
            self.assertEqual(self.numbers(theirs)[0], ours[0])
            for turn, flag in enumerate(["\\Flagged", "work", "\\Answered", "\\Draft"]):
                with self.subTest("they change, we see", flag=flag):
                    self.ok(theirs.store(str(turn + 1), "+FLAGS", f"({flag})"))
                    self.ok(theirs.check())
                    there = self.sees(imap, flag, lambda there: flag in there[f"letter-{turn}"][1])
                    self.same_uids(ours[1], there)
                with self.subTest("we change, they see", flag=flag):
                    self.ok(imap.store(str(turn + 1), "-FLAGS", f"({flag})"))
                    self.ok(imap.store(str(turn + 2), "+FLAGS", f"({flag})"))
                    self.ok(imap.check())
                    there = self.sees(theirs, flag, lambda there: flag not in there[f"letter-{turn}"][1] and
                                      flag in there[f"letter-{turn + 1}"][1])
                    self.same_uids(ours[1], there)
            with self.subTest("expunging"):
                self.ok(theirs.store("12", "+FLAGS.SILENT", "(\\Deleted)"))
                self.ok(theirs.expunge())
                self.ok(theirs.check())
                self.sees(imap, "their expunge", lambda there: "letter-11" not in there)
                self.ok(imap.store("1", "+FLAGS.SILENT", "(\\Deleted)"))
                self.ok(imap.expunge())
                self.ok(imap.check())
                self.sees(theirs, "our expunge", lambda there: "letter-0" not in there)
            with self.subTest("appending"):
                self.ok(theirs.append("INBOX", None, None, letter("by them").replace(b"\n", b"\r\n")))
                self.ok(imap.append("INBOX", None, None, letter("by us").replace(b"\n", b"\r\n")))
                both = {"by them", "by us"}
                there = self.sees(imap, "both", lambda there: both <= there.keys())
                self.assertEqual(self.sees(theirs, "both", lambda there: both <= there.keys()).keys(), there.keys())
            theirs.logout()
            self.assertEqual({name: uid for name, (uid, _) in listed(imap).items()},
                             {name: uid for name, (uid, _) in there.items()})
            imap.logout()

    def test_moving_in(self):
        """A file that Dovecot has served: a new account on it has its UIDVALIDITY, its UIDs and its next UID."""
        self.put(*(letter(f"letter-{number}") for number in range(5)))
        theirs = self.dovecot()
        self.ok(theirs.store("5", "+FLAGS.SILENT", "(\\Deleted)"))
        self.ok(theirs.expunge())
        known = self.numbers(theirs)
        self.ok(theirs.check())
        theirs.logout()
        other = self.folder / "other"
        other.mkdir()
        inbox, _ = add_mbox_user(other, self.folder / "other-mail", user="bob")
        inbox.write_bytes(self.inbox.read_bytes())
        with Server(other) as server:
            imap = server.connect(user="bob")
            self.ok(imap.select("INBOX"))
            self.assertEqual(self.numbers(imap), known)
            self.ok(imap.append("INBOX", None, None, letter("next").replace(b"\n", b"\r\n")))
            # The UID of what Dovecot expunged is not used again.
            self.assertGreater(listed(imap)["next"][0], 5)
            imap.logout()
        tool(other, "check")


if __name__ == "__main__":
    unittest.main()
