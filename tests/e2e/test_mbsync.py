"""mbsync pulls an account into a Maildir and pushes it into a second account: the same mailboxes, bytes, flags and dates."""

import collections
import os
import re
import subprocess
import unittest

import support
from support import Case, Server, add_user, all_messages, corpus, flags_of, tool, write_maildir

SECOND = "bob"
MBSYNC_SECONDS = 300

# What Maildir has letters for.
FLAGS = ["", "\\Seen", "\\Flagged", "\\Answered \\Seen", "\\Draft", "\\Seen \\Flagged"]

MAILBOXES = ["INBOX", "Lists", "Lists/ilug", "Archive 2002", "Größe & Maß"]


def utf7(name):
    """RFC 3501 §5.1.3, for names on the wire."""
    def encoded(match):
        import base64
        text = base64.b64encode(match[0].encode("utf-16-be")).rstrip(b"=").replace(b"/", b",")
        return "&" + text.decode() + "-"
    return re.sub(r"[^\x20-\x7e]+", encoded, name.replace("&", "&-"))


def configuration(folder, port):
    def store(name, user):
        return f"""
IMAPAccount {name}
Host 127.0.0.1
Port {port}
User {user}
Pass "{support.PASSWORD}"
SSLType None
AuthMechs LOGIN

IMAPStore {name}
Account {name}
"""
    def channel(name, far, direction):
        state = folder / f"state-{name}"
        state.mkdir(exist_ok=True)
        create = "Near" if direction == "Pull" else "Far"
        return f"""
Channel {name}
Far :{far}:
Near :files:
Patterns *
Create {create}
Sync {direction}
CopyArrivalDate yes
SyncState {state}/
"""
    maildir = f"""
MaildirStore files
Path {folder}/files/
Inbox {folder}/files/INBOX
SubFolders Verbatim
"""
    text = "FSync no\n" + store("first", support.USER) + store("second", SECOND) + maildir
    return text + channel("pull", "first", "Pull") + channel("push", "second", "Push")


class Mbsync(Case):
    def test_through_a_maildir(self):
        messages = corpus()
        for user in (support.USER, SECOND):
            add_user(self.data, user)
        parts = [messages[0:3000], messages[3000:3100], messages[3100:4000], messages[4000:4010], messages[4010:4300]]
        for number, (mailbox, part) in enumerate(zip(MAILBOXES, parts)):
            maildir = self.folder / f"source-{number}"
            write_maildir(maildir, part)
            tool(self.data, "import", "--user", support.USER, "--mailbox", mailbox, maildir)
        (self.folder / "files").mkdir()
        config = self.folder / "mbsyncrc"
        with Server(self.data) as server:
            config.write_text(configuration(self.folder, server.port))
            imap = server.connect()
            self.set_flags(imap)
            self.mbsync(config, "pull")
            self.mbsync(config, "push")
            other = server.connect(SECOND)
            for mailbox, part in zip(MAILBOXES, parts):
                with self.subTest(mailbox):
                    first = self.summary(imap, mailbox)
                    second = self.summary(other, mailbox)
                    self.assertEqual(sum(first.values()), len(part))
                    self.assertEqual(sum(second.values()), len(part))
                    self.assertEqual(first - second, collections.Counter(), "changed on the way")
            with self.subTest("a second run has nothing to do"):
                before = self.summary(other, "Lists")
                self.mbsync(config, "pull")
                self.mbsync(config, "push")
                self.assertEqual(self.summary(other, "Lists"), before)
            imap.logout()
            other.logout()

    def set_flags(self, imap):
        for mailbox in MAILBOXES:
            count = int(self.ok(imap.select(f'"{utf7(mailbox)}"'))[0])
            for number, flags in enumerate(FLAGS):
                if flags:
                    chosen = ",".join(str(n) for n in range(1 + number, count + 1, len(FLAGS)))
                    self.ok(imap.store(chosen, "FLAGS.SILENT", f"({flags})"))

    def summary(self, imap, mailbox):
        """Each message as (bytes, flags, date), counted."""
        counted = collections.Counter()
        for values in all_messages(imap, utf7(mailbox), "(FLAGS INTERNALDATE BODY.PEEK[])"):
            # mbsync marks what it copies with a header field of its own, and gives a Maildir LF line ends, in which a message that has
            # both kinds loses the difference.
            raw = re.sub(rb"(?m)^X-TUID: .*\r\n", b"", values["BODY[]"])
            raw = re.sub(rb"\r+\n", b"\r\n", raw)
            counted[raw, flags_of(values), values["INTERNALDATE"]] += 1
        return counted

    def mbsync(self, config, channel):
        environment = dict(os.environ, LC_ALL="C.UTF-8")
        done = subprocess.run(["mbsync", "-c", config, channel], capture_output=True, timeout=MBSYNC_SECONDS, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout.decode() + done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
