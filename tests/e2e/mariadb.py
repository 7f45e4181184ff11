"""A MariaDB server of a test's own, in its folder, on a socket alone."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

START_SECONDS = 120
# Servers are where only root's PATH leads.
PROGRAM = next((path for path in ("/usr/sbin/mariadbd", "/usr/libexec/mariadbd") if os.path.exists(path)), "mariadbd")


class Database:
    """Runs until it is left; `folder` must be new."""

    def __init__(self, folder, *extra):
        self.folder = pathlib.Path(folder)
        self.extra = extra
        self.socket = self.folder / "socket"
        self.process = None

    def __enter__(self):
        (self.folder / "data").mkdir(parents=True)
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "--no-defaults", "--user=root", "--skip-grant-tables", "--skip-networking", "--skip-log-bin",
                 "--innodb-flush-log-at-trx-commit=1", "--innodb-log-file-size=64M", "--innodb-buffer-pool-size=64M",
                 "--performance-schema=off", f"--datadir={self.folder / 'data'}", f"--socket={self.socket}",
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

    def query(self, statements, database=""):
        done = subprocess.run(
            ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--user=root", f"--socket={self.socket}",
             *([database] if database else [])], input=statements.encode(), capture_output=True, check=True)
        return done.stdout.decode()

    def create(self, name):
        """Makes an empty database; gives its address."""
        self.query(f"CREATE DATABASE {name}")
        return f"mysql://root@localhost/{name}?socket={self.socket}"
