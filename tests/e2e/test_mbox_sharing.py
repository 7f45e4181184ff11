"""An mbox file in the hands of others while clients are connected: nothing is lost, flags travel both ways, UIDs stay, IDLE wakes."""

import mailbox
import os
import threading
import time
import unittest

from mbox_sharing import SharedCase, field, file_messages, file_names, in_mbox, letter, listed, locked, run
from support import TOOL_SECONDS, until
from test_idle import Idler
from test_mutt import Terminal

MUTT = """
set spoolfile = "{inbox}"
set folder = "{root}"
unset record
set move = no
set mark_old = no
set sleep_time = 0
set sort = mailbox-order
set delete = yes
set mail_check = 1
set timeout = 1
set index_format = "%4C %Z %-20.20L %s"
"""


class Sharing(SharedCase):
    def deliverers(self):
        """Ways in which mail comes into the file, by name."""
        rc = self.folder / "procmailrc"
        # The second colon: with a local lockfile, INBOX.lock.
        rc.write_text(f"LOCKSLEEP=1\nLOCKTIMEOUT=60\nDEFAULT={self.inbox}\n:0:\n{self.inbox}\n")
        # procmail trusts no file that others may write.
        rc.chmod(0o600)

        def procmail(raw):
            run("procmail", "-f", "writer@example.org", f"ORGMAIL={self.inbox}", rc, stdin=raw)

        def lockfile(raw):
            run("sh", "-c", 'lockfile -1 -r 60 "$0.lock" && { cat >> "$0"; rm -f "$0.lock"; }', self.inbox, stdin=in_mbox(raw))

        def dotlockfile(raw):
            script = 'dotlockfile -p -l -r 60 -i 1 "$0.lock" && { cat >> "$0"; dotlockfile -u "$0.lock"; }'
            run("sh", "-c", script, self.inbox, stdin=in_mbox(raw))

        def python(raw):
            box = mailbox.mbox(self.inbox, create=False)
            limit = time.monotonic() + 30
            while True:
                try:
                    box.lock()
                    break
                except mailbox.ExternalClashError:
                    if time.monotonic() > limit:
                        raise
                    time.sleep(0.01)
            try:
                box.add(in_mbox(raw)[:-1])
                box.flush()
            finally:
                box.unlock()
                box.close()

        return {"procmail": procmail, "lockfile": lockfile, "dotlockfile": dotlockfile, "python": python}

    def test_delivery_wakes_idle(self):
        self.put(letter("first"))
        with self.server:
            watcher = self.client()
            before = listed(watcher)
            idler = Idler(watcher)
            for count, (name, deliver) in enumerate(self.deliverers().items(), start=2):
                since = len(idler.lines)
                deliver(letter(name))
                delivered = time.perf_counter()
                arrived = idler.when(b"* %d EXISTS" % count, since)
                print(f"{name}: IDLE told {(arrived - delivered) * 1000:.0f} ms after delivery")
            idler.done()
            after = listed(watcher)
            self.assertEqual(list(after), ["first", "procmail", "lockfile", "dotlockfile", "python"])
            uids = [uid for uid, _ in after.values()]
            self.assertEqual(uids, sorted(uids))
            self.same_uids(before, after)
            watcher.logout()

    def test_everybody_at_once(self):
        """Four kinds of deliverers and two clients that flag, append and expunge; in the end everything is accounted for."""
        rounds = 12
        self.put(*(letter(f"old-{number}") for number in range(20)))
        failures, expunged, appended = [], set(), set()

        def guarded(work):
            def body():
                try:
                    work()
                except Exception as error:  # The thread's error is the test's.
                    failures.append(error)
            return threading.Thread(target=body)

        def delivering(name, deliver):
            return lambda: [deliver(letter(f"{name}-{number}")) for number in range(rounds)]

        def flagging():
            imap = self.client()

            def flag(sign):
                # Expunges are told by NOOP and not by STORE (RFC 9051 §7.5.1).
                imap.noop()
                return imap.store("1:5", f"{sign}FLAGS", "(\\Flagged keyword)")

            for number in range(rounds * 3):
                self.patiently(lambda: flag("+-"[number % 2]))
                self.patiently(imap.check)
            imap.logout()

        def coming_and_going():
            imap = self.client()
            for number in range(rounds):
                name = f"appended-{number}"
                self.patiently(lambda: imap.append("INBOX", None, None, letter(name).replace(b"\n", b"\r\n")))
                appended.add(name)
                self.patiently(imap.noop)
                there = listed(imap)
                doomed = f"old-{number}"
                self.patiently(lambda: imap.uid("STORE", str(there[doomed][0]), "+FLAGS.SILENT", "(\\Deleted)"))
                self.patiently(lambda: imap.uid("EXPUNGE", str(there[doomed][0])))
                expunged.add(doomed)
                if number % 4 == 3:
                    self.patiently(imap.close)
                    self.patiently(lambda: imap.select("INBOX"))
            imap.logout()

        with self.server:
            watcher = self.client()
            before = listed(watcher)
            threads = [guarded(delivering(name, deliver)) for name, deliver in self.deliverers().items()]
            threads += [guarded(flagging), guarded(coming_and_going)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(TOOL_SECONDS)
                self.assertFalse(thread.is_alive(), "somebody hangs")
            self.assertEqual(failures, [])
            wanted = {f"old-{number}" for number in range(20)} - expunged | appended
            wanted |= {f"{name}-{number}" for name in self.deliverers() for number in range(rounds)}
            after = self.sees(watcher, "everything", lambda there: there.keys() == wanted)
            self.same_uids(before, after)
            watcher.logout()
            until("everything in the file", lambda: sorted(file_names(self.inbox)) == sorted(wanted))
            again = self.client()
            self.assertEqual({name: uid for name, (uid, _) in listed(again).items()},
                             {name: uid for name, (uid, _) in after.items()})
            again.logout()

    def patiently(self, command):
        """A command, again while another program has the file: that is said as NO [INUSE]."""
        def attempt():
            status, data = command()
            if status == "NO":
                # RFC 5530: another program has the file; RFC 2180 §4.2: what was meant is gone, which is told by then.
                self.assertRegex(data[-1], rb"^\[(INUSE|EXPUNGEISSUED)\]")
                return None
            self.assertEqual(status, "OK", data)
            return True
        until("lock", attempt, seconds=60)

    def test_mutt_changes_flags_and_deletes(self):
        self.put(*(letter(f"letter-{number:02}") for number in range(1, 11)))
        rc = self.folder / "muttrc"
        rc.write_text(MUTT.format(inbox=self.inbox, root=self.root))
        with self.server:
            imap = self.client()
            before = listed(imap)
            inode = self.inbox.stat().st_ino
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc, "-f", self.inbox)
            self.addCleanup(terminal.close)
            terminal.wait_for("letter-10")
            # Important, read, deleted; and written.
            terminal.keys("2", "Enter", "F", "4", "Enter", "N", "6", "Enter", "d", "$")
            after = self.sees(imap, "what mutt did", lambda there: "letter-06" not in there and
                              "\\Flagged" in there["letter-02"][1])
            self.assertEqual(len(after), 9)
            self.same_uids(before, after)

            # The other way: flags of a client in mutt.
            self.ok(imap.uid("STORE", str(after["letter-08"][0]), "+FLAGS", "(\\Flagged \\Answered)"))
            self.ok(imap.uid("STORE", str(after["letter-09"][0]), "+FLAGS", "(\\Deleted)"))
            self.ok(imap.expunge())
            self.patiently(imap.check)
            until("the file", lambda: "letter-09" not in file_names(self.inbox))
            terminal.keys("q")
            until("mutt's end", lambda: not self.runs(terminal))
            self.assertEqual(self.inbox.stat().st_ino, inode)
            terminal = Terminal(self.folder, "mutt", "-n", "-F", rc, "-f", self.inbox)
            self.addCleanup(terminal.close)
            screen = terminal.wait_for("letter-10")
            line = next(line for line in screen.splitlines() if "letter-08" in line)
            self.assertIn("!", line)
            self.assertNotIn("letter-09", screen)
            terminal.keys("x")
            self.same_uids(before, listed(imap))
            imap.logout()

    def runs(self, terminal):
        try:
            return bool(terminal.screen())
        except AssertionError:
            return False

    def test_python_rewrites_the_file(self):
        """mailbox.mbox writes a new file and renames it: the inode changes, the messages stay who they are."""
        self.put(*(letter(f"letter-{number}") for number in range(6)))
        with self.server:
            imap = self.client()
            before = listed(imap)
            self.ok(imap.store("1:*", "+FLAGS", "(\\Seen)"))
            self.patiently(imap.check)
            box = mailbox.mbox(self.inbox, create=False)
            box.lock()
            box.remove(2)
            message = box[4]
            message.add_flag("F")
            box[4] = message
            box.add(in_mbox(letter("added"))[:-1])
            box.flush()
            box.unlock()
            box.close()
            after = self.sees(imap, "what was done", lambda there: "added" in there and "letter-2" not in there)
            self.same_uids(before, after)
            self.assertIn("\\Flagged", after["letter-4"][1])
            self.assertTrue(all("\\Seen" in flags for name, (_, flags) in after.items() if name != "added"))
            imap.logout()
            with self.subTest("and the other way"):
                imap = self.client()
                self.ok(imap.store("1", "+FLAGS", "(\\Answered \\Draft)"))
                self.ok(imap.store("1", "-FLAGS", "(\\Seen)"))
                self.patiently(imap.close)
                box = mailbox.mbox(self.inbox, create=False)
                # Blanks keep room for flags to come.
                self.assertEqual(set(box[0].get_flags()) - {" "}, set("OAT"))
                box.close()
                imap.logout()

    def test_two_clients(self):
        self.put(*(letter(f"letter-{number}") for number in range(4)))
        with self.server:
            one, other = self.client(), self.client()
            idler = Idler(other)
            self.ok(one.store("2", "+FLAGS", "(\\Flagged)"))
            idler.when(b"* 2 FETCH", 0)
            self.ok(one.store("1", "+FLAGS.SILENT", "(\\Deleted)"))
            since = len(idler.lines)
            self.ok(one.expunge())
            idler.when(b"* 1 EXPUNGE", since)
            with locked(self.inbox) as file:
                file.seek(0, os.SEEK_END)
                file.write(in_mbox(letter("fifth")))
            # The expunged one may still be in the file, and must not come back.
            idler.when(b" EXISTS", since)
            idler.done()
            self.assertEqual(list(listed(other)), ["letter-1", "letter-2", "letter-3", "fifth"])
            self.ok(one.noop())
            self.assertEqual(listed(one), listed(other))
            one.logout()
            other.logout()
            until("the file", lambda: file_names(self.inbox) == ["letter-1", "letter-2", "letter-3", "fifth"])

    def test_a_held_lock_is_told_at_once(self):
        self.put(letter("first"))
        with self.server:
            imap = self.client()
            imap.unselect()
            with locked(self.inbox) as file:
                file.seek(0, os.SEEK_END)
                file.write(in_mbox(letter("second")))
                file.flush()
                began = time.monotonic()
                status, data = imap.select("INBOX")
                took = time.monotonic() - began
                self.assertEqual(status, "NO", data)
                self.assertIn(b"[INUSE]", data[-1])
                self.assertLess(took, 30)
            self.patiently(lambda: imap.select("INBOX"))
            self.assertEqual(list(listed(imap)), ["first", "second"])
            with self.subTest("what is in the log only needs no lock"), locked(self.inbox):
                began = time.monotonic()
                self.ok(imap.store("1", "+FLAGS", "(\\Flagged)"))
                self.ok(imap.append("INBOX", None, None, letter("third").replace(b"\n", b"\r\n")))
                self.ok(imap.store("2", "+FLAGS", "(\\Deleted)"))
                self.ok(imap.expunge())
                self.assertLess(time.monotonic() - began, 30)
                self.assertEqual(file_names(self.inbox), ["first", "second"], "others hold the file")
            self.patiently(imap.check)
            self.patiently(imap.close)
            imap.logout()
            until("the file", lambda: file_names(self.inbox) == ["first", "third"])

    def test_pop3_style(self):
        """Everything fetched, everything deleted: the file is cut to nothing, in its place."""
        self.put(*(letter(f"letter-{number}", lines=500) for number in range(50)))
        inode = self.inbox.stat().st_ino
        with self.server:
            imap = self.client()
            before = listed(imap)
            self.ok(imap.store("1:*", "+FLAGS.SILENT", "(\\Deleted)"))
            self.ok(imap.expunge())
            self.patiently(imap.close)
            imap.logout()
            until("an empty file", lambda: self.inbox.stat().st_size == 0)
            self.assertEqual(self.inbox.stat().st_ino, inode)
            with locked(self.inbox) as file:
                file.write(in_mbox(letter("next")))
            imap = self.client()
            self.assertGreater(listed(imap)["next"][0], max(uid for uid, _ in before.values()))
            imap.logout()

    def test_opening_writes_nothing(self):
        self.put(*(letter(f"letter-{number}") for number in range(10)))
        raw = self.inbox.read_bytes()
        with self.server:
            imap = self.client()
            listed(imap)
            imap.logout()
        self.assertEqual(self.inbox.read_bytes(), raw)

    def test_what_stands_in_the_file(self):
        """Fields as c-client, mutt and Dovecot read them."""
        self.put(letter("plain"), letter("marked"), letter("deleted"))
        with self.server:
            imap = self.client()
            self.ok(imap.store("2", "FLAGS", "(\\Seen \\Answered \\Flagged \\Draft work $Label1)"))
            self.ok(imap.store("3", "FLAGS", "(\\Deleted)"))
            self.patiently(imap.check)
            uids = {name: uid for name, (uid, _) in listed(imap).items()}
            validity = int(imap.response("UIDVALIDITY")[1][-1])
            headers = {field(header, "Subject"): header for header, _ in file_messages(self.inbox)}
            base = field(headers["plain"], "X-IMAPbase") or field(headers["plain"], "X-IMAP")
            self.assertEqual([int(word) for word in base.split()[:2]], [validity, max(uids.values())])
            self.assertLessEqual({"work", "$Label1"}, set(base.split()[2:]))
            for name, header in headers.items():
                self.assertEqual(int(field(header, "X-UID")), uids[name])
            self.assertEqual(set(field(headers["marked"], "Status")), set("RO"))
            self.assertEqual(set(field(headers["marked"], "X-Status")), set("AFT"))
            self.assertEqual(set(field(headers["marked"], "X-Keywords").split()), {"work", "$Label1"})
            self.assertIn("D", field(headers["deleted"], "X-Status"))
            imap.logout()

    def test_a_tree_of_others(self):
        """Files that somebody puts below the directory are mailboxes; those that somebody takes away are empty."""
        self.put(letter("first"))
        with self.server:
            imap = self.server.connect()
            self.root.mkdir(exist_ok=True)
            (self.root / "lists").write_bytes(in_mbox(letter("a")) + in_mbox(letter("b")))
            (self.root / "lists.sbd").mkdir()
            (self.root / "lists.sbd" / "mutt").write_bytes(in_mbox(letter("c")))
            until("new mailboxes", lambda: self.names(imap) >= {"INBOX", "lists", "lists/mutt"})
            self.ok(imap.select("lists/mutt"))
            self.assertEqual(list(listed(imap)), ["c"])
            self.ok(imap.create("own/below"))
            self.assertTrue((self.root / "own.sbd" / "below").exists())
            self.ok(imap.select("lists"))
            self.ok(imap.copy("1", "own/below"))
            until("a copy in the file", lambda: file_names(self.root / "own.sbd" / "below") == ["a"])
            self.ok(imap.rename("own", "mine"))
            self.assertTrue((self.root / "mine.sbd" / "below").exists())
            self.ok(imap.delete("mine/below"))
            self.assertFalse((self.root / "mine.sbd" / "below").exists())
            imap.logout()

    def names(self, imap):
        lines = self.ok(imap.list())
        return {line.decode().rsplit(" ", 1)[1].strip('"') for line in lines}


if __name__ == "__main__":
    unittest.main()
