"""SIGKILL while an mbox file is rewritten: afterwards every message is in it exactly once, but for those that were expunged.

The random walk of `test_kill` on an account of mbox files, and one large file whose flags are written back and whose messages come and go.
By hand, as large as one likes: `MBOX_MEGABYTES=100 MBOX_KILLS=200` takes a quarter of an hour, and ended well.
"""

import collections
import hashlib
import imaplib
import os
import random
import threading
import time
import unittest

import support
import test_kill
from mbox_sharing import field, file_messages, in_mbox
from support import Case, Server, add_mbox_user, fetch, tool, until

KILLS = int(os.environ.get("MBOX_KILLS", os.environ.get("KILLS", "60")))
MEGABYTES = float(os.environ.get("MBOX_MEGABYTES", "4"))
SEED = test_kill.SEED
FLAGS = ["\\Seen", "\\Flagged", "\\Answered", "\\Draft", "work", "a-keyword-that-is-too-long-for-the-padding"]
# Small enough that flags are lost somewhere in every rewrite, large enough that pieces differ.
SIZES = [200, 1_000, 5_000, 40_000]
APPENDED_MAX = 20


def made(name, size, chance):
    """A message that says who it is, with a text that no other has."""
    text = "".join(f"{chance.getrandbits(256):064x}\n" for _ in range(size // 65 + 1))
    return f"From: a@example.org\nSubject: {name}\n\n{text}".encode()


def digest(raw):
    return hashlib.sha256(raw.replace(b"\r\n", b"\n").split(b"\n\n", 1)[1].rstrip(b"\n")).hexdigest()


class Walk(test_kill.Kill):
    """The walk of `test_kill`, each mailbox a file."""

    kills = KILLS

    def add_user(self):
        self.inbox, self.root = add_mbox_user(self.data, self.folder / "mail")


class Worker:
    """A client of the large file: what must be in it, and what may be, since a command was under way."""

    def __init__(self, messages):
        self.there = dict(messages)
        # Names whose command was under way: they may be there or not.
        self.open = {}
        self.random = random.Random(SEED)
        self.serial = 0
        self.counts = collections.Counter()
        self.failure = None
        self.is_at_work = threading.Event()

    def work(self, server):
        """Changes things until the server is gone."""
        try:
            imap = server.connect()
            while True:
                test_kill.check(imap.select("INBOX"))
                for _ in range(self.random.randint(1, 3)):
                    action = self.random.choice([self.store, self.store, self.append, self.expunge])
                    action(imap)
                    self.counts[action.__name__] += 1
                    self.is_at_work.set()
                # Each makes the file show what the log has.
                self.random.choice([imap.check, imap.close])()
                self.counts["written back"] += 1
        except test_kill.LOST:
            pass
        except Exception as error:  # The thread's error is the test's.
            self.failure = error

    def some(self, imap):
        count = len(test_kill.check(imap.search(None, "ALL"))[0].split())
        first = self.random.randint(1, count)
        return f"{first}:{min(first + self.random.choice([1, 5, 50, count]), count)}"

    def store(self, imap):
        flags = " ".join(self.random.sample(FLAGS, self.random.randint(1, 3)))
        sign = self.random.choice(["+", "-", ""])
        test_kill.check(imap.store(self.some(imap), f"{sign}FLAGS.SILENT", f"({flags})"))

    def append(self, imap):
        self.serial += 1
        name = f"appended-{self.serial}"
        raw = made(name, self.random.choice(SIZES), self.random)
        self.open[name] = digest(raw)
        test_kill.check(imap.append("INBOX", None, None, raw.replace(b"\n", b"\r\n")))
        self.there[name] = self.open.pop(name)

    def expunge(self, imap):
        """Whoever is numerous goes first, so that the file keeps its size."""
        if len(self.there) < 10:
            return
        name = self.random.choice(sorted(self.there))
        status, data = imap.uid("SEARCH", "SUBJECT", f'"{name}"')
        test_kill.check((status, data))
        uids = data[0].split()
        # appended-1 is a part of appended-12.
        subjects = {uid: subject(imap, uid) for uid in uids}
        uid = next(uid for uid, found in subjects.items() if found == name)
        self.open[name] = self.there.pop(name)
        test_kill.check(imap.uid("STORE", uid.decode(), "+FLAGS.SILENT", "(\\Deleted)"))
        test_kill.check(imap.uid("EXPUNGE", uid.decode()))
        del self.open[name]

    def verify(self, found, where):
        """Every message exactly once, as it was sent."""
        names = [name for name, _ in found]
        twice = [name for name, count in collections.Counter(names).items() if count > 1]
        assert not twice, f"seed {SEED}: {where}: twice: {twice}"
        there = dict(found)
        lost = [name for name in self.there if name not in there]
        assert not lost, f"seed {SEED}: {where}: lost: {lost}"
        unknown = [name for name in there if name not in self.there and name not in self.open]
        assert not unknown, f"seed {SEED}: {where}: back again or never sent: {unknown}"
        wanted = {**self.there, **self.open}
        other = [name for name, known in there.items() if known != wanted[name]]
        assert not other, f"seed {SEED}: {where}: not as it was sent: {other}"
        return there


def subject(imap, uid):
    values = fetch(imap, uid.decode(), "(UID BODY.PEEK[HEADER.FIELDS (SUBJECT)])", uid=True)
    header = next(iter(values.values()))["BODY[HEADER.FIELDS (SUBJECT)]"]
    return field(header.replace(b"\r\n", b"\n"), "Subject")


class LargeFile(Case):
    def test_sigkill(self):
        inbox, _ = add_mbox_user(self.data, self.folder / "mail")
        chance = random.Random(SEED)
        worker = Worker({})
        with open(inbox, "wb") as file:
            while file.tell() < MEGABYTES * 1e6:
                name = f"old-{len(worker.there)}"
                raw = made(name, chance.choice(SIZES), chance)
                worker.there[name] = digest(raw)
                file.write(in_mbox(raw))
        config = self.folder / "mailyard.toml"
        # As little padding as there can be: most flags make messages move.
        config.write_text("[mbox]\npadding_bytes = 0\nidle_seconds = 1\n")
        server = Server(self.data, "--config", config)
        self.addCleanup(server.kill)
        moments = random.Random(SEED)
        for _ in range(KILLS):
            server.start()
            before, wanted = worker.counts["written back"], moments.choice([0, 0, 1, 2])
            worker.is_at_work.clear()
            thread = threading.Thread(target=worker.work, args=(server,))
            thread.start()
            # However slow the machine is, something has been done by then.
            until("work", lambda: worker.is_at_work.is_set() or not thread.is_alive())
            until("write-back", lambda: worker.counts["written back"] >= before + wanted or not thread.is_alive(), pause=0.001)
            # Not a wait for something: the moment of death is the random input of this test.
            time.sleep(moments.uniform(0, 0.15))
            server.kill()
            thread.join(support.IMAP_SECONDS)
            self.assertFalse(thread.is_alive(), "the client hangs on a dead server")
            if worker.failure:
                raise AssertionError(f"seed {SEED}: {worker.failure!r}") from worker.failure
            server.start()
            imap = server.connect()
            # Opening finishes or undoes what was under way, and CHECK writes what the log has.
            until("lock", lambda: imap.select("INBOX")[0] == "OK")
            there = worker.verify(self.by_imap(imap), "by IMAP")
            # What was to be expunged when the server died stays: a later CLOSE would take it for the worker's wish.
            test_kill.check(imap.store("1:*", "-FLAGS.SILENT", "(\\Deleted)"))
            until("write-back", lambda: imap.check()[0] == "OK")
            imap.logout()
            server.stop()
            self.assertEqual(worker.verify(self.in_file(inbox), "in the file"), there)
            worker.there, worker.open = there, {}
        tool(self.data, "check")
        print(f"seed {SEED}: {KILLS} kills, {inbox.stat().st_size} bytes, {dict(worker.counts)}")
        self.assertGreater(worker.counts["written back"], KILLS / 10, "too few rewrites to have tested anything")

    def by_imap(self, imap):
        found = fetch(imap, "1:*", "(UID BODY.PEEK[])").values()
        raws = [values["BODY[]"] for values in found]
        return [(field(raw.replace(b"\r\n", b"\n"), "Subject"), digest(raw)) for raw in raws]

    def in_file(self, path):
        return [(field(header, "Subject"), digest(header + b"\n\n" + body)) for header, body in file_messages(path)]


if __name__ == "__main__":
    unittest.main()
