"""A MariaDB server of a test's own, in its folder, on a socket alone."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import time

START_SECONDS = 300
# Servers are where only root's PATH leads.
PROGRAM = next((path for path in ("/usr/sbin/mariadbd", "/usr/libexec/mariadbd") if os.path.exists(path)), "mariadbd")
# Of every start on the same data.
OPTIONS = ["--no-defaults", "--user=root", "--innodb-log-file-size=64M"]


class Database:
    """Runs until it is left; `folder` must be new."""

    def __init__(self, folder, *extra):
        self.folder = pathlib.Path(folder)
        self.extra = extra
        self.socket = self.folder / "socket"
        self.process = None

    def __enter__(self):
        data = self.folder / "data"
        data.mkdir(parents=True)
        # What a server makes for itself when it is new is safe from a kill only once that server has ended well.
        first = subprocess.run([PROGRAM, *OPTIONS, "--bootstrap", f"--datadir={data}"], stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=START_SECONDS)
        assert first.returncode == 0, first.stderr.decode(errors="replace")[-3000:]
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, *OPTIONS, "--skip-grant-tables", "--skip-networking", "--skip-log-bin",
                 "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=64M", "--performance-schema=off",
                 f"--datadir={self.folder / 'data'}", f"--socket={self.socket}",
                 f"--pid-file={self.folder / 'pid'}", *self.extra],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        limit = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
                probe.connect(os.fspath(self.socket))
                return
            if self.process.poll() is not None or time.monotonic() > limit:
                text = (self.folder / "log").read_text(errors="replace")
                self.kill()
                raise AssertionError(f"the database does not begin:\n{text[-3000:]}")
            time.sleep(0.01)

    def kill(self):
        """Ends it as a power cut would; what was committed is there when it is started again."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def pause(self):
        """From now on it answers nothing, until it is told to go on."""
        self.process.send_signal(signal.SIGSTOP)
        # Each of its threads hears of it by itself.
        while any(self.state(task) != "T" for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()):
            os.sched_yield()

    @staticmethod
    def state(task):
        """The state of a thread; one that has ended counts as stopped."""
        try:
            return (task / "stat").read_text().rpartition(") ")[2][0]
        except (FileNotFoundError, ProcessLookupError):
            return "T"

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def query(self, statements, database="", *options):
        done = subprocess.run(
            ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--user=root", f"--socket={self.socket}", *options,
             *([database] if database else [])], input=statements.encode(), capture_output=True, check=True)
        return done.stdout.decode()

    def end_connections(self, database):
        """Ends everybody's connections to a database; those that have just ended by themselves are no error."""
        kills = self.query("SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist "
                           f"WHERE id <> CONNECTION_ID() AND db = '{database}'")
        self.query(kills, "", "--force")

    def create(self, name):
        """Makes an empty database; gives its address."""
        self.query(f"CREATE DATABASE {name}")
        return f"mysql://root@localhost/{name}?socket={self.socket}"
