"""Bodies in an S3-compatible store: what is put there, what goes on without it, and accounts that come, move and go."""

import contextlib
import json
import os
import unittest
import unittest.mock

import support
from mariadb import Database
from seaweedfs import Objects
from support import Case, Server, all_messages, fetch, tool

# The first one stays in the database, the last one is put in parts.
BODIES = [b"short", b"word " * 100, b"0123456789abcde\r\n" * 5_000, b"line of a large one\r\n" * 280_000]


def message(number, body):
    # No text: the search index has nothing to do with it.
    return b"Subject: number %d\r\nContent-Type: application/octet-stream\r\n\r\n%s\r\n" % (number, body)


class BodiesInObjects(Case):
    def setUp(self):
        super().setUp()
        with contextlib.ExitStack() as stack:
            self.database = stack.enter_context(Database(self.folder / "mariadb"))
            self.objects = stack.enter_context(Objects(self.folder / "objects"))
            stack.enter_context(unittest.mock.patch.dict(os.environ, SSL_CERT_FILE=str(self.objects.certificate)))
            self.addCleanup(stack.pop_all().close)
        main, north = self.database.create("main"), self.database.create("north")
        config = self.folder / "mailyard.toml"
        # Long, so that a slow machine is not taken for an object store that is away; that one is known at once.
        config.write_text(f'[sql]\nurls = ["{main}"]\ncells = ["north={north}"]\ntimeout_seconds = 120\nretry_seconds = 2\n'
                          + self.objects.configuration())
        self.options = ("--config", config)
        tool(self.data, "sql", "update", *self.options)
        # Until it has told all of its parts of each other.
        support.until("object store", lambda: tool(self.data, "sql", "check", *self.options, check=False)[0] == 0, 120)
        tool(self.data, "user", "add", support.USER, "--password-stdin", "--format", "sql", *self.options,
             stdin=support.PASSWORD.encode() + b"\n")

    def count(self, table, cell="main"):
        return int(self.database.query(f"SELECT COUNT(*) FROM {table}", cell))

    def fill(self, imap):
        for number, body in enumerate(BODIES):
            self.ok(imap.append("INBOX", None, None, message(number, body)))

    def seen(self, user=support.USER):
        with Server(self.data, *self.options) as server:
            imap = server.connect(user)
            found = [values["BODY[]"] for values in all_messages(imap, "INBOX", "(UID BODY.PEEK[])")]
            imap.logout()
        return found

    def refused(self, answer):
        status, data = answer
        self.assertEqual(status, "NO", data)
        self.assertIn(b"[UNAVAILABLE]", data[0])

    def test_away_and_back(self):
        with Server(self.data, *self.options) as server:
            imap = server.connect()
            self.fill(imap)
            self.assertEqual((self.count("body"), self.count("object")), (1, 3))
            imap.select("INBOX")
            self.assertEqual(fetch(imap, "4", "BODY.PEEK[TEXT]<3000000.40>")[4]["BODY[TEXT]<3000000>"],
                             (BODIES[3] + b"\r\n")[3_000_000:3_000_040])
            self.objects.kill()
            self.refused(imap.append("INBOX", None, None, message(8, b"refused " * 100)))
            self.refused(imap.fetch("3", "BODY.PEEK[TEXT]"))
            self.assertNotEqual(tool(self.data, "sql", "check", *self.options, check=False)[0], 0)
            # What needs no object goes on.
            self.ok(imap.append("INBOX", None, None, message(4, b"small")))
            self.assertEqual(fetch(imap, "1", "BODY.PEEK[TEXT]")[1]["BODY[TEXT]"], b"short\r\n")
            self.assertEqual(len(fetch(imap, "1:5", "(ENVELOPE BODY.PEEK[HEADER])")), 5)
            self.objects.start()

            def again():
                status, data = imap.append("INBOX", None, None, message(5, BODIES[1]))
                return status == "OK" or self.refused((status, data))

            support.until("append", again, 120)

            def readable():
                status, data = imap.fetch("1:6", "(BODY.PEEK[])")
                return status == "OK" or self.refused((status, data))

            support.until("read", readable, 120)
            imap.logout()
        bodies = [*BODIES, b"small", BODIES[1]]
        self.assertEqual(self.seen(), [message(number, body) for number, body in enumerate(bodies)])
        tool(self.data, "sql", "sweep", *self.options)
        self.assertEqual(self.count("object"), 3, "the same octets are there once, what was refused is not there")

    def test_converted_moved_saved_and_removed(self):
        with Server(self.data, *self.options) as server:
            imap = server.connect()
            self.fill(imap)
            imap.logout()
        expected = self.seen()
        self.assertEqual(len(expected), len(BODIES))
        run = [support.USER, *self.options]
        backup = self.folder / "backup"
        tool(self.data, "backup", "--to", backup, "--user", *run)
        tool(self.data, "convert", "--to", "native", "--user", *run)
        tool(self.data, "convert", "--finish", "--user", *run)
        self.assertEqual((self.seen(), self.count("object"), self.count("body")), (expected, 0, 0))
        tool(self.data, "convert", "--to", "sql", "--user", *run)
        tool(self.data, "convert", "--finish", "--user", *run)
        self.assertEqual((self.seen(), self.count("object"), self.count("body")), (expected, 3, 1))
        tool(self.data, "move", "--cell", "north", "--user", *run)
        self.assertEqual((self.seen(), self.count("object"), self.count("body_object", "north")), (expected, 0, 3))
        self.assertEqual(json.loads(tool(self.data, "sql", "sweep", "--json", *self.options)[1]), {"removed": 0})
        self.assertEqual(tool(self.data, "check", *self.options)[0], 0)
        tool(self.data, "restore", "--from", backup, "--as-user", "bob", "--user", *run)
        tool(self.data, "convert", "--to", "sql", "--user", "bob", *self.options)
        tool(self.data, "user", "add", "bob", "--password-stdin", *self.options, stdin=support.PASSWORD.encode() + b"\n")
        self.assertEqual(self.seen("bob"), expected)
        # Removed while the store is away: its objects go later.
        self.objects.kill()
        tool(self.data, "user", "remove", support.USER, "--delete-mail", *self.options)
        self.assertEqual(self.count("body_object", "north"), 3)
        self.objects.start()
        support.until("sweep", lambda: tool(self.data, "sql", "sweep", *self.options, check=False)[0] == 0, 120)
        self.assertEqual((self.count("body_object", "north"), self.count("doomed_object", "north")), (0, 0))
        self.assertEqual(self.seen("bob"), expected)


if __name__ == "__main__":
    unittest.main()
