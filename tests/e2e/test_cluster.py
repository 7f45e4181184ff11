"""Several Mailyard servers on one Galera group: the demonstration, with a database server and then a node killed."""

import imaplib
import json
import os
import pathlib
import selectors
import signal
import subprocess
import time
import unittest

import support
from support import Case, all_messages

READY_SECONDS = 180
# The group notices a lost server within two seconds; a node that died keeps its lease for five. A machine that does much else takes longer.
PAUSE_SECONDS = 300
MESSAGE = b"Subject: written through node %d\r\n\r\nhello\r\n"


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
        process = subprocess.Popen([support.PROGRAM, "cluster", "demo", "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=self.folder)
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
            process.wait(60)
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def login(self, line, node):
        imap = imaplib.IMAP4(line["imap"][node]["host"], line["imap"][node]["port"], timeout=PAUSE_SECONDS)
        self.addCleanup(imap.sock.close)
        imap.login(line["user"], line["password"])
        return imap

    def test_a_server_and_a_node_are_killed(self):
        process, line = self.start()
        first, second = self.login(line, 0), self.login(line, 1)
        before = len(all_messages(second, "INBOX"))
        self.assertGreater(before, 10, "sample mail")
        for node, imap in enumerate([first, second]):
            self.assertEqual(imap.append("INBOX", None, None, MESSAGE % node)[0], "OK")
        self.assertEqual(all_messages(first, "INBOX"), all_messages(second, "INBOX"))
        # The database server that the first node uses.
        os.kill(line["databases"][0], signal.SIGKILL)
        for node, imap in enumerate([first, second]):
            self.assertEqual(imap.append("INBOX", None, None, MESSAGE % node)[0], "OK")
        self.assertEqual(len(all_messages(second, "INBOX")), before + 4)
        self.assertEqual(first.append("INBOX", None, None, MESSAGE % 0)[0], "OK")
        os.kill(line["nodes"][0], signal.SIGKILL)
        self.assertEqual(second.append("INBOX", None, None, MESSAGE % 1)[0], "OK")
        found = all_messages(second, "INBOX")
        self.assertEqual(len(found), before + 6)
        second.logout()
        self.stop(process)
        self.assertEqual(process.returncode, 0)
        for pid in line["databases"] + line["nodes"]:
            self.assertTrue(ends(pid, 30), "everything that was started has ended")


if __name__ == "__main__":
    unittest.main()
