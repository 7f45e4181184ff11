"""SIGKILL at any moment: everything acknowledged is there afterwards, and nothing is half there.

Several clients work, each in two mailboxes of its own, and know from the answers they have read what must be there. The command that
was under way when the server died may have happened or not, but wholly: a STORE of three messages changes all three or none.
"""

import collections
import imaplib
import os
import random
import re
import socket
import threading
import time
import unittest

import support
from support import Case, Server, add_user, all_messages, flags_of

KILLS = int(os.environ.get("KILLS", "200"))
CLIENTS = 3
SEED = int(os.environ.get("SEED", str(random.SystemRandom().randrange(1 << 32))))
FLAGS = ["\\Seen", "\\Flagged", "\\Answered", "\\Draft", "$Work", "important"]
# Larger mailboxes only make the comparison slower.
MESSAGES_MAX = 60

LOST = (imaplib.IMAP4.abort, ConnectionError, socket.timeout, OSError)


class Message:
    """What a client knows of a message. The UID is None while no answer has told it."""

    def __init__(self, uid, raw, flags=frozenset()):
        self.uid, self.raw, self.flags = uid, raw, frozenset(flags)

    def __repr__(self):
        return f"uid {self.uid} {sorted(self.flags)} {self.raw[:40]!r}"


class Client:
    """Two mailboxes, what must be in them, and a random walk through the commands that change them."""

    def __init__(self, number):
        self.random = random.Random(SEED * 1000 + number)
        self.names = [f"work-{number}-a", f"work-{number}-b"]
        self.known = {name: [] for name in self.names}
        # What the mailboxes look like if the command under way has happened.
        self.pending = None
        self.counts = collections.Counter()
        self.serial = 0
        self.number = number
        self.failure = None

    def work(self, server):
        """Runs commands until the server is gone."""
        try:
            imap = server.connect()
            while True:
                self.step(imap)
        except LOST:
            pass
        except Exception as error:  # The thread's error is the test's.
            self.failure = error

    def step(self, imap):
        mailbox, other = self.random.sample(self.names, 2)
        here = self.known[mailbox]
        actions = [self.append, self.append, self.multiappend, self.store, self.store, self.expunge, self.copy, self.move]
        action = self.random.choice(actions)
        if len(here) < 4:
            action = self.append
        if len(here) > MESSAGES_MAX:
            action = self.expunge
        action(imap, mailbox, other)
        self.counts[action.__name__] += 1

    def begin(self, **after):
        """The command is about to be sent: this is what may be there from now on."""
        self.pending = {**self.known, **after}

    def done(self):
        """The answer was OK: this is what must be there from now on."""
        self.known, self.pending = self.pending, None

    def body(self):
        self.serial += 1
        lines = self.random.choice([1, 1, 10, 200, 3000])
        text = f"Subject: {self.number}-{self.serial}\r\n\r\n" + f"line of message {self.serial}\r\n" * lines
        return text.encode()

    def append(self, imap, mailbox, other):
        flags = self.random.sample(FLAGS, self.random.randrange(3))
        message = Message(None, self.body(), flags)
        self.begin(**{mailbox: self.known[mailbox] + [message]})
        check(imap.append(mailbox, f"({' '.join(flags)})", None, message.raw))
        self.give_uids(imap, "APPENDUID", [message])
        self.done()

    def multiappend(self, imap, mailbox, other):
        added = [Message(None, self.body(), ["\\Seen"]) for _ in range(3)]
        self.begin(**{mailbox: self.known[mailbox] + added})
        # imaplib knows no MULTIAPPEND (RFC 3502); with LITERAL+ (RFC 7888) it is one write.
        tag = imap._new_tag()
        pieces = [tag + b" APPEND " + mailbox.encode()]
        for message in added:
            pieces.append(b" (\\Seen) {%d+}\r\n" % len(message.raw) + message.raw)
        imap.send(b"".join(pieces) + b"\r\n")
        uids = None
        while True:
            line = imap.readline()
            if not line:
                raise imaplib.IMAP4.abort("closed")
            if line.startswith(tag):
                if b" OK " not in line:
                    raise AssertionError(f"APPEND of three: {line}")
                uids = re.search(rb"APPENDUID \d+ ([\d:,]+)", line)
                break
        for message, uid in zip(added, numbers(uids[1].decode())):
            message.uid = uid
        self.done()

    def give_uids(self, imap, code, messages):
        answer = imap.response(code)[1][-1]
        for message, uid in zip(messages, numbers(answer.decode().split()[-1]), strict=True):
            message.uid = uid

    def choose(self, imap, mailbox):
        check(imap.select(mailbox))
        here = self.known[mailbox]
        return self.random.sample(here, self.random.randint(1, min(5, len(here))))

    def store(self, imap, mailbox, other):
        chosen = self.choose(imap, mailbox)
        flags = frozenset(self.random.sample(FLAGS, self.random.randint(1, 2)))
        sign = self.random.choice(["+", "-", ""])

        def changed(message):
            if message not in chosen:
                return message
            new = {"+": message.flags | flags, "-": message.flags - flags, "": flags}[sign]
            return Message(message.uid, message.raw, new)

        self.begin(**{mailbox: [changed(message) for message in self.known[mailbox]]})
        check(imap.uid("STORE", uid_set(chosen), f"{sign}FLAGS", f"({' '.join(sorted(flags))})"))
        self.done()

    def expunge(self, imap, mailbox, other):
        chosen = self.choose(imap, mailbox)
        marked = [Message(m.uid, m.raw, m.flags | {"\\Deleted"}) if m in chosen else m for m in self.known[mailbox]]
        self.begin(**{mailbox: marked})
        check(imap.uid("STORE", uid_set(chosen), "+FLAGS.SILENT", "(\\Deleted)"))
        self.done()
        self.begin(**{mailbox: [m for m in self.known[mailbox] if "\\Deleted" not in m.flags]})
        check(imap.expunge())
        self.done()

    def copy(self, imap, mailbox, other):
        chosen = sorted(self.choose(imap, mailbox), key=lambda message: message.uid)
        copies = [Message(None, m.raw, m.flags) for m in chosen]
        self.begin(**{other: self.known[other] + copies})
        check(imap.uid("COPY", uid_set(chosen), other))
        self.give_uids(imap, "COPYUID", copies)
        self.done()

    def move(self, imap, mailbox, other):
        chosen = sorted(self.choose(imap, mailbox), key=lambda message: message.uid)
        copies = [Message(None, m.raw, m.flags) for m in chosen]
        left = [m for m in self.known[mailbox] if m not in chosen]
        self.begin(**{mailbox: left, other: self.known[other] + copies})
        check(imap.uid("MOVE", uid_set(chosen), other))
        self.give_uids(imap, "COPYUID", copies)
        self.done()

    def verify(self, imap):
        """Compares the server with what must, or may, be there; what is there is what must be from now on."""
        found = {name: [(v["UID"], v["BODY[]"], flags_of(v)) for v in all_messages(imap, name)] for name in self.names}
        before = differences(self.known, found)
        after = differences(self.pending, found) if self.pending else ["no command was under way"]
        if before and after:
            raise AssertionError(
                f"seed {SEED}, client {self.number}:\nagainst what was acknowledged: {before}\n"
                f"against that and the last command: {after}")
        happened = bool(before)
        self.known = {name: [Message(uid, raw, flags) for uid, raw, flags in rows] for name, rows in found.items()}
        self.pending = None
        return happened


