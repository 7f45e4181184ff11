"""The suite mbox2004 at some megabytes of real mail, Mailyard on mbox files beside Dovecot: answers are right, and costs stay in proportion.

The bounds here are wide, since the machine does other things as well; `bench_ratios.py` shows the figures of a run.
"""

import os
import unittest

import bench_ratios
import support
from bench import BenchCase

MESSAGES = int(os.environ.get("BENCH_MESSAGES", "2000"))
OURS, THEIRS = "mailyard-mbox", "dovecot-mbox"
STEPS = ["first open", "flags", "write back", "reopen", "open after 10", "flags again", "write back again", "expunge 1 %"]


@unittest.skipUnless(os.geteuid() == 0, "peers get processes and users of their own, which only root may give")
class Mbox2004(BenchCase):
    def test_beside_dovecot(self):
        messages = support.corpus()[:MESSAGES]
        support.write_mbox(self.mail, messages)
        size = self.mail.stat().st_size
        ran = self.run_bench("--suite", "mbox2004", "--peer", f"{OURS},{THEIRS}", "--repeat", 1)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.check_nothing_is_left()
        samples = self.records("sample")
        wrong = [(s["server"], s["test"], s["verdict"]) for s in samples if s["verdict"]["verdict"] != "right"]
        self.assertEqual([one for one in wrong if one[0] == OURS], [])
        table = bench_ratios.ratios(self.records(), OURS, THEIRS)
        print(f"{len(messages)} messages, {size} bytes; ours, theirs, ratio")
        print(bench_ratios.text(table))
        ours = {(test, measure): s[0] for (test, state), found in table.items() for measure, s in found.items() if state != "cold"}
        first = {measure: s[0] for measure, s in table["first open", "cold"].items()}
        for step in STEPS:
            self.assertTrue(any(test == step for test, _ in table), step)
        # First: the file once, and little beside it.
        self.assertLess(first["bytes_written"], 2e6 + size / 10)
        self.assertLess(first["chars_read"], size * 1.5 + 2e6)
        # The headers grow: every byte once, as far as it has to move; and the journal.
        self.assertLess(ours["write back", "chars_written"], size * 2.5)
        # Room is there: nothing moves, and what lies between the fields is written at most once with them.
        self.assertLess(ours["write back again", "chars_written"], size * 1.2)
        self.assertLess(ours["open after 10", "chars_read"], 1e6)


if __name__ == "__main__":
    unittest.main()
