"""An mbox file of more than 4 GiB, nearly all of it holes: its last messages are found, fetched, added to and expunged like those of any other.

Two messages of 2.1 GiB each, of octets that are 0, take next to no room on the disk; all offsets behind them need more than 32 bits.
"""

import os
import unittest

from mbox_sharing import in_mbox, letter
from support import Case, Server, add_mbox_user, fetch
from test_scan import rows

HOLE_BYTES = 2_200_000_000
HUGE = "huge-1", "huge-2"
LATE = [f"late-{number}" for number in range(1, 7)]


class Beyond4GiB(Case):
    def setUp(self):
        super().setUp()
        self.inbox, _ = add_mbox_user(self.data, self.folder / "mail")
        config = self.folder / "mailyard.toml"
        # Flags in the file would need room in every header, and all of it would move.
        config.write_text('[mbox]\nwrite_back = "never"\n')
        self.server = Server(self.data, "--config", config)
        self.addCleanup(self.server.kill)
        with open(self.inbox, "wb") as file:
            for name in HUGE:
                # Nothing that would be searched for words.
                header = letter(name, flags="Content-Type: application/octet-stream\n").split(b"\n\n")[0] + b"\n\n"
                file.write(in_mbox(header)[:-1])
                file.seek(HOLE_BYTES, os.SEEK_CUR)
                file.write(b"\n\n")
            self.late_at = file.tell()
            for name in LATE:
                file.write(in_mbox(letter(name)))
        self.assertGreater(self.late_at, 1 << 32)

    def tail(self):
        """What the file has behind the huge messages."""
        with open(self.inbox, "rb") as file:
            file.seek(self.late_at)
            return file.read()

    def subjects(self):
        lines = self.tail().split(b"\n")
        return [line[9:].decode() for line in lines if line.startswith(b"Subject: ")]

    def names(self, imap):
        """The subjects of all messages, in the order of their numbers."""
        found = fetch(imap, "1:*", "(BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
        return [found[number]["BODY[HEADER.FIELDS (SUBJECT)]"].decode().strip()[9:] for number in sorted(found)]

    def test_late_messages(self):
        before = self.tail()
        found = rows("--jobs", "2", self.inbox)
        self.assertEqual([row["subject"] for row in found], [*HUGE, *LATE])
        self.assertEqual(found[2]["offset"], self.late_at)
        self.assertGreater(found[0]["size"], HOLE_BYTES)

        self.server.start()
        imap = self.server.connect()
        self.assertEqual(self.ok(imap.select("INBOX")), [b"8"])
        self.assertEqual(self.names(imap), [*HUGE, *LATE])
        values = fetch(imap, "1,2,5", "(RFC822.SIZE BODY.PEEK[]<2200000000.100>)")
        self.assertGreater(values[1]["RFC822.SIZE"], HOLE_BYTES)
        self.assertEqual(values[2]["BODY[]<2200000000>"].rstrip(b"\0\r\n"), b"")
        self.assertGreater(len(values[2]["BODY[]<2200000000>"]), 0)
        raw = fetch(imap, "5", "(BODY.PEEK[])")[5]["BODY[]"]
        self.assertEqual(raw.replace(b"\r\n", b"\n"), letter("late-3"))
        self.assertEqual(self.tail(), before, "opening writes nothing")

        self.ok(imap.append("INBOX", None, None, letter("new-1").replace(b"\n", b"\r\n")))
        self.ok(imap.noop())
        self.assertEqual(self.subjects(), [*LATE, "new-1"])
        self.assertTrue(self.tail().startswith(before))

        # One in the middle, behind which everything moves, and the last but one.
        self.ok(imap.store("4,8", "+FLAGS.SILENT", "(\\Deleted)"))
        self.ok(imap.close())
        self.assertEqual(self.subjects(), ["late-1", "late-3", "late-4", "late-5", "new-1"])
        self.assertFalse(b"late-2" in self.tail() or b"late-6" in self.tail())
        imap.logout()

        # Another program adds one while nobody looks.
        self.server.stop()
        with open(self.inbox, "ab") as file:
            file.write(in_mbox(letter("other-1")))
        self.server.start()
        imap = self.server.connect()
        self.ok(imap.select("INBOX"))
        left = ["late-1", "late-3", "late-4", "late-5", "new-1", "other-1"]
        self.assertEqual(self.names(imap), [*HUGE, *left])
        for number, name in enumerate(left, start=3):
            raw = fetch(imap, str(number), "(BODY.PEEK[])")[number]["BODY[]"]
            self.assertEqual(raw.replace(b"\r\n", b"\n").rstrip(b"\n"), letter(name).rstrip(b"\n"))
        imap.logout()
        self.server.stop()
        self.assertLess(os.stat(self.inbox).st_blocks * 512, 64 << 20, "the holes were written to")


if __name__ == "__main__":
    unittest.main()
