"""IDLE: what one connection changes, another sees within 50 ms."""

import statistics
import threading
import time
import unittest

from support import Case, Server, add_user

CHANGES = 60
MEDIAN_MS = 50.0


class Idler:
    """A connection in IDLE whose untagged lines are collected with the time of their arrival."""

    def __init__(self, imap):
        self.imap = imap
        self.lines = []
        self.arrived = threading.Condition()
        self.tag = imap._new_tag()
        imap.send(self.tag + b" IDLE\r\n")
        while not imap.readline().startswith(b"+"):
            pass
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while True:
            line = self.imap.readline()
            now = time.perf_counter()
            with self.arrived:
                self.lines.append((now, line))
                self.arrived.notify_all()
            if not line or line.startswith(self.tag):
                return

    def when(self, wanted, since, seconds=60):
        """When a line with `wanted` in it arrived, of those from number `since` on."""
        def look():
            return next((moment for moment, line in self.lines[since:] if wanted in line), None)
        with self.arrived:
            if not self.arrived.wait_for(look, seconds):
                raise AssertionError(f"{seconds} seconds without {wanted!r}: {self.lines[since:]}")
            return look()

    def done(self):
        self.imap.send(b"DONE\r\n")
        self.thread.join(60)
        assert not self.thread.is_alive() and b" OK " in self.lines[-1][1], self.lines[-1]


class Idle(Case):
    def test_latency(self):
        add_user(self.data)
        with Server(self.data) as server:
            changer, watcher = server.connect(), server.connect()
            message = b"Subject: x\r\n\r\ny\r\n"
            self.ok(changer.append("INBOX", None, None, message))
            self.ok(changer.select("INBOX"))
            self.ok(watcher.select("INBOX"))
            idler = Idler(watcher)
            times = {"APPEND": [], "STORE": [], "EXPUNGE": []}

            def measure(kind, wanted, change):
                since = len(idler.lines)
                began = time.perf_counter()
                self.ok(change())
                # From before the command is sent: the commit counts too.
                times[kind].append((idler.when(wanted, since) - began) * 1000)

            for number in range(CHANGES):
                measure("APPEND", b"* 2 EXISTS", lambda: changer.append("INBOX", None, None, message))
                sign = "+" if number % 2 == 0 else "-"
                measure("STORE", b"* 1 FETCH", lambda: changer.store("1", f"{sign}FLAGS", "(\\Flagged)"))
                self.ok(changer.store("2", "+FLAGS.SILENT", "(\\Deleted)"))
                measure("EXPUNGE", b"* 2 EXPUNGE", changer.expunge)
            idler.done()
            for kind, taken in times.items():
                median, worst = statistics.median(taken), max(taken)
                print(f"{kind}: median {median:.2f} ms, worst {worst:.2f} ms of {len(taken)}")
                self.assertLess(median, MEDIAN_MS, kind)
            changer.logout()
            watcher.logout()


if __name__ == "__main__":
    unittest.main()