def check(answer):
    if answer[0] != "OK":
        raise AssertionError(f"refused: {answer}")
    return answer[1]


def numbers(text):
    """The numbers of a UID set, in its order."""
    out = []
    for piece in text.split(","):
        first, _, last = piece.partition(":")
        out.extend(range(int(first), int(last or first) + 1))
    return out


def uid_set(messages):
    return ",".join(str(message.uid) for message in messages)


def differences(wanted, found):
    """What of `wanted` is not so in `found`; UIDs count where they are known."""
    out = []
    for name, messages in wanted.items():
        rows = found[name]
        if len(rows) != len(messages):
            out.append(f"{name}: {len(rows)} messages, not {len(messages)}")
            continue
        for message, (uid, raw, flags) in zip(messages, rows):
            if message.uid not in (None, uid) or message.raw != raw or message.flags != flags:
                out.append(f"{name}: uid {uid} {sorted(flags)} {raw[:40]!r} is not {message}")
    return out


class Kill(Case):
    kills = KILLS

    def add_user(self):
        """The account whose server dies."""
        add_user(self.data)

    def test_sigkill(self):
        self.add_user()
        server = Server(self.data)
        self.addCleanup(server.kill)
        clients = [Client(number) for number in range(CLIENTS)]
        server.start()
        imap = server.connect()
        for client in clients:
            for name in client.names:
                self.ok(imap.create(name))
        imap.logout()
        happened = 0
        moments = random.Random(SEED)
        for _ in range(self.kills):
            threads = [threading.Thread(target=client.work, args=(server,)) for client in clients]
            for thread in threads:
                thread.start()
            # Not a wait for something: the moment of death is the random input of this test.
            time.sleep(moments.uniform(0.02, 0.25))
            server.kill()
            for thread in threads:
                thread.join(support.IMAP_SECONDS)
                self.assertFalse(thread.is_alive(), "a client hangs on a dead server")
            for client in clients:
                if client.failure:
                    raise AssertionError(f"seed {SEED}: {client.failure!r}") from client.failure
            server.start()
            imap = server.connect()
            happened += sum(client.verify(imap) for client in clients)
            imap.logout()
        server.stop()
        support.tool(self.data, "check")
        total = sum((client.counts for client in clients), collections.Counter())
        print(f"seed {SEED}: {self.kills} kills, {sum(total.values())} acknowledged commands: {dict(total)}; "
              f"{happened} commands under way had happened")
        self.assertGreater(sum(total.values()), self.kills * 5, "too few commands to have tested anything")


if __name__ == "__main__":
    unittest.main()
