"""A MariaDB server of a test's own: a temporary folder, a socket in it, ended by its process id."""

import contextlib
import shutil
import socket
import subprocess

import support

START_SECONDS = 60


class MariaDb:
    """A server without passwords, with an empty database `mail`."""

    def __init__(self, folder):
        self.folder = folder / "mariadb"
        (self.folder / "data").mkdir(parents=True)
        self.socket = self.folder / "socket"
        self.process = None
        self.program = shutil.which("mariadbd", path="/usr/sbin:/usr/bin")
        if self.program is None:
            raise AssertionError("mariadbd is not installed (Debian: mariadb-server)")

    @property
    def url(self):
        return f"mysql://root@localhost/mail?socket={self.socket}"

    def __enter__(self):
        common = ["--no-defaults", "--user=root", f"--datadir={self.folder}/data", "--innodb-log-file-size=16M"]
        with open(self.folder / "log", "ab") as log:
            subprocess.run([self.program, *common, "--bootstrap"], input=b"CREATE DATABASE mail;\n", stdout=log, stderr=log, check=True)
            self.process = subprocess.Popen(
                [self.program, *common, "--skip-grant-tables", "--skip-networking", "--skip-log-bin", "--innodb-buffer-pool-size=64M",
                 f"--socket={self.socket}", f"--pid-file={self.folder}/pid"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        support.until("the database", self.answers, seconds=START_SECONDS)
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the database ended:\n{(self.folder / 'log').read_text()[-2000:]}")
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
            return bool(probe.recv(1))
        return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
