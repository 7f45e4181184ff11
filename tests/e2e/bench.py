"""What the tests of the benchmark share: a tiny mailbox, runs of the program, and looks at what they left."""

import json
import os
import pathlib
import subprocess

import support

PROGRAM = pathlib.Path(os.environ.get("MAILYARD_BENCH", support.ROOT / "target/release/mailyard-bench")).resolve()
RUN_SECONDS = 300
MESSAGES = 60
# A peer that serves mbox files in place takes part in every suite. Peers get processes and users of their own, which only root may give.
SERVERS = ["mailyard-native", "mailyard-mbox"] + (["dovecot-mbox"] if os.geteuid() == 0 else [])


def made_up(count=MESSAGES):
    """Messages of which every third is happy and every fourth free, in ways that have to be decoded."""
    for number in range(count):
        happy = ["", "", "=?iso-8859-1?Q?=48appy?="][number % 3]
        free = ["x", "x", "x", "fr=\nEE"][number % 4]
        yield (
            f"From: Person {number % 7} <p{number % 7}@example.org>\nTo: free@example.org\nSubject: number {number} {happy}\n"
            f"Date: Mon, {number % 28 + 1} Sep 2003 10:00:00 +0200\nMessage-ID: <{number}@example.org>\nMIME-Version: 1.0\n"
            f"Content-Type: text/plain; charset=us-ascii\nContent-Transfer-Encoding: quoted-printable\n\nbody {free}\n"
        ).encode()


class BenchCase(support.Case):
    """A test with a tiny mailbox and folders for the results and for what is temporary."""

    def setUp(self):
        super().setUp()
        if not PROGRAM.is_file():
            raise AssertionError(f"{PROGRAM} is not built")
        # Servers give up root's rights: they have to get through to their own folder.
        self.folder.chmod(0o711)
        self.mail = self.folder / "tiny.mbox"
        support.write_mbox(self.mail, [("", raw) for raw in made_up()])
        self.out = self.folder / "out"
        self.work = self.folder / "work"
        self.work.mkdir(mode=0o711)
        self.server_program = support.PROGRAM

    def command(self, *arguments, mail=True):
        command = [PROGRAM, "run", "--quick", "--out", self.out, "--work", self.work, "--mailyard", self.server_program]
        return [str(word) for word in command + (["--corpus", self.mail] if mail else []) + list(arguments)]

    def run_bench(self, *arguments, mail=True, before=()):
        """A run to its end; `before` are words in front of the command."""
        command = [*before, *self.command(*arguments, mail=mail)]
        return subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, text=True, stdin=subprocess.DEVNULL)

    def records(self, kind=None):
        lines = (self.out / "results.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return [record for record in records if kind in (None, record["record"])]

    def report(self):
        """The report of the run; gives the page's text."""
        made = subprocess.run([PROGRAM, "report", self.out], capture_output=True, timeout=RUN_SECONDS, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        for name in ("report.html", "report.csv", "report.json"):
            self.assertGreater((self.out / name).stat().st_size, 0, name)
        json.loads((self.out / "report.json").read_text())
        return (self.out / "report.html").read_text()

    def check_nothing_is_left(self):
        """No temporary folder, and no process that was started with one or works in one."""
        self.assertEqual(list(self.work.iterdir()), [])
        support.until("end of all processes", lambda: not processes_of(self.work))


def processes_of(folder):
    """Processes whose command, working folder or open files are below a folder."""
    found = []
    below = os.fspath(folder)
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            places = [os.readlink(process / "cwd"), *(os.readlink(file) for file in (process / "fd").iterdir())]
        except OSError:
            # It ended while one looked, or belongs to somebody else.
            continue
        if below in words or any(place.startswith(below) for place in places):
            found.append((process.name, words.replace("\0", " ")))
    return found
