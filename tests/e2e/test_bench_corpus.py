"""Mail made for the benchmark is like the mail it was made from, looked at by a program that had no part in making it."""

import collections
import email.parser
import hashlib
import os
import pathlib
import re
import subprocess
import unittest

from support import MAIL, ROOT, TOOL_SECONDS, Case, corpus, write_maildir, write_mbox

BENCH = pathlib.Path(os.environ.get("MAILYARD_BENCH", ROOT / "target/release/mailyard-bench")).resolve()

# The named size `large`.
MESSAGES = 21_282
BYTES = 100_000_000


def bench(*arguments, check=True):
    command = [BENCH, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=check)


def split(path):
    """The messages of an mbox in which every other line that begins with `From ` is quoted."""
    text = b"\n" + path.read_bytes()
    return [part.split(b"\n", 1)[1] for part in text.split(b"\nFrom ")[1:]]


def deciles(messages):
    sizes = sorted(map(len, messages))
    return [sizes[len(sizes) * part // 10] for part in range(1, 10)]


def charset(raw):
    found = re.search(rb'charset="?([\w.:-]+)', raw, re.IGNORECASE)
    return found[1].decode().lower() if found else None


def share(messages, is_one):
    return sum(map(is_one, messages)) / len(messages)


def is_multipart(raw):
    head = email.parser.BytesHeaderParser().parsebytes(raw.split(b"\n\n", 1)[0] + b"\n\n")
    return (head.get("Content-Type") or "").strip().lower().startswith("multipart/")


def words(messages):
    """How often each word comes, of all words."""
    counts = collections.Counter()
    for raw in messages:
        counts.update(re.findall(rb"\b[a-z]{2,16}\b", raw.split(b"\n\n", 1)[-1]))
    total = sum(counts.values())
    return {word: count / total for word, count in counts.items()}


class BenchCorpus(Case):
    def test_large_is_like_its_source(self):
        path = self.folder / "large.mbox"
        bench("corpus", "--from", MAIL, "--size", "large", "--out", path)
        made = split(path)
        self.assertEqual(len(made), MESSAGES)
        self.assertAlmostEqual(path.stat().st_size / BYTES, 1, delta=0.02)
        self.assertEqual(len({hashlib.sha256(raw).digest() for raw in made}), MESSAGES, "two messages are the same")
        real = [raw.replace(b"\r\n", b"\n") for _, raw in corpus()]
        # The wanted mean is smaller than the source's, so every decile is a little smaller.
        for of_real, of_made in zip(deciles(real), deciles(made)):
            self.assertTrue(0.8 <= of_made / of_real <= 1.05, (deciles(real), deciles(made)))
        self.assertAlmostEqual(share(made, is_multipart), share(real, is_multipart), delta=0.02)
        for name in (None, "us-ascii", "iso-8859-1", "windows-1252", "iso-8859-15"):
            with self.subTest(charset=name):
                is_one = lambda raw, name=name: charset(raw) == name
                self.assertAlmostEqual(share(made, is_one), share(real, is_one), delta=0.04)
        before, after = words(real), words(made)
        for word in sorted(before, key=before.get, reverse=True)[:50]:
            with self.subTest(word=word):
                self.assertAlmostEqual(after[word] / before[word], 1, delta=0.25)

    def test_sources(self):
        messages = corpus()[:200]
        write_maildir(self.folder / "Maildir", messages)
        (self.folder / "Maildir/tmp/not-delivered").write_bytes(messages[0][1])
        write_mbox(self.folder / "some.mbox", messages)
        for source in ("Maildir", "some.mbox"):
            with self.subTest(source):
                out = self.folder / f"{source}.out"
                arguments = ("--messages", 300, "--bytes", 1_200_000, "--seed", 5)
                said = bench("corpus", "--from", self.folder / source, *arguments, "--out", out).stdout
                self.assertRegex(said, r"made from\n  messages   200 of ")
                self.assertEqual(len(split(out)), 300)

    def test_what_is_no_mail(self):
        (self.folder / "text").write_text("Dear all,\n")
        (self.folder / "binary").write_bytes(bytes(range(256)))
        (self.folder / "nothing").mkdir()
        for name, why in (
            ("text", 'does not begin with "From "'),
            ("binary", "is a binary file"),
            ("nothing", "holds no mail"),
            ("missing", "there is no"),
        ):
            with self.subTest(name):
                out = self.folder / "out"
                arguments = ("corpus", "--from", self.folder / name, "--size", "small", "--out", out)
                done = bench(*arguments, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(why, done.stderr)
                self.assertFalse(out.exists())
                run = bench("run", "--corpus", self.folder / name, "--suite", "all", "--out", self.folder / "r", check=False)
                self.assertNotEqual(run.returncode, 0)


if __name__ == "__main__":
    unittest.main()
