"""What can go wrong with a run of the benchmark: each time a clear message, what was measured is kept, nothing is left behind."""

import random
import signal
import subprocess
import threading
import unittest

import support
from bench import RUN_SECONDS, SERVERS, BenchCase, made_up

# SIZE PLACE COPY COMMAND...: the command with a disk of its own at a place, which goes with the command; what is on it is copied before.
SMALL_DISK = 'mount -t tmpfs -o size=$1 none "$2" && place=$2 copy=$3 && shift 3; "$@"; code=$?; cp -R "$place" "$copy"; exit $code'


class WrongFromTheStart(BenchCase):
    """Said before anything is measured: there are no results."""

    def refused(self, *arguments, code=1, mail=True):
        done = self.run_bench(*arguments, mail=mail)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertFalse((self.out / "results.jsonl").exists())
        self.check_nothing_is_left()
        return done.stderr

    def test_wrong_password(self):
        support.add_user(self.data)
        with support.Server(self.data) as server:
            said = self.refused("--suite", "all", "--server", f"mine=imap://{support.USER}:no@127.0.0.1:{server.port}")
        self.assertIn(f"mine: imap://{support.USER}@127.0.0.1:{server.port}", said)
        self.assertIn("AUTHENTICATIONFAILED", said)
        self.assertNotIn(":no@", said)

    def test_nobody_listens(self):
        port = support.free_port()
        said = self.refused("--suite", "all", "--server", f"mine=imap://a:b@127.0.0.1:{port}")
        self.assertIn(f"mine: imap://a@127.0.0.1:{port}: Connection refused", said)

    def test_who_answers_speaks_something_else(self):
        with subprocess.Popen(
            ["python3", "-c", "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
             "c = s.accept()[0]\nc.sendall(b'220 mail.example.org ESMTP\\r\\n')\nc.recv(1)"], stdout=subprocess.PIPE, text=True,
        ) as process:
            port = int(process.stdout.readline())
            said = self.refused("--suite", "all", "--server", f"mine=imap://a:b@127.0.0.1:{port}")
            self.assertEqual(process.wait(support.STOP_SECONDS), 0)
        self.assertIn("220 mail.example.org ESMTP", said)

    def test_names(self):
        for option, wrong, meant in (
            ("--suite", "lisa2004", "lisa2003"), ("--peer", "dovecot-mdbx", "dovecot-mdbox"), ("--size", "smal", "small"),
        ):
            with self.subTest(option):
                fine = [word for other, word in (("--suite", "all"), ("--peer", "mailyard-native")) if other != option for word in (other, word)]
                said = self.refused(*fine, option, wrong, code=2)
                self.assertIn(f"invalid value '{wrong}' for '{option}", said)
                self.assertIn(f"'{meant}'", said.split("tip:")[1])
        said = self.refused("--suite", "all", "--server", "imap://a:b@c:1", code=2)
        self.assertIn("NAME=imap://user:password@host:port", said)
        said = self.refused("--suite", "all", "--server", "mine=http://a:b@c:1", code=2)
        self.assertIn("is not imap://user:password@host:port", said)

    def test_what_is_missing_or_twice(self):
        for arguments, why in (
            (["--suite", "mixed"], "name a server with --server or --peer"),
            (["--suite", "mixed", "--peer", "mailyard-native,mailyard-native"], "--peer is named twice: mailyard-native"),
            (["--suite", "mixed", "--peer", "mailyard-native", "--server", "limit=imap://a:b@127.0.0.1:1"], 'called "limit"'),
            (["--suite", "mixed", "--peer", "mailyard-native", "--corpus", self.mail], "a mailbox size is named twice: tiny"),
        ):
            with self.subTest(why):
                self.assertIn(why, self.refused(*arguments))
        self.assertIn("--corpus", self.refused("--suite", "mixed", "--peer", "mailyard-native", mail=False, code=2))
        self.server_program = self.folder / "no"
        self.assertIn("name it with --mailyard", self.refused("--suite", "mixed", "--peer", "mailyard-native"))

    def test_corpora(self):
        (self.folder / "text").write_text("Dear all,\n")
        (self.folder / "binary").write_bytes(bytes(range(256)))
        (self.folder / "empty").write_bytes(b"")
        (self.folder / "directory").mkdir()
        for name, why in (
            ("text", 'is no mbox file: it does not begin with "From "'), ("binary", "is no mbox file"), ("empty", "is empty"),
            ("directory", "is no mbox file"), ("missing", "No such file"),
        ):
            with self.subTest(name):
                path = self.folder / name
                said = self.refused("--suite", "all", "--peer", "mailyard-native", "--corpus", path, mail=False)
                self.assertIn(str(path), said)
                self.assertIn(why, said)

    def test_an_earlier_run(self):
        self.out.mkdir()
        before = b"an earlier run\n"
        (self.out / "results.jsonl").write_bytes(before)
        done = self.run_bench("--suite", "all", "--peer", "mailyard-native")
        self.assertEqual(done.returncode, 1)
        self.assertIn("holds an earlier run", done.stderr)
        self.assertEqual((self.out / "results.jsonl").read_bytes(), before)


