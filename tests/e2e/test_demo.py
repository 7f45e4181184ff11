"""The demonstration of the README: one command, and three ways to connect that work when pasted."""

import imaplib
import json
import mailbox
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
        imap.login(line["user"], line["password"])
        found = all_messages(imap, "INBOX")
        self.assertGreater(len(found), 10, "a few messages to look at")
        self.assertTrue(pathlib.Path(line["data"]).is_dir())
        imap.logout()
        self.stop(process)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(pathlib.Path(line["data"]).exists(), "the temporary folder is left behind")

    def test_mbox(self):
        process = self.start("--json", "--format", "mbox")
        line = json.loads(self.read_until(process, r"\n"))
        imap = imaplib.IMAP4(line["imap"]["host"], line["imap"]["port"], timeout=support.IMAP_SECONDS)
        imap.login(line["user"], line["password"])
        found = all_messages(imap, "INBOX")
        inbox = mailbox.mbox(pathlib.Path(line["data"]) / "mail" / "inbox")
        self.assertEqual(len(inbox), len(found), "Python sees in the file what IMAP serves")
        inbox.lock()
        inbox.add("Subject: from behind\n\nhello\n")
        inbox.close()
        self.assertEqual(len(all_messages(imap, "INBOX")), len(found) + 1)
        imap.logout()

    def test_pasted(self):
        """What is printed for people, pasted into a shell as it stands."""
        text = self.read_until(self.start(), r"(?s)mutt:.*Python:.*mbsync.*\nEND\n")
        parts = re.search(r"(?s)\nmutt:\n\n(.*?)\n\nPython:\n\n(.*?)\n\nmbsync[^\n]*\n\n(.*\nEND\n)", text)
        self.assertIsNotNone(parts, text)
        mutt, python, mbsync = parts.groups()
        with self.subTest("Python"):
            printed = self.shell(python)
            self.assertGreater(printed.count("Subject:"), 10, printed)
        with self.subTest("mbsync"):
            self.shell(mbsync)
            pulled = [path for path in self.folder.glob("demo-mail/**/*") if path.is_file() and path.parent.name in ("cur", "new")]
            self.assertGreater(len(pulled), 10, "messages in the Maildir")
        with self.subTest("mutt"):
            # From a file, since tmux would take the quotes for its own.
            script = self.folder / "paste.sh"
            script.write_text(mutt + "\n")
            terminal = Terminal(self.folder, "sh", script)
            self.addCleanup(terminal.close)
            terminal.wait_for("[Msgs:")

    def shell(self, command):
        environment = dict(os.environ, HOME=str(self.folder))
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, env=environment, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()


if __name__ == "__main__":
    unittest.main()
