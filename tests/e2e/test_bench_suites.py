"""Every suite of the benchmark at a tiny size, Mailyard beside Dovecot: every answer is right, and nothing is left behind."""

import collections
import unittest

from bench import MESSAGES, SERVERS, BenchCase

SUITES = ["lisa2003", "populate2006", "folder2007", "mbox2004", "scan2002", "deliver", "pop3", "backup", "mixed"]
# Suites that measure programs instead of servers.
PROGRAMS = {"scan2002": ["mailyard-scan", "python-mailbox", "grep"]}
READS = ["open", "list", "headers", "search happy", "search free", "search two letters", "search phrase", "search from", "search sent date",
         "search internal date", "sort by date", "thread"]
EXPUNGES = [f"{what} {percent} %" for what in ("mark", "expunge") for percent in (1, 20)]


class Suites(BenchCase):
    def test_every_suite(self):
        ran = self.run_bench("--suite", "all", "--peer", ",".join(SERVERS), "--repeat", 1)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.check_nothing_is_left()
        self.check_every_server_took_part()
        self.check_lisa2003()
        self.assertEqual(self.records("problem"), [])
        self.assertEqual(self.records()[-1]["record"], "end")
        page = self.report()
        for name in SUITES + SERVERS:
            self.assertIn(name, page)

    def check_every_server_took_part(self):
        verdicts = collections.defaultdict(collections.Counter)
        for sample in self.records("sample"):
            verdict = sample["verdict"]
            place = (sample["suite"], sample["test"], sample["server"])
            self.assertIn(verdict["verdict"], ("right", "unsupported"), (place, verdict))
            if verdict["verdict"] == "unsupported":
                self.assertTrue(verdict["why"].strip(), place)
            else:
                self.assertGreaterEqual(sample["value"], 0, place)
            verdicts[sample["suite"], sample["server"]][verdict["verdict"]] += 1
        for suite in SUITES:
            for server in PROGRAMS.get(suite, SERVERS):
                with self.subTest(suite=suite, server=server):
                    seen = verdicts[suite, server]
                    self.assertTrue(seen)
                    if (suite, server) != ("mbox2004", "mailyard-native"):
                        self.assertGreater(seen["right"], 0)

    def check_lisa2003(self):
        """Each test of the paper has a time for each server and for the machine, cold and warm, and the searches found what is there."""
        samples = [sample for sample in self.records("sample") if sample["suite"] == "lisa2003"]
        times = {(s["server"], s["test"], s["state"]): s["value"] for s in samples if s["measure"] == "time"}
        for server in SERVERS + ["limit"]:
            for test in READS + EXPUNGES:
                for state in ("cold", "warm"):
                    self.assertGreater(times[server, test, state], 0)
        hits = {(s["server"], s["test"]): s["value"] for s in samples if s["measure"] == "hits"}
        for server in SERVERS:
            found = [hits[server, f"search {word}"] for word in ("happy", "free")]
            self.assertEqual(found, [MESSAGES / 3, MESSAGES / 4])
        self.assertTrue(any(note["text"].startswith("cold: ") for note in self.records("note")))


if __name__ == "__main__":
    unittest.main()