class WrongMidway(BenchCase):
    """What was measured is kept and makes a report."""

    def started(self, *arguments):
        """A run that goes on; its lines of progress can be waited for."""
        process = subprocess.Popen(
            self.command(*arguments), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # A run that never comes to the awaited line is ended, and the test fails.
        watch = threading.Timer(RUN_SECONDS, process.kill)
        watch.start()
        self.addCleanup(watch.cancel)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def wait_for(self, process, words):
        said = []
        for line in process.stderr:
            said.append(line)
            if words in line:
                return
        self.fail(f"no {words!r} in {''.join(said)}")

    def ended(self, process):
        said = process.stderr.read()
        return process.wait(support.STOP_SECONDS), said

    def test_a_server_dies(self):
        support.add_user(self.data)
        with support.Server(self.data) as server:
            address = f"mortal=imap://{support.USER}:{support.PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}"
            run = self.started("--suite", "lisa2003,populate2006", "--server", address, "--peer", "mailyard-native", "--repeat", 2)
            self.wait_for(run, "lisa2003: headers: mailyard-native")
            server.kill()
            code, said = self.ended(run)
        self.assertEqual(code, 1, said)
        self.assertIn("not everything could be measured (mortal: ", said)
        self.assertIn(str(self.out), said)
        problems = self.records("problem")
        self.assertEqual([problem["server"] for problem in problems], ["mortal"], problems)
        samples = self.records("sample")
        tests = {name: {(s["suite"], s["test"]) for s in samples if s["server"] == name} for name in ("mortal", "mailyard-native")}
        self.assertIn(("lisa2003", "open"), tests["mortal"])
        self.assertNotIn("populate2006", {suite for suite, _ in tests["mortal"]})
        self.assertIn(("populate2006", "one mailbox"), tests["mailyard-native"])
        self.assertEqual(self.records()[-1]["record"], "end")
        self.assertNotIn(support.PASSWORD.replace(" ", "%20"), (self.out / "results.jsonl").read_text())
        self.assertIn("mortal", self.report())
        self.check_nothing_is_left()

    def test_interrupted(self):
        for number, blow in enumerate((signal.SIGINT, signal.SIGTERM)):
            with self.subTest(blow.name):
                self.out = self.folder / f"out{number}"
                run = self.started("--suite", "all", "--peer", ",".join(SERVERS))
                self.wait_for(run, f"lisa2003: headers: {SERVERS[-1]}")
                run.send_signal(blow)
                code, said = self.ended(run)
                self.assertEqual(code, 1, said)
                self.assertIn(f"results so far are in {self.out}: interrupted", said)
                self.assertTrue(any(sample["test"] == "open" for sample in self.records("sample")))
                self.assertEqual(self.records("problem"), [])
                self.assertIn("cut short", self.report())
                self.check_nothing_is_left()

    def on_a_small_disk(self, place, kilobytes, *arguments):
        """The run with a disk of so many KiB at a place. Gives how it ended; what was on that disk is in the folder `kept`."""
        before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK, "sh", f"{kilobytes}k", place, self.folder / "kept"]
        return self.run_bench(*arguments, before=before)

    def test_full_disk_for_the_servers(self):
        """The limits of the machine still fit, the mail of the servers does not."""
        support.write_mbox(self.mail, [("", raw + random.Random(7).randbytes(50_000).hex("\n", 30).encode()) for raw in made_up()])
        done = self.on_a_small_disk(self.work, 9 << 10, "--suite", "lisa2003,populate2006", "--peer", "mailyard-native", "--repeat", 1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"results so far are in {self.out}", done.stderr)
        self.assertGreater(len(self.records("limit")), 0)
        self.assertEqual([problem["server"] for problem in self.records("problem")], ["mailyard-native"], done.stderr)
        self.assertIn("storage is full", done.stderr)
        self.report()
        self.assertEqual(list((self.folder / "kept").iterdir()), [])
        self.check_nothing_is_left()

    def test_full_disk_for_the_results(self):
        self.out.mkdir()
        done = self.on_a_small_disk(self.out, 16, "--suite", "lisa2003", "--peer", "mailyard-native", "--repeat", 1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"{self.out / 'results.jsonl'}: No space left on device", done.stderr)
        self.out = self.folder / "kept"
        self.assertGreater(len(self.records("sample")), 0)
        self.assertEqual(self.records("problem"), [])
        self.assertIn("cut short", self.report())
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
