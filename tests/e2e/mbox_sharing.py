"""What the tests of shared mbox files have in common: letters that say who they are, ways of other programs to the file, looks into it."""

import contextlib
import fcntl
import os
import re
import subprocess
import time

from support import Case, Server, add_mbox_user, fetch, until

PROGRAM_SECONDS = 120


def letter(name, lines=3, flags=""):
    """A message that says in its subject and in its text who it is; with LF line ends."""
    text = "".join(f"line {number} of {name}\n" for number in range(lines))
    return (f"From: Writer <writer@example.org>\nTo: alice@example.org\nSubject: {name}\n"
            f"Date: Mon, 5 Jan 2004 10:00:00 +0000\nMessage-ID: <{name}@example.org>\n{flags}\n{text}").encode()


def in_mbox(raw, seconds=1_073_296_800):
    """The same as it stands in an mbox file."""
    stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(seconds))
    return f"From writer@example.org {stamp}\n".encode() + raw + b"\n"


def file_messages(path):
    """The messages of an mbox file whose texts have no `From ` lines: header and body of each, without the `From ` line."""
    raw = path.read_bytes()
    if not raw:
        return []
    if not raw.startswith(b"From "):
        raise AssertionError(f"{path} does not begin with a From line: {raw[:60]!r}")
    pieces = re.split(rb"(?m)^From [^\n]*\n", raw)[1:]
    return [tuple((piece.split(b"\n\n", 1) + [b""])[:2]) for piece in pieces]


def field(header, name):
    """The value of a header field, without blanks around it; None when it is not there."""
    found = re.search(rb"(?mi)^" + name.encode() + rb":([^\n]*(?:\n[ \t][^\n]*)*)", header)
    return found and found[1].decode().strip()


def file_names(path):
    """The subjects of the messages in a file, in its order; a text that is not that of its subject is an error."""
    names = []
    for header, body in file_messages(path):
        name = field(header, "Subject")
        wanted = letter(name, lines=body.count(b"line ")).split(b"\n\n", 1)[1]
        if body.rstrip(b"\n") != wanted.rstrip(b"\n"):
            raise AssertionError(f"the text of {name} in {path} is {body!r:.200}")
        names.append(name)
    return names


def listed(imap):
    """{subject: (UID, flags)} of the selected mailbox; every message must have the text of its subject."""
    status, data = imap.search(None, "ALL")
    if status != "OK":
        raise AssertionError(data)
    if not data[0]:
        return {}
    found = {}
    for values in fetch(imap, "1:*", "(UID FLAGS BODY.PEEK[])").values():
        raw = values["BODY[]"].replace(b"\r\n", b"\n")
        name = field(raw, "Subject")
        flags = frozenset(flag.decode() for flag in values["FLAGS"] if flag.lower() != b"\\recent")
        if name in found:
            raise AssertionError(f"{name} is there twice: {found[name]} and {values['UID']}")
        if raw.rstrip(b"\n") != letter(name, lines=raw.count(b"\nline ")).rstrip(b"\n"):
            raise AssertionError(f"{name} is {raw!r:.300}")
        found[name] = (values["UID"], flags)
    return found


@contextlib.contextmanager
def locked(path, wait=30):
    """The file, locked as Debian policy §11.6 wants it: fcntl, then a dotlock; tried until both are ours."""
    lock = path.with_name(path.name + ".lock")
    limit = time.monotonic() + wait
    while True:
        file = open(path, "r+b")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except (BlockingIOError, PermissionError, FileExistsError):
            file.close()
            if time.monotonic() > limit:
                raise AssertionError(f"{path} stays locked") from None
            time.sleep(0.01)
    try:
        yield file
        file.flush()
    finally:
        os.unlink(lock)
        file.close()


def run(*command, stdin=b"", environment=None):
    """Runs a program that must succeed."""
    done = subprocess.run([os.fspath(word) for word in command], input=stdin, capture_output=True, timeout=PROGRAM_SECONDS,
                          env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}")
    return done.stdout


class WatchingCase(Case):
    """A test that waits for what a client sees."""

    def sees(self, imap, what, look):
        """NOOP until what is listed satisfies `look`; gives it."""
        last = {}

        def looking():
            nonlocal last
            self.ok(imap.noop())
            last = listed(imap)
            return look(last)

        try:
            until(what, looking)
        except AssertionError as error:
            raise AssertionError(f"{error}; there is {last}") from None
        return last

    def same_uids(self, before, after):
        """Whoever is in both has the same UID."""
        for name in before.keys() & after.keys():
            self.assertEqual(before[name][0], after[name][0], name)


class SharedCase(WatchingCase):
    """A test with a user whose INBOX is an mbox file, and a server."""

    def setUp(self):
        super().setUp()
        self.inbox, self.root = add_mbox_user(self.data, self.folder / "mail")
        self.config = self.folder / "mailyard.toml"
        self.config.write_text("[mbox]\nidle_seconds = 1\n")
        self.server = Server(self.data, "--config", self.config)
        self.addCleanup(self.server.kill)

    def put(self, *raw):
        """Writes a new INBOX while nobody looks."""
        self.inbox.write_bytes(b"".join(in_mbox(one) for one in raw))

    def client(self, mailbox="INBOX"):
        imap = self.server.connect()
        self.ok(imap.select(mailbox))
        return imap
