"""Hints over NATS: a client in IDLE on one server hears at once of what is delivered through another, though that one hardly ever looks."""

import shutil
import socket
import statistics
import subprocess
import time
import unittest

import support
from mariadb import Database
from support import Case, Server, all_messages, free_port, tool
from test_idle import Idler

# Long after the test is over.
POLL_MS = 3_600_000
# A machine that does much else.
PATIENCE_SECONDS = 300
MESSAGE = b"Subject: hint\r\n\r\nhello\r\n"
PROGRAM = shutil.which("nats-server") or "/usr/sbin/nats-server"


class Nats:
    """A NATS server on a port of its own."""

    def __init__(self):
        self.port = free_port()
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "--addr", "127.0.0.1", "--port", str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.until("NATS server", self.answers, PATIENCE_SECONDS)

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                return probe.recv(5) == b"INFO "
        except OSError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


class Hints(Case):
    def connect(self, server):
        imap = server.connect()
        imap.sock.settimeout(PATIENCE_SECONDS)
        self.ok(imap.select("INBOX"))
        return imap

    def test_idle_on_another_server(self):
        with Database(self.folder / "mariadb") as database, Nats() as nats:
            config = self.folder / "mailyard.toml"
            config.write_text(f'[sql]\nurls = ["{database.create("mail")}"]\npoll_ms = {POLL_MS}\ntimeout_seconds = 120\n'
                              f'retry_seconds = 120\nnats_urls = ["nats://127.0.0.1:{nats.port}"]\n')
            options = ("--config", config)
            tool(self.data, "sql", "update", *options)
            other = self.folder / "other"
            other.mkdir()
            for data in (self.data, other):
                tool(data, "user", "add", support.USER, "--password-stdin", "--format", "sql", *options,
                     stdin=support.PASSWORD.encode() + b"\n")
            with Server(self.data, *options) as a, Server(other, *options) as b:
                watcher, sender = self.connect(a), self.connect(b)
                idler = Idler(watcher)
                taken = []
                for number in range(1, 11):
                    since = len(idler.lines)
                    self.ok(sender.append("INBOX", None, None, MESSAGE))
                    answered = time.perf_counter()
                    taken.append((idler.when(b"* %d EXISTS" % number, since, PATIENCE_SECONDS) - answered) * 1000)
                # Without the server nothing breaks: who asks is told.
                nats.kill()
                self.ok(sender.append("INBOX", None, None, MESSAGE))
                self.assertEqual(len(all_messages(self.connect(a), "INBOX")), 11)
                since = len(idler.lines)
                # It comes back: servers connect again, and look for what was not said.
                nats.start()
                self.ok(sender.append("INBOX", None, None, MESSAGE))
                idler.when(b"* 12 EXISTS", since, PATIENCE_SECONDS)
                idler.done()
        print(f"seen on the other server after the answer to APPEND: median {statistics.median(taken):.1f} ms, worst {max(taken):.1f} ms")


if __name__ == "__main__":
    unittest.main()
