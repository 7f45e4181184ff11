"""Accounts that move from one format into another while a client is connected, and while SIGKILL comes at any moment.

By hand, as much as one likes: `CONVERT_KILLS=100 CONVERT_MESSAGES=100000`, and so many generated messages more with `CONVERT_GENERATED=50000`.
"""

import hashlib
import itertools
import json
import os
import random
import subprocess
import time
import unittest

import support
from mariadb import Database
from support import Case, Server, add_user, all_messages, corpus, flags_of, tool, write_mbox

KILLS = int(os.environ.get("CONVERT_KILLS", "6"))
# Of the corpus, for the test with the kills.
MESSAGES = int(os.environ.get("CONVERT_MESSAGES", "600"))
# Made from the corpus, in a mailbox of their own.
GENERATED = int(os.environ.get("CONVERT_GENERATED", "0"))
SECONDS = support.TOOL_SECONDS + GENERATED // 20
SEED = int(os.environ.get("CONVERT_SEED", "7"))
FLAGS = ["\\Seen", "\\Answered", "\\Flagged", "\\Deleted", "\\Draft"]
KEYWORDS = ["$Forwarded", "$MDNSent", "work", "later", "NonJunk"]
ITEMS = "(UID FLAGS INTERNALDATE SAVEDATE MODSEQ EMAILID RFC822.SIZE BODY.PEEK[HEADER] BODY.PEEK[])"


def filled(data, folder, count=None):
    """An account with the corpus in a mailbox for each of its directories; gives their names."""
    add_user(data)
    mailboxes = {}
    messages = corpus()
    for name, raw in random.Random(SEED).sample(messages, min(count or len(messages), len(messages))):
        mailboxes.setdefault(name.split("/")[0], []).append((name, raw))
    if GENERATED:
        numbered = zip(range(GENERATED), itertools.cycle(messages))
        mailboxes["generated"] = ((name, b"X-Number: %d\n" % number + raw) for number, (name, raw) in numbered)
    for name, messages in mailboxes.items():
        write_mbox(folder / f"{name}.mbox", messages)
        tool(data, "import", "--user", support.USER, "--mailbox", name, folder / f"{name}.mbox", timeout=SECONDS)
    return sorted(mailboxes)


