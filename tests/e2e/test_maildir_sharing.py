"""A Maildir in the hands of others while clients are connected: nothing is lost, flags travel both ways, UIDs stay, IDLE wakes."""

import mailbox
import os
import time
import unittest

import dovecot
import support
from mbox_sharing import WatchingCase, field, letter, listed, run
from support import Server, add_maildir_user, until
from test_idle import Idler


class Sharing(WatchingCase):
    def setUp(self):
        super().setUp()
        self.root = add_maildir_user(self.data, self.folder / "mail")
        self.server = Server(self.data)
        self.addCleanup(self.server.kill)

    def client(self, name="INBOX"):
        imap = self.server.connect()
        self.ok(imap.select(name))
        return imap

    def box(self):
        return mailbox.Maildir(self.root, factory=None, create=False)

    def names(self):
        """{subject: letters of flags}, of the files."""
        return {message["Subject"]: message.get_flags() for message in self.box()}

    def test_delivery_wakes_idle(self):
        rc = self.folder / "maildroprc"
        rc.write_text(f'to "{self.root}"\n')
        rc.chmod(0o600)
        deliverers = {
            "python": lambda raw: self.box().add(raw),
            "maildrop": lambda raw: run("maildrop", rc, stdin=raw),
        }
        with self.server:
            idler = Idler(self.client())
            for count, (name, deliver) in enumerate(deliverers.items(), start=1):
                since = len(idler.lines)
                deliver(letter(name))
                delivered = time.perf_counter()
                arrived = idler.when(b"* %d EXISTS" % count, since)
                print(f"{name}: IDLE told {(arrived - delivered) * 1000:.0f} ms after delivery")
            idler.done()
            self.assertEqual(listed(self.client()).keys(), set(deliverers))

    def test_flags_and_deletions_both_ways(self):
        keys = {name: self.box().add(letter(name)) for name in ("one", "two", "three", "four")}
        with self.server:
            imap = self.client()
            before = self.sees(imap, "all four", lambda found: len(found) == 4)
            # Theirs.
            box = self.box()
            for name, flags in (("one", "S"), ("two", "FR")):
                message = box[keys[name]]
                message.set_subdir("cur")
                message.set_flags(flags)
                box[keys[name]] = message
            box.remove(keys["three"])
            after = self.sees(imap, "their changes", lambda found: "three" not in found and found["one"][1] == {"\\Seen"})
            self.assertEqual(after["two"][1], {"\\Flagged", "\\Answered"})
            # Ours.
            self.ok(imap.uid("STORE", str(before["four"][0]), "+FLAGS.SILENT", r"(\Seen \Draft)"))
            self.ok(imap.uid("STORE", str(before["one"][0]), "FLAGS.SILENT", r"(\Deleted)"))
            self.assertEqual(self.names(), {"one": "T", "two": "FR", "four": "DS"})
            self.ok(imap.expunge())
            self.assertEqual(self.names(), {"two": "FR", "four": "DS"})
            self.ok(imap.append("INBOX", r"(\Flagged)", None, support.crlf(letter("five"))))
            self.assertEqual(self.names(), {"two": "FR", "four": "DS", "five": "F"})
            now = self.sees(imap, "the new one", lambda found: "five" in found)
            for name in now.keys() & before.keys():
                self.assertEqual(now[name][0], before[name][0], name)
            self.assertGreater(now["five"][0], max(uid for uid, _ in before.values()))
        with self.server:
            self.assertEqual(listed(self.client()), now)

    def test_dovecot_beside(self):
        """Dovecot serves the same tree at the same time."""
        for name in ("one", "two", "three"):
            self.box().add(letter(name))
        os.chmod(self.folder, 0o755)
        for place in (self.root.parent, *self.root.rglob("*"), self.root):
            os.chown(place, *dovecot.OWNER)
        with self.server, dovecot.Dovecot(self.folder, f"maildir:{self.root}") as other:
            theirs, ours = other.connect(support.USER), self.client()
            self.ok(theirs.select("INBOX"))
            before = self.sees(ours, "all three", lambda found: len(found) == 3)
            number = {field(raw[0][1], "Subject"): n for n in range(1, 4)
                      for raw in [self.ok(theirs.fetch(str(n), "(BODY.PEEK[])"))]}
            self.ok(theirs.store(str(number["one"]), "+FLAGS.SILENT", r"(\Seen $Label1)"))
            self.ok(theirs.store(str(number["two"]), "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(theirs.expunge())
            self.ok(theirs.append("INBOX", r"(\Flagged)", None, support.crlf(letter("from there"))))
            now = self.sees(ours, "what Dovecot did", lambda found: "two" not in found and "from there" in found)
            self.assertEqual(now["one"], (before["one"][0], {"\\Seen", "$Label1"}))
            self.assertEqual(now["from there"][1], {"\\Flagged"})
            self.ok(ours.uid("STORE", str(now["three"][0]), "+FLAGS.SILENT", r"(\Answered $Label1)"))
            self.ok(ours.append("INBOX", None, None, support.crlf(letter("from here"))))
            for place in self.root.rglob("*"):
                os.chown(place, *dovecot.OWNER)

            def has_it():
                self.ok(theirs.noop())
                found = {}
                for n in self.ok(theirs.search(None, "ALL"))[0].split():
                    for part in self.ok(theirs.fetch(n.decode(), "(FLAGS BODY.PEEK[])")):
                        if isinstance(part, tuple):
                            found[field(part[1], "Subject")] = part[0]
                return found if "from here" in found and b"$Label1" in found["three"] and b"\\Answered" in found["three"] else None

            until("what we did at Dovecot", has_it)


if __name__ == "__main__":
    unittest.main()
