"""Several Mailyard servers on one Galera group and one object store: the demonstration, under a load of appends, flag changes and expunges,
with a server of the object store, one of the databases and then a node killed."""

import imaplib
import json
import os
import pathlib
import re
import selectors
import signal
import subprocess
import threading
import time
import unittest

import seaweedfs
import support
from support import Case, all_messages, flags_of

READY_SECONDS = 300
# The group notices a lost server within two seconds; a node that died keeps its lease for five. A machine that does much else takes longer.
PAUSE_SECONDS = 300
# What each writer does between two events, at least. Every fourth message is expunged again.
ROUNDS = 4
# Bodies that are objects, and larger than one piece of a checksum now and then.
SIZES = [1_000, 40_000, 300, 1_200_000]


def message(subject):
    size = SIZES[sum(subject.encode()) % len(SIZES)]
    line = f"{subject} ".encode() * (70 // len(subject)) + b"\r\n"
    return b"Subject: %s\r\n\r\n%s" % (subject.encode(), line * (size // len(line)))


class Writer(threading.Thread):
    """Appends through one node, marks what it has appended, and expunges some of it, until it is told to end."""

    def __init__(self, imap, name):
        super().__init__()
        self.imap, self.name_of_messages = imap, name
        self.is_over = threading.Event()
        self.progress = threading.Semaphore(0)
        # By UID; those that were marked; and subjects of which no answer says whether they are there.
        self.kept, self.marked, self.unsure = {}, set(), set()
        self.uids, self.refused, self.failure = [], 0, None

    def run(self):
        try:
            for number in range(1_000_000):
                if self.is_over.is_set():
                    break
                self.round(number)
                self.progress.release()
        except (AssertionError, OSError, imaplib.IMAP4.error) as error:
            self.failure = error
            self.progress.release(1_000_000)

    def done(self, answer):
        """Whether it was done; what was not was said to be for later."""
        status, data = answer
        if status != "OK":
            self.refused += 1
            if b"[UNAVAILABLE]" not in data[-1]:
                raise AssertionError(data)
        return status == "OK"

    def round(self, number):
        subject = f"{self.name_of_messages} {number}"
        answer = self.imap.append("INBOX", None, None, message(subject))
        if not self.done(answer):
            self.unsure.add(subject)
            return
        uid = int(re.search(rb"APPENDUID \d+ (\d+)", answer[1][0])[1])
        self.uids.append(uid)
        self.kept[uid] = subject
        if self.done(self.imap.uid("STORE", str(uid), "+FLAGS.SILENT", "(\\Seen)")):
            self.marked.add(uid)
        if number % 4 == 3 and self.done(self.imap.uid("STORE", str(uid), "+FLAGS.SILENT", "(\\Deleted)")):
            del self.kept[uid]
            if not self.done(self.imap.uid("EXPUNGE", str(uid))):
                self.unsure.add(subject)



def ends(pid, seconds):
    """Whether a process that is no child of ours ends in time."""
    limit = time.monotonic() + seconds
    while pathlib.Path(f"/proc/{pid}").exists():
        if time.monotonic() > limit:
            return False
        os.sched_yield()
    return True


class Cluster(Case):
    def start(self):
        # The demonstration finds SeaweedFS where it finds every program.
        path = os.pathsep.join([os.fspath(seaweedfs.FOLDER), os.environ["PATH"]])
        process = subprocess.Popen([support.PROGRAM, "cluster", "demo", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, cwd=self.folder, env=dict(os.environ, PATH=path))
        self.addCleanup(self.stop, process)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            self.assertTrue(selector.select(READY_SECONDS), "it does not begin")
        line = process.stdout.readline()
        self.assertTrue(line, "it ended")
        return process, json.loads(line)

    def stop(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(PAUSE_SECONDS)
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def login(self, line, node):
        imap = imaplib.IMAP4(line["imap"][node]["host"], line["imap"][node]["port"], timeout=PAUSE_SECONDS)
        self.addCleanup(imap.sock.close)
        imap.login(line["user"], line["password"])
        return imap

    def compare(self, imap, sample, writers):
        """Everything that was acknowledged is there once, with its octets; nothing else is."""
        unsure = set().union(*(writer.unsure for writer in writers))
        marked = set().union(*(writer.marked for writer in writers))
        expected = {uid: subject for writer in writers for uid, subject in writer.kept.items()}
        found, subjects = {}, set()
        for values in all_messages(imap, "INBOX", "(UID FLAGS BODY.PEEK[])"):
            if values["UID"] in sample:
                self.assertEqual(values["BODY[]"], sample[values["UID"]])
                continue
            subject = values["BODY[]"].split(b"\r\n")[0].decode().removeprefix("Subject: ")
            self.assertEqual(values["BODY[]"], message(subject))
            self.assertNotIn(subject, subjects, "nothing is there twice")
            subjects.add(subject)
            self.assertTrue(values["UID"] not in marked or "\\Seen" in flags_of(values))
            if subject not in unsure:
                found[values["UID"]] = subject
        self.assertEqual(found, {uid: subject for uid, subject in expected.items() if subject not in unsure})

    def test_servers_and_a_node_are_killed(self):
        process, line = self.start()
        reader = self.login(line, 1)
        sample = {values["UID"]: values["BODY[]"] for values in all_messages(reader, "INBOX", "(UID BODY.PEEK[])")}
        self.assertGreater(len(sample), 10, "sample mail")
        writers = []
        for number in range(4):
            imap = self.login(line, number % 2)
            self.assertEqual(imap.select("INBOX")[0], "OK")
            writers.append(Writer(imap, f"writer {number}"))

        def progress():
            for writer in writers:
                # What it is doing may have been begun before.
                for _ in range(ROUNDS + 1):
                    self.assertTrue(writer.progress.acquire(timeout=PAUSE_SECONDS), "no pause is that long")
                self.assertIsNone(writer.failure)

        for writer in writers:
            writer.start()
        try:
            progress()
            for pid in line["volume_servers"][:1]:
                os.kill(pid, signal.SIGKILL)
                progress()
            # The database server that the first node uses.
            os.kill(line["databases"][0], signal.SIGKILL)
            progress()
        finally:
            for writer in writers:
                writer.is_over.set()
            for writer in writers:
                writer.join()
        for writer in writers:
            self.assertIsNone(writer.failure)
            self.assertEqual(writer.uids, sorted(set(writer.uids)), "UIDs rise")
        for node in range(2):
            self.compare(self.login(line, node), sample, writers)
        # The second node has what the first one had.
        os.kill(line["nodes"][0], signal.SIGKILL)
        self.assertEqual(reader.select("INBOX")[0], "OK")
        last = Writer(reader, "last")
        for number in range(ROUNDS):
            last.round(number)
        writers.append(last)
        self.compare(reader, sample, writers)
        reader.logout()
        self.stop(process)
        self.assertEqual(process.returncode, 0)
        for pid in [*line["databases"], *line["nodes"], *line["volume_servers"], line["object_store"], line["nats"]]:
            if pid is not None:
                self.assertTrue(ends(pid, PAUSE_SECONDS), "everything that was started has ended")
        counts = [len(writer.uids) for writer in writers]
        print(f"{counts} messages, {[writer.refused for writer in writers]} refused; not on this machine: {line['missing']}")


if __name__ == "__main__":
    unittest.main()
