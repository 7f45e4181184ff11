"""The demonstration of the README: one command, and three ways to connect that work when pasted."""

import imaplib
import json
import os
import pathlib
import re
import selectors
import signal
import subprocess
import time
import unittest

import support
from support import Case, all_messages
from test_mutt import Terminal

READY_SECONDS = 60


class Demo(Case):
    def start(self, *arguments):
        process = subprocess.Popen([support.PROGRAM, "demo", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(self.stop, process)
        return process

    def stop(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(support.STOP_SECONDS)
        process.stdout.close()

    def read_until(self, process, pattern):
        """What the process has printed, as soon as the pattern is in it."""
        text = ""
        limit = time.monotonic() + READY_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not re.search(pattern, text):
                if not selector.select(max(0, limit - time.monotonic())):
                    raise AssertionError(f"no {pattern} in {text!r}")
                piece = os.read(process.stdout.fileno(), 65536)
                if not piece:
                    raise AssertionError(f"it ended with {process.wait()}: {text!r}")
                text += piece.decode()
        return text

    def test_json(self):
        process = self.start("--json")
        line = json.loads(self.read_until(process, r"\n"))
        self.assertEqual(set(line), {"imap", "user", "password", "data"})
        imap = imaplib.IMAP4(line["imap"]["host"], line["imap"]["port"], timeout=support.IMAP_SECONDS)
        imap.login(line["user"], f'"{line["password"]}"')
        found = all_messages(imap, "INBOX")
        self.assertGreater(len(found), 10, "a few messages to look at")
        self.assertTrue(pathlib.Path(line["data"]).is_dir())
        imap.logout()
        self.stop(process)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(pathlib.Path(line["data"]).exists(), "the temporary folder is left behind")


if __name__ == "__main__":
    unittest.main()
