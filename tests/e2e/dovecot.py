"""Debian's Dovecot on loopback, for one test: its own folder, its own port, ended by its process id. Needs root, as Dovecot does."""

import contextlib
import imaplib
import os
import signal
import socket
import subprocess
import time

import support

PASSWORD = "dovecots-secret"
# Dovecot refuses to serve root's mail: the numbers of `mail` on Debian.
OWNER = (8, 8)


class Dovecot:
    """A server with any number of users. `location` is its mail_location, in which `{home}` is the folder of users' homes."""

    def __init__(self, folder, location="maildir:~/Maildir", extra=""):
        self.folder = folder / "dovecot"
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.port = support.free_port()
        self.log = self.folder / "log"
        os.chmod(folder, 0o755)
        for path in (self.folder, self.home):
            os.chmod(path, 0o755)
        os.chown(self.home, *OWNER)
        self.config = self.folder / "dovecot.conf"
        self.config.write_text(f"""
protocols = imap
listen = 127.0.0.1
base_dir = {self.folder}/run
state_dir = {self.folder}/run
log_path = {self.log}
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = {location.format(home=self.home)}
namespace inbox {{
  inbox = yes
}}
passdb {{
  driver = static
  args = password={PASSWORD}
}}
userdb {{
  driver = static
  args = uid={OWNER[0]} gid={OWNER[1]} home={self.home}/%u
}}
service imap-login {{
  inet_listener imap {{
    port = {self.port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
{extra}
""")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(["dovecot", "-F", "-c", self.config], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        limit = time.monotonic() + support.START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                if probe.recv(1024).startswith(b"* OK"):
                    return self
            if self.process.poll() is not None or time.monotonic() > limit:
                self.stop()
                raise AssertionError(f"Dovecot does not answer:\n{self.log.read_text() if self.log.exists() else ''}")
            time.sleep(0.01)

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(support.STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def connect(self, user):
        imap = imaplib.IMAP4("127.0.0.1", self.port, timeout=support.IMAP_SECONDS)
        imap.login(user, PASSWORD)
        return imap

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
