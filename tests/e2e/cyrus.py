"""Debian's Cyrus on loopback, for one test: its own folder, its own port, ended by its process id. Needs root, since it gives that up."""

import contextlib
import imaplib
import os
import shutil
import signal
import socket
import subprocess
import time

import debian
import support

# One that owns nothing: `games` on Debian.
OWNER = (5, 60)
OWNER_NAME = "games"
PACKAGES = ("cyrus-common", "cyrus-imapd", "libical3", "libzephyr4", "libxapian30", "libpq5", "libwrap0", "libclamav12")


class Cyrus:
    """A server with any number of users and any password."""

    def __init__(self, folder):
        self.root = debian.unpacked("cyrus", *PACKAGES)
        self.programs = self.root / "usr/lib/cyrus/bin"
        if not debian.runs(self.programs / "imapd", self.root):
            raise debian.Missing("Cyrus does not find its libraries")
        self.folder = folder / "cyrus"
        self.port = support.free_port()
        self.process = None
        for name in ("conf", "spool", "run", "socket"):
            (self.folder / name).mkdir(parents=True)
        self.config = self.folder / "imapd.conf"
        self.config.write_text(f"""
configdirectory: {self.folder}/conf
partition-default: {self.folder}/spool
defaultpartition: default
cyrus_user: {OWNER_NAME}
admins: admin
allowplaintext: 1
unixhierarchysep: 1
altnamespace: 1
sasl_mech_list: PLAIN
master_pid_file: {self.folder}/run/pid
idlesocket: {self.folder}/socket/idle
lmtpsocket: {self.folder}/socket/lmtp
notifysocket: {self.folder}/socket/notify
expunge_mode: delayed
""")
        (self.folder / "cyrus.conf").write_text(f"""
START {{
  recover cmd="{self.programs}/ctl_cyrusdb -C {self.config} -r"
}}

SERVICES {{
  imap cmd="{self.programs}/imapd -C {self.config} -N" listen="127.0.0.1:{self.port}" prefork=0
}}
""")
        folder.chmod(0o755)
        for path in [self.folder, *self.folder.rglob("*")]:
            os.chown(path, *OWNER)

    def start(self):
        command = [self.programs / "master", "-C", self.config, "-M", self.folder / "cyrus.conf", "-p", self.folder / "run/master",
                   "-D"]
        self.process = subprocess.Popen(command, env=debian.environment(self.root), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        limit = time.monotonic() + support.START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                if probe.recv(1024).startswith(b"* OK"):
                    return self
            if self.process.poll() is not None or time.monotonic() > limit:
                self.stop()
                raise debian.Missing("Cyrus does not answer")
            time.sleep(0.05)

    def stop(self):
        """Ends the server and its children: they are a process group of their own."""
        if self.process is not None:
            for ask in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.process.pid, ask)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(support.STOP_SECONDS)
                    break
            self.process = None

    def connect(self, user):
        imap = imaplib.IMAP4("127.0.0.1", self.port, timeout=support.IMAP_SECONDS)
        imap.login(user, "anything")
        return imap

    def add_user(self, user):
        admin = self.connect("admin")
        assert admin.create(f"user/{user}")[0] == "OK"
        admin.logout()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder / "run", ignore_errors=True)
