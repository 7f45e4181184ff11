"""The suite lisa2003 at a tiny size: every test gives a time, right by the oracle, for Mailyard and for a Debian peer beside it."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import support
from support import Case

BENCH = pathlib.Path(os.environ.get("MAILYARD_BENCH", support.ROOT / "target/release/mailyard-bench")).resolve()
RUN_SECONDS = 300
READS = ["open", "list", "headers", "search happy", "search free", "search from", "search sent date", "search internal date"]
EXPUNGES = [f"{what} {percent} %" for what in ("mark", "expunge") for percent in (1, 20)]
MESSAGES = 120


@unittest.skipUnless(BENCH.is_file(), f"{BENCH} is not built")
class Lisa2003(Case):
    def test_every_test_has_a_right_answer(self):
        mail = self.folder / "tiny.mbox"
        support.write_mbox(mail, [("", raw) for raw in made_up()])
        peers = ["mailyard-native"] + (["dovecot-maildir"] if shutil.which("dovecot") and os.geteuid() == 0 else [])
        out = self.folder / "out"
        command = [BENCH, "run", "--corpus", mail, "--suite", "lisa2003", "--peer", ",".join(peers), "--quick", "--out", out]
        command += ["--mailyard", support.PROGRAM]
        ran = subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        records = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
        times = {}
        for record in records:
            if record["record"] == "sample" and record["measure"] == "time":
                times[record["server"], record["test"], record["state"]] = record
        for server in peers + ["limit"]:
            for test in READS + EXPUNGES:
                for state in ("cold", "warm"):
                    sample = times[server, test, state]
                    self.assertEqual(sample["verdict"], {"verdict": "right"}, (server, test, state))
                    self.assertGreater(sample["value"], 0)
        hits = {r["test"]: r["value"] for r in records if r["record"] == "sample" and r["measure"] == "hits" and r["server"] == peers[0]}
        self.assertEqual((hits["search happy"], hits["search free"]), (MESSAGES / 3, MESSAGES / 4))
        self.assertTrue(any(r["record"] == "note" and r["text"].startswith("cold: ") for r in records))


def made_up():
    """Messages of which every third is happy and every fourth free, in ways that have to be decoded."""
    for number in range(MESSAGES):
        happy = ["", "", "=?iso-8859-1?Q?=48appy?="][number % 3]
        free = ["x", "x", "x", "fr=\nEE"][number % 4]
        yield (
            f"From: Person {number % 7} <p{number % 7}@example.org>\nTo: free@example.org\nSubject: number {number} {happy}\n"
            f"Date: Mon, {number % 28 + 1} Sep 2003 10:00:00 +0200\nMessage-ID: <{number}@example.org>\nMIME-Version: 1.0\n"
            f"Content-Type: text/plain; charset=us-ascii\nContent-Transfer-Encoding: quoted-printable\n\nbody {free}\n"
        ).encode()


if __name__ == "__main__":
    unittest.main()
