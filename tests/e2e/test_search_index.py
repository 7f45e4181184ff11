"""The search index is only derived: while the server runs it may be deleted, and answers stay right; it comes back. On accounts whose
mail lies in mbox files it follows what other programs do to them. A search that has to look at every message lets others go on, and
takes no memory to speak of.
"""

import pathlib
import re
import shutil
import threading
import time
import unittest

from support import Case, Server, USER, add_mbox_user, add_user, corpus, crlf, tool, until, write_mbox

NEEDLES = ['BODY "free"', 'TEXT "linux"', 'BODY "of the"', 'TEXT " the "', 'SUBJECT "re:"', 'NOT BODY "e"', 'OR FROM "zzz" TEXT "one of the"']


def holds(raw, needle):
    return needle in crlf(raw).split(b"\r\n\r\n", 1)[-1].lower()


class SearchIndex(Case):
    def answers(self, imap):
        return [self.ok(imap.search(None, needle))[0].split() for needle in NEEDLES]

    def parts(self, index):
        return sorted(path.name for path in index.glob("search*"))

    def test_deleted_while_the_server_runs(self):
        add_user(self.data)
        mbox = self.folder / "mbox"
        write_mbox(mbox, corpus())
        tool(self.data, "import", "--index", "--user", USER, "--mailbox", "INBOX", mbox)
        index = self.data / "accounts" / USER / "index"
        self.assertIn("search", self.parts(index))
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX"))
            before = self.answers(imap)
            self.assertTrue(all(before))
            for path in index.glob("search*"):
                path.unlink()
            self.assertEqual(self.answers(imap), before)
            # A message that comes now is found at once, and makes the server look after the account.
            self.ok(imap.append("INBOX", None, None, b"Subject: new\r\n\r\nzzyzx of the free\r\n"))
            self.assertEqual(len(self.ok(imap.search(None, 'BODY "zzyzx"'))[0].split()), 1)
            until("index", lambda: "search" in self.parts(index), seconds=60)
            self.assertEqual([found[:len(old)] for found, old in zip(self.answers(imap), before)], before)
            imap.logout()
        # Without any index at all, from the start.
        shutil.rmtree(index)
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX"))
            self.assertEqual([found[:len(old)] for found, old in zip(self.answers(imap), before)], before)
            imap.logout()
        _, out, _ = tool(self.data, "search", "--user", USER, "--imap", "--verify", "--json", 'BODY "of the"')
        self.assertIn('"damaged":0', out.replace(" ", ""))
        tool(self.data, "check", "--user", USER)

    def memory_kib(self, server):
        """The most that the server has taken so far."""
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])

    def test_a_long_search_lets_others_go_on(self):
        add_user(self.data)
        mbox = self.folder / "mbox"
        write_mbox(mbox, corpus())
        tool(self.data, "import", "--index", "--user", USER, "--mailbox", "INBOX", mbox)
        with Server(self.data) as server:
            imap, other = server.connect(), server.connect()
            self.ok(imap.select("INBOX"))
            self.ok(other.select("INBOX"))
            self.ok(imap.search(None, "BODY", '"nowhere"'))
            before = self.memory_kib(server)
            for path in (self.data / "accounts" / USER / "index").glob("search*"):
                path.unlink()
            # No field can have such a name, and the index knows nothing of it: every header is looked at for each of these.
            keys = " ".join(f'NOT HEADER "x {number}" "a"' for number in range(100))
            found = []
            searcher = threading.Thread(target=lambda: found.append(self.ok(imap.search(None, keys))[0].split()))
            begin = time.monotonic()
            searcher.start()
            slowest, asked = 0.0, 0
            while searcher.is_alive():
                start = time.monotonic()
                self.ok(other.noop())
                self.ok(other.fetch("1", "(FLAGS BODY.PEEK[HEADER])"))
                slowest, asked = max(slowest, time.monotonic() - start), asked + 1
            searcher.join()
            took = time.monotonic() - begin
            self.assertEqual(len(found[0]), len(corpus()))
            print(f"a search of {took:.2f} s, meanwhile {asked} times NOOP and FETCH, the slowest {slowest * 1000:.0f} ms", flush=True)
            self.assertGreaterEqual(asked, 5, "the others had to wait for the search")
            self.assertLess(self.memory_kib(server) - before, 100 * 1024)
            imap.logout()
            other.logout()

    def test_mbox_files_that_others_change(self):
        inbox, _ = add_mbox_user(self.data, self.folder)
        messages = corpus()[:1500]
        write_mbox(inbox, messages)
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX"))

            def found(needle):
                self.ok(imap.noop())
                return len(self.ok(imap.search(None, needle))[0].split())

            self.assertGreater(found('BODY "linux"'), 50)
            # Another program delivers, and then takes messages out.
            with open(inbox, "ab") as file:
                file.write(b"From other@example.org Thu Jan  1 00:00:00 2004\nSubject: quuxly\n\nplugh of the linux\n\n")
            until("delivered message", lambda: found('BODY "plugh"') == 1)
            self.assertEqual(found('SUBJECT "quuxly"'), 1)
            sorted_dates = self.ok(imap.sort("(REVERSE DATE)", "UTF-8", "ALL"))[0].split()
            self.assertEqual(len(sorted_dates), len(messages) + 1)
            self.assertIn(str(len(messages) + 1), self.ok(imap.thread("REFERENCES", "UTF-8", "ALL"))[0].decode())
            imap.close()
            write_mbox(inbox, [message for message in messages if not holds(message[1], b"linux")])
            self.ok(imap.select("INBOX"))
            self.assertEqual(found('BODY "plugh"'), 0)
            left = sum(not holds(raw, b"linux") for _, raw in messages)
            self.assertEqual(found("ALL"), left)
            imap.logout()
        for query in ('BODY "of the"', 'TEXT " the "', 'NOT BODY "linux"'):
            _, out, _ = tool(self.data, "search", "--user", USER, "--imap", "--verify", "--json", query)
            self.assertIn('"damaged":0', out.replace(" ", ""), query)
        _, out, _ = tool(self.data, "check", "--user", USER, "--json")
        self.assertIn('"damaged":0', out.replace(" ", ""))


if __name__ == "__main__":
    unittest.main()
