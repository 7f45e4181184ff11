"""What the end-to-end tests share: a server of one's own, mail to put on it, and ways to look at what it answers.

Every test has a temporary folder, a server on a free loopback port, and ends that server by its process id. Everything that waits has
a limit. MAILYARD names the program under test (target/release/mailyard when it is not set).
"""

import contextlib
import imaplib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("MAILYARD", ROOT / "target/release/mailyard")).resolve()
MAIL = ROOT / "mail"

USER = "alice"
PASSWORD = "secret of alice"

# When nothing comes any more. A machine that does other things as well may stand still for a while, and that is no failure.
START_SECONDS = 120
STOP_SECONDS = 120
TOOL_SECONDS = 300
IMAP_SECONDS = 120
WAIT_SECONDS = 120

# imaplib refuses lines longer than a megabyte; an ENVELOPE may be one.
imaplib._MAXLINE = 64 * 1024 * 1024


def free_port():
    """A port below the range that the near ends of connections come from: no connection of a test can take it."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(20_000, max(first, 20_001))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def tool(data, *arguments, stdin=b"", check=True, timeout=TOOL_SECONDS):
    """Runs `mailyard SUBCOMMAND --data DIR ...`; gives (exit code, standard output, standard error)."""
    subcommand, *rest = [os.fspath(argument) for argument in arguments]
    command = [os.fspath(PROGRAM), subcommand]
    if data is not None:
        command += ["--data", os.fspath(data)]
    done = subprocess.run(command + rest, input=stdin, capture_output=True, timeout=timeout)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(command + rest)}: exit code {done.returncode}\n{out}\n{err}")
    return done.returncode, out, err


def add_user(data, user=USER, password=PASSWORD):
    tool(data, "user", "add", user, "--password-stdin", stdin=password.encode() + b"\n")


def add_mbox_user(data, folder, user=USER, password=PASSWORD):
    """A user whose mail is in mbox files below `folder`; gives the file of INBOX and the directory of the others."""
    place = pathlib.Path(folder) / user
    place.mkdir(parents=True, exist_ok=True)
    inbox, root = place / "inbox", place / "mail"
    tool(data, "user", "add", user, "--password-stdin", "--format", "mbox", "--inbox", inbox, "--mail-root", root,
         stdin=password.encode() + b"\n")
    return inbox, root


def add_maildir_user(data, folder, user=USER, password=PASSWORD, layout="maildir++"):
    """A user whose mail is in Maildirs below `folder`; gives the one of INBOX."""
    root = pathlib.Path(folder) / user / "Maildir"
    root.parent.mkdir(parents=True, exist_ok=True)
    tool(data, "user", "add", user, "--password-stdin", "--format", "maildir", "--mail-root", root, "--layout", layout,
         stdin=password.encode() + b"\n")
    return root


class Server:
    """A `mailyard serve` process."""

    def __init__(self, data, *extra, port=None, owner=None):
        """`owner`: the numbers of the user and group that it runs as; it has to be able to run `program`."""
        self.data = pathlib.Path(data)
        self.program = PROGRAM
        self.owner = {} if owner is None else {"user": owner[0], "group": owner[1], "extra_groups": []}
        self.port = port or free_port()
        self.extra = [os.fspath(argument) for argument in extra]
        self.log = self.data.parent / f"{self.data.name}.log"
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "serve", "--data", self.data, "--listen", f"imap=127.0.0.1:{self.port}", *self.extra],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.owner)
        limit = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as probe:
                if probe.recv(1024).startswith(b"* OK"):
                    return self
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.last_log()}")
            if time.monotonic() > limit:
                self.kill()
                raise AssertionError(f"the server did not answer:\n{self.last_log()}")
            time.sleep(0.002)

    def stop(self):
        """Asks the server to end; its exit code must be 0."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the server did not end:\n{self.last_log()}") from None
        self.process = None
        if code != 0:
            raise AssertionError(f"the server ended with {code}:\n{self.last_log()}")

    def kill(self):
        """Ends the server at once, as a crash would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def last_log(self):
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-30:])

    def connect(self, user=USER, password=PASSWORD):
        """A connection that has logged in."""
        imap = imaplib.IMAP4("127.0.0.1", self.port, timeout=IMAP_SECONDS)
        try:
            imap.login(user, password)
        except BaseException:
            imap.shutdown()
            raise
        return imap

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *rest):
        # A test that failed already is not to be hidden by a server that will not end.
        if kind is None:
            self.stop()
        else:
            self.kill()


def remove(folder):
    """Removes a folder; processes of a server that was ended may still be writing there."""
    def is_gone():
        shutil.rmtree(folder, ignore_errors=True)
        return not folder.exists()

    until(f"end of {folder}", is_gone)


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    maxDiff = 4000

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mailyard-e2e-"))
        self.addCleanup(remove, self.folder)
        self.data = self.folder / "data"
        self.data.mkdir()

    def ok(self, answer):
        """Checks an imaplib answer for OK; gives its data."""
        status, data = answer
        self.assertEqual(status, "OK", data)
        return data


def corpus():
    """(name, bytes) of every message of the SpamAssassin corpus, without mbox lines, in the order of the names."""
    files = sorted(MAIL.glob("*/*.txt"))
    if not files:
        raise AssertionError("no mail in mail/; run `cargo xtask fetch-mail`")
    messages = []
    for path in files:
        raw = path.read_bytes()
        if raw.startswith(b"From "):
            raw = raw.split(b"\n", 1)[1]
        messages.append((f"{path.parent.name}/{path.stem}", raw))
    return messages


def crlf(raw):
    """The bytes as IMAP carries them: every line end CRLF; a CR that ends no line stays."""
    return re.sub(rb"\r?\n", b"\r\n", raw)


def write_maildir(folder, messages, flags=()):
    """A Maildir of (name, bytes); `flags` are the letters of each, as far as given."""
    for part in ("cur", "new", "tmp"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number, (_, raw) in enumerate(messages):
        letters = flags[number] if number < len(flags) else ""
        path = folder / "cur" / f"{1_000_000_000 + number}.M{number}.host:2,{letters}"
        path.write_bytes(raw)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def write_mbox(path, messages):
    """An mboxrd file: `From ` lines quoted with `>`, one more where there are some."""
    with open(path, "wb") as out:
        for number, (_, raw) in enumerate(messages):
            stamp = time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(1_000_000_000 + number))
            out.write(f"From sender@example.org {stamp}\n".encode())
            out.write(re.sub(rb"(?m)^(>*From )", rb">\1", raw))
            out.write(b"\n" if raw.endswith(b"\n") else b"\n\n")


class NotNow(AssertionError):
    """What another program is doing to the mailbox kept the server from answering: the next NOOP tells what it did."""


def fetch(imap, numbers, items, uid=False):
    """FETCH, parsed: {number: {item name: value}}. Values are bytes, lists, None (NIL) or ints."""
    status, data = imap.uid("FETCH", numbers, items) if uid else imap.fetch(numbers, items)
    if status == "NO" and data[-1].startswith((b"[EXPUNGEISSUED]", b"[INUSE]")):
        raise NotNow(f"FETCH {numbers} {items}: {data}")
    if status != "OK":
        raise AssertionError(f"FETCH {numbers} {items}: {status} {data}")
    found = {}
    for number, values in parse_fetch(data):
        # What others change meanwhile comes as further answers, with the flags only.
        found.setdefault(number, {}).update(values)
    return found


def parse_fetch(data):
    """The untagged FETCH answers that imaplib gives: bytes, or (bytes up to a literal, the literal) pairs."""
    pieces = []
    for part in data:
        if part is None:
            continue
        if isinstance(part, tuple):
            pieces.append((part[0], part[1]))
            continue
        pieces.append((part, None))
        tokens = Tokens(pieces)
        pieces = []
        number = tokens.number()
        values = tokens.value()
        yield number, {_key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}
    if pieces:
        raise AssertionError(f"an answer that does not end: {pieces!r:.200}")


def _key(key):
    return key.decode().upper()


class Tokens:
    """RFC 9051 §9 values: atoms, numbers, quoted strings, literals, lists. Anything else is an error, since it would be the server's."""

    SPACE = re.compile(rb" ")
    QUOTED = re.compile(rb'"((?:[^"\\\r\n]|\\["\\])*)"')
    # msg-att names such as BODY[HEADER.FIELDS (FROM TO)]<0> are one token.
    ATOM = re.compile(rb"[A-Za-z0-9.$!#&'*+,/:;<=>?@^_`|~\\-]+(?:\[[^\]]*\](?:<\d+>)?)?")
    LITERAL = re.compile(rb"~?\{(\d+)\}$")

    def __init__(self, pieces):
        self.pieces = list(pieces)
        self.at = 0

    @property
    def text(self):
        return self.pieces[0][0]

    def take(self, pattern):
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def fail(self, wanted):
        raise AssertionError(f"{wanted} expected at {self.text[self.at:self.at + 80]!r} in {self.text[:200]!r}")

    def number(self):
        match = self.take(re.compile(rb"(\d+) "))
        return int(match[1]) if match else self.fail("a number")

    def value(self):
        if self.text[self.at:self.at + 1] == b"(":
            return self.list()
        if match := self.take(self.QUOTED):
            return re.sub(rb"\\(.)", rb"\1", match[1])
        if match := self.take(self.LITERAL):
            literal = self.pieces[0][1]
            if len(literal) != int(match[1]):
                self.fail("a whole literal")
            self.pieces.pop(0)
            self.at = 0
            return literal
        if match := self.take(self.ATOM):
            if match[0].isdigit():
                return int(match[0])
            return None if match[0].upper() == b"NIL" else match[0]
        return self.fail("a value")

    def list(self):
        self.at += 1
        values = []
        while self.text[self.at:self.at + 1] != b")":
            # Lists of lists (addresses, body parts) stand side by side without a space.
            if values and not (isinstance(values[-1], list) and self.text[self.at:self.at + 1] == b"("):
                if not self.take(self.SPACE):
                    self.fail("a space")
            values.append(self.value())
        self.at += 1
        return values


def flags_of(values):
    """The flags of a FETCH answer, without \\Recent, which no test sets."""
    return frozenset(flag.decode() for flag in values["FLAGS"] if flag.lower() != b"\\recent")


def all_messages(imap, mailbox, items="(UID FLAGS INTERNALDATE BODY.PEEK[])"):
    """Everything of a mailbox, in the order of its messages."""
    status, data = imap.select(f'"{mailbox}"', readonly=True)
    if status != "OK":
        raise AssertionError(f"SELECT {mailbox}: {data}")
    if data == [b"0"]:
        return []
    found = fetch(imap, "1:*", items)
    if sorted(found) != list(range(1, int(data[0]) + 1)):
        raise AssertionError(f"{mailbox}: {len(found)} of {data} messages answered")
    return [found[number] for number in sorted(found)]


def until(what, look, seconds=WAIT_SECONDS, pause=0.05):
    """Looks again and again until `look` gives something true, which is given back."""
    limit = time.monotonic() + seconds
    while True:
        why = None
        try:
            found = look()
        except NotNow as error:
            found, why = None, error
        if found:
            return found
        if time.monotonic() > limit:
            raise AssertionError(f"after {seconds} seconds still no {what}{f' ({why})' if why else ''}")
        time.sleep(pause)