def colour(server, mailboxes):
    """Flags, keywords, copies, gaps in the UIDs, and messages that few formats can hold."""
    chance = random.Random(SEED)
    imap = server.connect()
    for name in mailboxes:
        count = int(imap.select(f'"{name}"')[1][0])
        for words in [[flag] for flag in FLAGS] + [[keyword] for keyword in KEYWORDS] + [["\\Seen", "work"]]:
            some = sorted(chance.sample(range(1, count + 1), max(count // 7, 1)))
            imap.store(",".join(map(str, some)), "+FLAGS.SILENT", f"({' '.join(words)})")
        some = ",".join(map(str, sorted(chance.sample(range(1, count + 1), max(count // 20, 1)))))
        imap.copy(some, "INBOX")
        imap.expunge()
    for raw in [b"Subject: bare\n\nline\nends\n", b"Subject: no end\r\n\r\nof the last line", b"no header", b"\r\n",
                b"Subject: fields\r\nStatus: RO\r\nX-UID: 9\r\nX-Status: F\r\n\r\nof an mbox\r\n",
                b"Subject: quoted\r\n\r\nFrom here\r\n>From there\r\n", b"Subject: cr\r\n\r\na\rb\r\r\nc\r\n"]:
        # imaplib would make its own line ends.
        imap.send(b"%s APPEND INBOX (work) {%d}\r\n" % (imap._new_tag(), len(raw)))
        imap.readline()
        imap.send(raw + b"\r\n")
        while b"APPENDUID" not in imap.readline():
            pass
        imap.tagged_commands.popitem()
    imap.logout()


def seen(server, mailboxes):
    """Everything that a client sees of the account."""
    imap = server.connect()
    imap.enable("CONDSTORE")
    account = {}
    for name in [*mailboxes, "INBOX"]:
        _, status = imap.status(f'"{name}"', "(UIDVALIDITY UIDNEXT HIGHESTMODSEQ MAILBOXID)")
        entries = []
        for values in all_messages(imap, name, ITEMS):
            digest = hashlib.sha256(values["BODY[]"] + b"\0" + values["BODY[HEADER]"]).hexdigest()
            kept = [values[item] for item in ("UID", "INTERNALDATE", "SAVEDATE", "MODSEQ", "EMAILID", "RFC822.SIZE")]
            entries.append((*map(str, kept), flags_of(values), digest))
        account[name] = (status, entries)
    imap.logout()
    return account


class Conversions(Case):
    """What the tests of several formats have in common."""

    # For each command.
    options = ()

    def places(self):
        """Arguments for each format."""
        return {
            "native": ["--to", "native"],
            "mbox": ["--to", "mbox", "--inbox", self.folder / "inbox", "--mail-root", self.folder / "mbox"],
            "maildir": ["--to", "maildir", "--mail-root", self.folder / "Maildir"],
            "sql": ["--to", "sql"],
        }

    def convert(self, *arguments):
        began = time.monotonic()
        _, out, _ = tool(self.data, "convert", "--user", support.USER, *arguments, *self.options, "--json", timeout=SECONDS)
        if GENERATED:
            print(*arguments[:2], f"{time.monotonic() - began:.1f} s", out.strip(), flush=True)
        return json.loads(out)

    def same(self, found, expected):
        for name, mailbox in expected.items():
            self.assertEqual(found[name][0], mailbox[0], name)
            self.assertEqual(len(found[name][1]), len(mailbox[1]), name)
            for a, b in zip(found[name][1], mailbox[1], strict=True):
                self.assertEqual(a, b, name)

    def killed_at_any_moment(self, forms):
        """Conversions into these formats again and again; the last one is the store's own."""
        mailboxes = filled(self.data, self.folder, MESSAGES)
        with Server(self.data, *self.options) as server:
            colour(server, mailboxes)
            before = seen(server, mailboxes)
        chance = random.Random(SEED)
        seconds, kills, digests = 0.0, 0, set()
        turn = 0
        while kills < KILLS:
            form = forms[turn % len(forms)]
            turn += 1
            for arguments in (self.places()[form], ["--finish"]):
                command = [support.PROGRAM, "convert", "--data", self.data, "--user", support.USER, "--json",
                           *map(os.fspath, [*arguments, *self.options])]
                while True:
                    began = time.monotonic()
                    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    # The first time it runs to its end, which says how long that takes.
                    if seconds and chance.random() < 0.8 and kills < KILLS:
                        try:
                            running.wait(chance.uniform(0, seconds))
                        except subprocess.TimeoutExpired:
                            running.kill()
                            running.communicate()
                            kills += 1
                            continue
                    out, err = running.communicate(timeout=SECONDS)
                    seconds = max(seconds, time.monotonic() - began)
                    # What was done before the last kill is refused now.
                    if running.returncode == 0:
                        result = json.loads(out)
                        if "compared_sha256" in result:
                            digests.add(result["compared_sha256"])
                    else:
                        self.assertIn(b"already" if arguments[0] == "--to" else b"no conversion to finish", err)
                    break
            if turn % 4 == 1 or kills >= KILLS:
                with Server(self.data, *self.options) as server:
                    self.same(seen(server, mailboxes), before)
        self.assertEqual(len(digests), 1)
        self.assertEqual(tool(self.data, "check", *self.options)[0], 0)
        print(f"{kills} kills, {turn} conversions")


class Convert(Conversions):

    def test_round_trip(self):
        mailboxes = filled(self.data, self.folder)
        with Server(self.data) as server:
            colour(server, mailboxes)
            before = seen(server, mailboxes)
            watching = server.connect()
            watching.select("INBOX")
            watching.noop()
            watching.untagged_responses.clear()
            digests = set()
            for form in ["mbox", "maildir", "native"]:
                result = self.convert(*self.places()[form])
                self.assertEqual(result["state"], "the old store is kept")
                self.assertEqual(result["compared_entries"], sum(len(mailbox[1]) for mailbox in before.values()))
                self.assertIn("held_milliseconds", result)
                digests.add(result["compared_sha256"])
                self.same(seen(server, mailboxes), before)
                result = self.convert("--finish")
                self.assertEqual((result["state"], result["left"]), ("done", []))
                self.same(seen(server, mailboxes), before)
                self.ok(watching.noop())
                for kind in ("EXISTS", "EXPUNGE", "FETCH", "FLAGS"):
                    self.assertNotIn(kind, watching.untagged_responses, "a client is told of nothing")
            self.assertEqual(len(digests), 1, "the same account in every format")
            watching.logout()
        self.assertFalse((self.folder / "Maildir").exists())
        self.assertTrue((self.folder / "inbox").exists(), "what was left on the way stays where it is")
        self.assertEqual(tool(self.data, "check")[0], 0)
        with Server(self.data) as server:
            self.same(seen(server, mailboxes), before)

    def test_mail_comes_meanwhile(self):
        mailboxes = filled(self.data, self.folder, MESSAGES)
        with Server(self.data) as server:
            imap = server.connect()
            for form in ["mbox", "native", "maildir", "native"]:
                running = subprocess.Popen(
                    [support.PROGRAM, "convert", "--data", self.data, "--user", support.USER, "--json",
                     *map(os.fspath, self.places()[form])], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                sent = 0
                while running.poll() is None:
                    self.ok(imap.append("INBOX", None, None, f"Subject: {form} {sent}\r\n\r\nnew\r\n".encode()))
                    self.ok(imap.select(f'"{mailboxes[sent % len(mailboxes)]}"'))
                    self.ok(imap.store("1", "+FLAGS" if sent % 2 else "-FLAGS", "(\\Flagged)"))
                    sent += 1
                out, err = running.communicate(timeout=SECONDS)
                self.assertEqual(running.returncode, 0, err)
                self.assertEqual(json.loads(out)["state"], "the old store is kept")
                self.convert("--finish")
                found = seen(server, mailboxes)
                subjects = [entry for entry in found["INBOX"][1]]
                self.assertGreaterEqual(len(subjects), sent)
            before = found
            imap.logout()
        with Server(self.data) as server:
            self.same(seen(server, mailboxes), before)
        self.assertEqual(tool(self.data, "check")[0], 0)

    def test_killed_at_any_moment(self):
        self.killed_at_any_moment(["mbox", "native", "maildir", "native"])


class ConvertSql(Conversions):
    """Into a database and out of it."""

    def setUp(self):
        super().setUp()
        self.database = self.enterContext(Database(self.folder / "mariadb"))
        config = self.folder / "mailyard.toml"
        config.write_text(f'[sql]\nurls = ["{self.database.create("mail")}"]\n')
        self.options = ("--config", config)
        tool(self.data, "sql", "update", *self.options)

    def test_round_trip(self):
        mailboxes = filled(self.data, self.folder, MESSAGES)
        with Server(self.data, *self.options) as server:
            colour(server, mailboxes)
            before = seen(server, mailboxes)
            watching = server.connect()
            watching.select("INBOX")
            watching.noop()
            watching.untagged_responses.clear()
            digests = set()
            for form, end in [("sql", "--finish"), ("maildir", "--finish"), ("sql", "--rollback"), ("sql", "--finish"),
                              ("native", "--rollback"), ("native", "--finish")]:
                result = self.convert(*self.places()[form])
                self.assertEqual(result["state"], "the old store is kept")
                self.assertEqual(result["compared_entries"], sum(len(mailbox[1]) for mailbox in before.values()))
                digests.add(result["compared_sha256"])
                self.same(seen(server, mailboxes), before)
                result = self.convert(end)
                self.assertEqual((result["state"], result["left"]), ("done", []))
                self.same(seen(server, mailboxes), before)
                self.ok(watching.noop())
                for kind in ("EXISTS", "EXPUNGE", "FETCH", "FLAGS"):
                    self.assertNotIn(kind, watching.untagged_responses, "a client is told of nothing")
            self.assertEqual(len(digests), 1, "the same account in every format")
            watching.logout()
        self.assertEqual(tool(self.data, "check", *self.options)[0], 0)
        self.assertEqual(self.database.query("SELECT COUNT(*) FROM account", "mail").strip(), "0")

    def test_killed_at_any_moment(self):
        self.killed_at_any_moment(["sql", "native", "mbox", "sql", "native"])


if __name__ == "__main__":
    unittest.main()
