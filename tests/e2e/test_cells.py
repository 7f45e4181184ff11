"""An account that moves between two databases while clients append through two servers, and while SIGKILL comes at any moment.

By hand, as much as one likes: `CELLS_KILLS=100`.
"""

import imaplib
import os
import random
import re
import subprocess
import threading
import time
import unittest

import support
from mariadb import Database
from support import Case, Server, all_messages, tool

KILLS = int(os.environ.get("CELLS_KILLS", "8"))
SEED = int(os.environ.get("CELLS_SEED", "7"))
# In the account before it moves for the first time.
MESSAGES = int(os.environ.get("CELLS_MESSAGES", "400"))


class Load(threading.Thread):
    """Appends through one server, one message after the other, until it is told to end."""

    def __init__(self, server, name):
        super().__init__()
        self.server, self.name = server, name
        self.is_over = threading.Event()
        # By subject: the UID.
        self.acknowledged = {}
        self.refused = []
        self.failure = None

    def run(self):
        try:
            imap = self.server.connect()
            count = 0
            while not self.is_over.is_set():
                subject = f"{self.name} {count}"
                count += 1
                status, [text] = imap.append("INBOX", None, None, f"Subject: {subject}\r\n\r\nx\r\n".encode())
                if status == "OK":
                    self.acknowledged[subject] = int(re.search(rb"APPENDUID \d+ (\d+)", text)[1])
                elif b"UNAVAILABLE" in text:
                    self.refused.append(subject)
                else:
                    raise AssertionError(text)
            imap.logout()
        except (AssertionError, OSError, imaplib.IMAP4.error) as error:
            self.failure = error


class Cells(Case):

    def test_moved_and_killed_under_load(self):
        database = self.enterContext(Database(self.folder / "mariadb"))
        main, north = database.create("main"), database.create("north")
        config = self.folder / "mailyard.toml"
        config.write_text(f'[sql]\nurls = ["{main}"]\ncells = ["north={north}"]\n')
        options = ("--config", config)
        tool(self.data, "sql", "update", *options)
        other = self.folder / "other"
        other.mkdir()
        for data in (self.data, other):
            tool(data, "user", "add", support.USER, "--password-stdin", "--format", "sql", *options,
                 stdin=support.PASSWORD.encode() + b"\n")
        with Server(self.data, *options) as a, Server(other, *options) as b:
            imap = a.connect()
            for number in range(MESSAGES):
                self.ok(imap.append("INBOX", None, None, f"Subject: before {number}\r\n\r\n{'x' * number}\r\n".encode()))
            loads = [Load(a, "a"), Load(b, "b")]
            for load in loads:
                load.start()
            try:
                moves = self.move_and_kill(options)
            finally:
                for load in loads:
                    load.is_over.set()
                for load in loads:
                    load.join()
            for load in loads:
                self.assertIsNone(load.failure)
            found = [{}, {}]
            for server, subjects in zip((a, b), found, strict=True):
                for values in all_messages(server.connect(), "INBOX", "(UID BODY.PEEK[HEADER])"):
                    subject = values["BODY[HEADER]"].split(b"\r\n")[0].decode().removeprefix("Subject: ")
                    self.assertNotIn(subject, subjects, "nothing is there twice")
                    subjects[subject] = int(values["UID"])
            self.assertEqual(found[0], found[1])
            for load in loads:
                for subject, uid in load.acknowledged.items():
                    self.assertEqual(found[0].get(subject), uid, f"{subject} was acknowledged")
            imap.logout()
        self.assertEqual(tool(self.data, "check", *options)[0], 0)
        sent = [len(load.acknowledged) for load in loads]
        print(f"{moves} moves, {KILLS} kills, {sent} messages, {[len(load.refused) for load in loads]} refused")

    def move_and_kill(self, options):
        """Moves there and back until so many were killed; how many moves were done."""
        chance = random.Random(SEED)
        kills, moves, seconds = 0, 0, 0.0
        cells = ["north", "main"]
        while kills < KILLS or moves % 2:
            command = [support.PROGRAM, "move", "--data", self.data, "--user", support.USER, "--cell", cells[moves % 2],
                       "--json", *options]
            while True:
                began = time.monotonic()
                running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                # The first time it runs to its end, which says how long that takes.
                if seconds and kills < KILLS and chance.random() < 0.7:
                    try:
                        running.wait(chance.uniform(0, seconds))
                    except subprocess.TimeoutExpired:
                        running.kill()
                        running.communicate()
                        kills += 1
                        continue
                out, err = running.communicate(timeout=support.TOOL_SECONDS)
                seconds = max(seconds, time.monotonic() - began)
                self.assertEqual(running.returncode, 0, err + out)
                break
            moves += 1
        return moves


if __name__ == "__main__":
    unittest.main()
