"""mailyard scan: the messages of mbox files, beside what Python's mailbox makes of the same bytes."""

import json
import mailbox
import re
import unittest

import support
from support import Case, corpus, tool, write_mbox

FROM = b"From a@example.org Mon Jan  5 10:00:00 2004\n"


def rows(*arguments, check=True):
    """The objects that `scan --json` prints, one a line."""
    _, out, _ = tool(None, "scan", "--json", *arguments, check=check)
    return [json.loads(line) for line in out.splitlines()]


class Scan(Case):
    def compare(self, path):
        """Every message is where Python finds it, and has the same bytes."""
        content = path.read_bytes()
        found = rows(path)
        box = mailbox.mbox(path, create=False)
        self.addCleanup(box.close)
        keys = box.keys()
        self.assertEqual(len(found), len(keys))
        at = found[0]["offset"] if found else len(content)
        for row, key in zip(found, keys):
            self.assertTrue(row["offset"] <= row["header"] <= row["body"] <= row["end"], row)
            self.assertEqual(row["size"], row["end"] - row["header"])
            self.assertLessEqual(at, row["offset"])
            self.assertEqual(content[at:row["offset"]].strip(b"\r\n"), b"", "the messages cover the file")
            self.assertTrue(content[row["offset"]:row["header"]].startswith(b"From "))
            raw = content[row["header"]:row["end"]]
            self.assertEqual(raw, box.get_bytes(key), f"the message at {row['offset']}")
            at = row["end"]
        self.assertEqual(content[at:].strip(b"\r\n"), b"")
        return found

    def test_made(self):
        """All kinds of messages that Python can tell apart, too."""
        mbox = self.folder / "mbox"
        header = b"From: =?utf-8?q?J=C3=B6?= <j@example.org>\nSubject: =?utf-8?b?w6TDtsO8?=\n\n"
        bodies = [b"text\n", b"", b"\n\n", b">From here\n>>From there\n", b"nul \0 and \xff\n", b"x" * 100_000 + b"\n", b"a\rb\n"]
        mbox.write_bytes(b"".join(FROM + header + body + b"\n" for body in bodies * 50)[:-1])
        found = self.compare(mbox)
        self.assertEqual(len(found), 350)
        for row in found:
            self.assertEqual((row["from"], row["subject"]), ("Jö <j@example.org>", "äöü"))
            self.assertEqual(row["date"], "5-Jan-2004 10:00:00 +0000")
        self.assertEqual([row["dialect"] for row in found[:4]], ["plain", "plain", "plain", "mboxrd"])
        self.assertIn("nul", found[4]["flags"])

    def test_content_length(self):
        """What Python splits: a body that its Content-Length delimits."""
        mbox = self.folder / "mbox"
        body = b"text\n\n" + FROM + b"Subject: enclosed\n\nmore\n"
        first = FROM + b"Content-Length: %d\n\n" % len(body) + body + b"\n"
        mbox.write_bytes(first + FROM + b"Subject: second\nContent-Length: 7\n\nnot so\nlong\n")
        found = rows(mbox)
        self.assertEqual([row["offset"] for row in found], [0, len(first)])
        self.assertEqual([row["dialect"] for row in found], ["mboxcl2", "plain"])
        self.assertIn("content-length-wrong", found[1]["flags"])

    def test_corpus(self):
        """Real mail: the same on one thread and on several."""
        mbox = self.folder / "mbox"
        messages = corpus()
        write_mbox(mbox, messages)
        found = self.compare(mbox)
        self.assertEqual(len(found), len(messages))
        self.assertEqual(rows("--jobs", "3", mbox), found)
        content = mbox.read_bytes()
        for row, (name, raw) in zip(found, messages):
            back = re.sub(rb"(?m)^>(>*From )", rb"\1", content[row["header"]:row["end"]])
            self.assertEqual(back, raw if raw.endswith(b"\n") else raw + b"\n", name)

    def test_large(self):
        """A file over 4 GiB, most of it a hole in one message's body."""
        mbox = self.folder / "mbox"
        message = FROM + b"Subject: %d\n\ntext\n\n"
        with open(mbox, "wb") as out:
            out.write(message % 1)
            out.seek(5 << 30)
            out.write(b"\n\n" + message % 2 + message % 3)
        for jobs in "1", "2":
            found = rows("--jobs", jobs, mbox)
            self.assertEqual([row["subject"] for row in found], ["1", "2", "3"])
            self.assertEqual(found[1]["offset"], (5 << 30) + 2)
            self.assertEqual(found[0]["end"], (5 << 30) + 1)
            self.assertIn("nul", found[0]["flags"])
            self.assertEqual(found[2]["size"], len(message % 3) - len(FROM) - 1)

    def test_shown(self):
        """The table, the count, and what is no mbox."""
        good, bad, empty = self.folder / "good", self.folder / "bad", self.folder / "empty"
        good.write_bytes((FROM + b"From: a@example.org\nSubject: hello\n\ntext\n\n") * 3)
        bad.write_bytes(b"Subject: no mbox\n\nFrom here on text\n")
        empty.write_bytes(b"")
        _, out, err = tool(None, "scan", good)
        lines = out.splitlines()
        self.assertEqual(len(lines), 4)
        self.assertRegex(lines[1], r"^ +0 +41  a@example\.org +5-Jan-2004 10:00:00 \+0000  hello$")
        self.assertRegex(err, r"^3 messages, 258 bytes in .* GB/s$")
        code, out, err = tool(None, "scan", "--count", "--quiet", bad, good, empty, self.folder / "missing", check=False)
        self.assertEqual((code, out), (1, f"{good}: 3\n{empty}: 0\n"))
        self.assertIn(f"{bad}: no mbox", err)
        self.assertIn("missing", err)
        self.assertEqual(len(err.splitlines()), 2)
        code, _, _ = tool(None, "scan", check=False)
        self.assertEqual(code, 2)


if __name__ == "__main__":
    unittest.main()
