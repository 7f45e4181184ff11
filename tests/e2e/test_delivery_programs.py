"""Real mail programs around a server: postfix and swaks deliver over LMTP, fetchmail and mpop empty the accounts over POP3.

The configuration of both ends is what docs/delivery.md shows, taken from there. Postfix runs with a folder of its own, on loopback, and is ended
by its process id. It runs as root only, as its own manual has it.
"""

import contextlib
import grp
import os
import pwd
import re
import signal
import smtplib
import socket
import subprocess
import unittest

import support
from support import Case, Server, add_maildir_user, add_mbox_user, add_user, all_messages, corpus, crlf, tool, until

MESSAGES = 60
ACCOUNTS = {"ann": "native", "bob": "mbox", "cay": "maildir"}
POSTFIX_MASTER = """
127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""
# What keeps postfix within its folder, and from changing mail: header fields that it would take out, lines that it would fold.
POSTFIX_MAIN = """
compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/lib
maillog_file = {folder}/log
maillog_file_prefixes = {folder}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = relay.example.net
mydestination =
local_recipient_maps =
mynetworks = 127.0.0.0/8
local_header_rewrite_clients =
message_drop_headers =
lmtp_line_length_limit = 0
alias_maps =
smtpd_tls_security_level = none
minimal_backoff_time = 1s
maximal_backoff_time = 1s
queue_run_delay = 1s
"""


def block(before):
    """The code block that follows a line of docs/delivery.md."""
    text = (support.ROOT / "docs/delivery.md").read_text()
    return re.search(re.escape(before) + r".*?```[a-z]*\n(.*?)```", text, re.DOTALL)[1]


def fit_for_smtp():
    """Mail of the corpus that goes through these programs as it is: no long lines, no NUL or CR of its own, none of the fields that they own."""
    for name, raw in corpus():
        lines = raw.split(b"\n")
        if max(map(len, lines)) < 900 and not re.search(rb"[\r\0]", raw) and raw.endswith(b"\n") \
                and re.match(rb"[!-9;-~]+:", raw) and b"\n\n" in raw \
                and not re.search(rb"(?im)^(?:return-path|delivered-to|content-length|status|x-status|x-uid|x-keywords):", raw):
            yield name, raw


class Postfix:
    def __init__(self, folder, socket_path):
        self.folder = folder / "postfix"
        self.port = support.free_port()
        for name in ("", "queue", "lib"):
            (self.folder / name).mkdir()
        os.chown(self.folder / "lib", pwd.getpwnam("postfix").pw_uid, -1)
        config = block("Postfix, in `main.cf`:")
        assert "lmtp:unix:/run/mailyard/lmtp" in config, config
        config = config.replace("/run/mailyard/lmtp", str(socket_path))
        (self.folder / "main.cf").write_text(POSTFIX_MAIN.format(folder=self.folder) + config)
        (self.folder / "master.cf").write_text(POSTFIX_MASTER.format(port=self.port))
        self.process = None

    def __enter__(self):
        self.process = subprocess.Popen(["postfix", "-c", self.folder, "start-fg"], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def greets():
            assert self.process.poll() is None, self.log()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                return probe.recv(100).startswith(b"220")
            return False

        until("greeting of postfix", greets)
        return self

    def __exit__(self, *_):
        pid_file = self.folder / "queue/pid/master.pid"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        try:
            self.process.wait(support.STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def log(self):
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def queue(self):
        """Messages that postfix still has."""
        places = [self.folder / "queue" / name for name in ("incoming", "active", "deferred", "maildrop")]
        return [path for place in places for path in place.rglob("*") if path.is_file()]


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)
        add_user(self.data, "ann")
        add_mbox_user(self.data, self.folder / "mail", "bob")
        add_maildir_user(self.data, self.folder / "mail", "cay")
        # Whom the directory of the socket belongs to may deliver.
        self.run = self.folder / "run"
        self.run.mkdir()
        os.chown(self.run, -1, grp.getgrnam("postfix").gr_gid)
        self.run.chmod(0o2750)
        self.lmtp, self.pop3 = support.free_port(), support.free_port()
        config = block("## LMTP").replace("/run/mailyard", str(self.run)).replace("127.0.0.1:2003", f"127.0.0.1:{self.lmtp}")
        config = config.replace("[listen]", f'[listen]\npop3 = ["127.0.0.1:{self.pop3}"]')
        self.config = self.folder / "mailyard.toml"
        # --listen replaces the lists of the configuration; the socket stays.
        self.config.write_text(config)
        self.server = Server(self.data, "--config", self.config, "--listen", f"lmtp=127.0.0.1:{self.lmtp}",
                             "--listen", f"pop3=127.0.0.1:{self.pop3}")
        self.addCleanup(self.server.kill)

    def stored(self, user):
        imap = self.server.connect(user)
        bodies = [values["BODY[]"] for values in all_messages(imap, "INBOX", "(BODY.PEEK[])")]
        imap.logout()
        return bodies

    def check(self, user, messages):
        """Every message is there once, byte for byte below the fields that were put on top."""
        found = self.stored(user)
        self.assertEqual(len(found), len(messages), user)
        left = [crlf(raw) for _, raw in messages]
        for body in found:
            self.assertTrue(body.startswith(b"Return-Path: <list@example.com>\r\nDelivered-To: "), body[:200])
            match = next((raw for raw in left if body.endswith(b"\r\n" + raw)), None)
            self.assertIsNotNone(match, body[:500])
            top = body[:len(body) - len(match)]
            self.assertTrue(all(re.match(rb"(?:Return-Path|Delivered-To|Received):|\t| ", line) for line in top.splitlines()), top)
            left.remove(match)
        self.assertEqual(left, [])

    def test_postfix(self):
        messages = list(fit_for_smtp())[:MESSAGES]
        with self.server, Postfix(self.folder, self.run / "lmtp") as postfix:
            smtp = smtplib.SMTP("127.0.0.1", postfix.port, timeout=support.IMAP_SECONDS)
            for number, (_, raw) in enumerate(messages):
                to = ["ann@example.org", "cay@example.org"] + ["bob@example.org"] * (number % 3 > 0)
                self.assertEqual(smtp.sendmail("list@example.com", to, crlf(raw), ["BODY=8BITMIME"]), {})
            smtp.quit()
            until("empty queue of postfix", lambda: not postfix.queue(), 60)
            self.assertNotIn("status=bounced", postfix.log())
            self.check("ann", messages)
            self.check("bob", [message for number, message in enumerate(messages) if number % 3])
            self.check("cay", messages)
            self.fetch_with_fetchmail("ann", messages)
            self.fetch_with_mpop("cay", messages)
            self.fetch_with_mpop("bob", [message for number, message in enumerate(messages) if number % 3])
            for user in ACCOUNTS:
                self.assertEqual(self.stored(user), [])

    def test_postfix_waits_for_room(self):
        """Mail for a full account waits at postfix, and comes when there is room."""
        tool(self.data, "user", "quota", "ann", "--messages", "1")
        messages = list(fit_for_smtp())[:2]
        with self.server, Postfix(self.folder, self.run / "lmtp") as postfix:
            smtp = smtplib.SMTP("127.0.0.1", postfix.port, timeout=support.IMAP_SECONDS)
            for _, raw in messages:
                smtp.sendmail("list@example.com", ["ann@example.org"], crlf(raw), ["BODY=8BITMIME"])
            smtp.quit()
            until("deferred message", lambda: "452 4.2.2" in postfix.log(), 60)
            self.assertEqual(len(self.stored("ann")), 1)
            tool(self.data, "user", "quota", "ann", "--messages", "default")
            until("empty queue of postfix", lambda: not postfix.queue(), 60)
            self.check("ann", messages)

    def test_swaks(self):
        """Many recipients, of whom one is over quota and one unknown: each has an answer of its own."""
        others = [f"user{number}" for number in range(20)]
        for user in others:
            add_user(self.data, user)
        tool(self.data, "user", "quota", "user7", "--messages", "0")
        to = [f"{user}@example.org" for user in [*others, "nobody", *ACCOUNTS]]
        with self.server:
            ran = subprocess.run(
                ["swaks", "--protocol", "LMTP", "--server", f"127.0.0.1:{self.lmtp}", "--from", "list@example.com",
                 "--to", ",".join(to), "--header", "Subject: to many", "--body", "text", "--timeout", "60"],
                capture_output=True, timeout=support.TOOL_SECONDS, text=True)
            said = ran.stdout + ran.stderr
            self.assertEqual(said.count("<** 550 5.1.1 <nobody@example.org>"), 1, said)
            self.assertEqual(said.count("452 4.2.2 <user7@example.org>"), 1, said)
            self.assertEqual(said.count("> Delivered"), len(others) - 1 + len(ACCOUNTS), said)
            for user in [*others, *ACCOUNTS]:
                self.assertEqual(len(self.stored(user)), 0 if user == "user7" else 1, user)

    def fetched(self, maildir, messages):
        found = sorted(crlf(path.read_bytes()) for name in ("new", "cur") for path in (maildir / name).iterdir())
        self.assertEqual(len(found), len(messages))
        left = [crlf(raw) for _, raw in messages]
        for body in found:
            match = next((raw for raw in left if body.endswith(b"\r\n" + raw)), None)
            self.assertIsNotNone(match, body[:500])
            self.assertIn(b"Delivered-To: ", body[:len(body) - len(match)])
            left.remove(match)

    def maildir(self, name):
        place = self.folder / name
        for part in ("cur", "new", "tmp"):
            (place / part).mkdir(parents=True)
        return place

    def fetch_with_fetchmail(self, user, messages):
        place = self.maildir("fetchmail-maildir")
        home = self.folder / "fetchmail"
        home.mkdir()
        rc = home / "rc"
        # Each message to a command of its own, with no field added or changed.
        rc.write_text(
            f"set invisible\nset no bouncemail\npoll 127.0.0.1 protocol pop3 port {self.pop3} auth password no envelope\n"
            f"  user \"{user}\" password \"{support.PASSWORD}\" sslproto \"\" fetchall nokeep norewrite nodropstatus\n"
            f"  mda \"/bin/sh -c 'cat > $(mktemp {place}/new/XXXXXXXXXX)'\"\n")
        rc.chmod(0o600)
        self.program("fetchmail", "--fetchmailrc", rc, "--pidfile", home / "pid", "--idfile", home / "ids", "--nosyslog",
                     "--silent", env={**os.environ, "FETCHMAILHOME": str(home)})
        self.fetched(place, messages)

    def fetch_with_mpop(self, user, messages):
        place = self.maildir(f"mpop-maildir-{user}")
        config = self.folder / f"mpoprc-{user}"
        config.write_text(
            f"account a\nhost 127.0.0.1\nport {self.pop3}\nuser {user}\npassword \"{support.PASSWORD}\"\ntls off\nauth user\n"
            f"delivery maildir {place}\nuidls_file {self.folder}/uidls-{user}\nkeep off\nreceived_header off\npipelining on\n")
        config.chmod(0o600)
        self.program("mpop", f"--file={config}", "--quiet", "a")
        self.fetched(place, messages)

    def program(self, *command, env=None):
        ran = subprocess.run(command, capture_output=True, timeout=support.TOOL_SECONDS, text=True, env=env)
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}\n{ran.stderr}")


if __name__ == "__main__":
    unittest.main()
