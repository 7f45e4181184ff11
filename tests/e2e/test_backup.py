"""mailyard backup, and restore --from: what was backed up while the server ran comes back, as it was."""

import contextlib
import json
import random
import shutil
import subprocess
import threading
import unittest
from collections import Counter

import support
from support import PROGRAM, Case, Server, add_user, all_messages, corpus, crlf, flags_of, tool, write_maildir

ITEMS = "(UID FLAGS INTERNALDATE BODY.PEEK[])"
LETTERS = ["", "S", "FS", "RS", "Sa", "F"]
COUNT = 400


def by_uid(found):
    """UID: (flags, date, bytes)."""
    return {values["UID"]: (flags_of(values), values["INTERNALDATE"], values["BODY[]"]) for values in found}


class Load:
    """Appends to INBOX over connections of its own until told to stop; knows what was acknowledged."""

    def __init__(self, server, connections=3):
        self.server, self.ended, self.acknowledged, self.errors = server, threading.Event(), [], []
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(connections)]

    def run(self, number):
        try:
            imap = self.server.connect()
            turn = 0
            while not self.ended.is_set():
                body = f"Subject: load {number} {turn}\r\n\r\n".encode() + b"x" * random.randrange(10_000)
                status, data = imap.append("INBOX", None, None, body)
                if status != "OK":
                    raise AssertionError(data)
                self.acknowledged.append(body)
                turn += 1
            imap.shutdown()
        except Exception as error:
            self.errors.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


class Backup(Case):
    def setUp(self):
        super().setUp()
        add_user(self.data)
        self.to = self.folder / "backup"
        maildir = self.folder / "Maildir"
        self.mail = corpus()[:COUNT]
        write_maildir(maildir, self.mail, [LETTERS[n % len(LETTERS)] for n in range(COUNT)])
        (maildir / "dovecot-keywords").write_text("0 $Work\n")
        tool(self.data, "import", "--user", support.USER, "--mailbox", "Work", maildir)

    def log_in(self, server, user=support.USER, password=support.PASSWORD):
        imap = server.connect(user, password)
        self.addCleanup(imap.shutdown)
        return imap

    def backup(self):
        """A snapshot; gives what is said about it."""
        _, out, _ = tool(self.data, "backup", "--user", support.USER, "--to", self.to, "--json")
        return json.loads(out)["snapshots"][0]

    def verify(self, check=True):
        code, out, _ = tool(None, "backup", "verify", self.to, "--json", check=check)
        return code, json.loads(out)

    def restore(self, *more):
        _, out, _ = tool(self.data, "restore", "--user", support.USER, "--from", self.to, "--json", *more)
        return json.loads(out)

    def seen(self, imap, mailbox="Work"):
        return by_uid(all_messages(imap, mailbox, ITEMS))

    def test_under_load(self):
        """Snapshots while clients write: everything acknowledged before is in it, and all else as it was."""
        with Server(self.data) as server:
            with Load(server) as load:
                first = self.backup()
                known = list(load.acknowledged)
                second = self.backup()
            before = self.seen(self.log_in(server))
        self.assertEqual(self.verify()[1]["damaged"], 0)
        listed = json.loads(tool(None, "backup", "list", self.to, "--json")[1])["snapshots"]
        self.assertEqual([one["snapshot"] for one in listed], [first["snapshot"], second["snapshot"]])

        add_user(self.data, "bob")
        tool(self.data, "user", "remove", "bob", "--delete-mail")
        self.assertTrue(self.restore("--as-user", "bob")["account_is_new"])
        add_user(self.data, "bob")
        with Server(self.data) as server:
            imap = self.log_in(server, "bob")
            self.assertEqual(self.seen(imap), before)
            bodies = {values["BODY[]"] for values in all_messages(imap, "INBOX", ITEMS)}
            self.assertLessEqual(set(known), bodies)
        tool(self.data, "check")

    def test_ways_back(self):
        """Into place, beside, into another account, and an account that is lost."""
        with Server(self.data) as server:
            imap = self.log_in(server)
            before = self.seen(imap)
            validity = imap.response("UIDVALIDITY")[1]
            self.backup()
            self.ok(imap.select("Work"))
            self.ok(imap.store("11:20", "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(imap.expunge())
            self.ok(imap.close())
            said = self.restore("--mailbox", "Work")
            self.assertEqual((said["restored"], said["already_there"]), (10, COUNT - 10))
            now = self.seen(imap)
            self.assertEqual(Counter(now.values()), Counter(before.values()))
            self.assertEqual(max(now), max(before) + 10)
            self.assertEqual(self.restore("--mailbox", "Work")["restored"], 0)

            self.ok(imap.delete("Work"))
            self.assertEqual(self.restore("--mailbox", "Work")["restored"], COUNT)
            self.assertEqual(self.seen(imap), before)
            self.assertEqual(imap.response("UIDVALIDITY")[1], validity)

            self.restore("--mailbox", "Work", "--into", "Rescued")
            self.assertEqual(list(self.seen(imap, "Rescued").values()), list(before.values()))

            # By search: what one message says of itself finds it, wherever it was.
            subject = all_messages(imap, "Rescued", "(BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])")[0]
            [identity] = [value for key, value in subject.items() if key.startswith("BODY")]
            wanted = identity.decode(errors="replace").partition(":")[2].strip()
            said = self.restore("--search", f'header:Message-ID="{wanted}"', "--into", "Found")
            self.assertGreaterEqual(said["restored"], 1)
            self.assertLess(said["restored"], COUNT)
        tool(self.data, "user", "remove", support.USER, "--delete-mail")
        self.assertEqual(self.restore("--at", "0s")["restored"], COUNT)
        add_user(self.data)
        with Server(self.data) as server:
            self.assertEqual(self.seen(self.log_in(server)), before)

    def test_killed(self):
        """A backup that is killed leaves what is there usable; the next one goes on."""
        whole = self.backup()
        kept = self.folder / "kept"
        self.to.rename(kept)
        for number in range(12):
            with contextlib.ExitStack() as stack:
                # Every third time the server does the work, and it is the server that dies.
                server = Server(self.data).start() if number % 3 == 2 else None
                stack.callback(server.kill if server else lambda: None)
                process = subprocess.Popen(
                    [PROGRAM, "backup", "--data", self.data, "--all", "--to", self.to],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(random.random() * 0.03)
                if server:
                    server.kill()
                process.kill()
                process.wait()
            if (self.to / "mailyard-backup").exists():
                self.assertEqual(self.verify()[1]["damaged"], 0)
        again = self.backup()
        self.assertEqual(again["bytes"], whole["bytes"])
        self.assertFalse([path for path in self.to.rglob(".new-*")])
        self.assertEqual(self.verify()[1]["damaged"], 0)
        _, out, _ = tool(None, "backup", "forget", self.to, "--keep", "1", "--json")
        listed = json.loads(tool(None, "backup", "list", self.to, "--json")[1])["snapshots"]
        self.assertEqual([one["snapshot"] for one in listed], [again["snapshot"]], out)

    def test_damage(self):
        """One octet is enough for verify to say so, with exit code 3."""
        self.backup()
        path = max((self.to / "accounts" / support.USER / "files").iterdir(), key=lambda path: path.stat().st_size)
        with open(path, "r+b") as file:
            file.seek(path.stat().st_size // 2)
            octet = file.read(1)
            file.seek(-1, 1)
            file.write(bytes([octet[0] ^ 1]))
        code, said = self.verify(check=False)
        self.assertEqual((code, said["damaged"], said["findings"][0]["file"]), (3, 1, str(path)))
        code, _, err = tool(self.data, "restore", "--user", "nobody", "--from", self.to, check=False)
        self.assertEqual(code, 1)
        self.assertIn("nobody", err)

    def key(self, name):
        """A pair of keys made by age's own program: the file of the secret one, and the public one."""
        file = self.folder / name
        subprocess.run(["age-keygen", "-o", file], check=True, capture_output=True, timeout=support.TOOL_SECONDS)
        done = subprocess.run(["age-keygen", "-y", file], check=True, capture_output=True, timeout=support.TOOL_SECONDS)
        return file, done.stdout.decode().strip()

    def test_encrypted(self):
        """To two keys, through the server and without one; age's own program opens the files; nobody else does."""
        (ours, our_key), (other, other_key), (stranger, _) = map(self.key, ("ours", "other", "stranger"))
        with Server(self.data) as server:
            before = self.seen(self.log_in(server))
        command = ["backup", "--user", support.USER, "--to", self.to, "--json"]
        tool(self.data, *command, "--recipient", our_key, "--recipient", other_key)
        # What is sealed is as it was in the account; the tail is its durable part.
        log, files = self.data / "accounts" / support.USER / "log", self.to / "accounts" / support.USER / "files"
        opened = 0
        for path in files.iterdir():
            done = subprocess.run(["age", "-d", "-i", other, path], check=True, capture_output=True, timeout=support.TOOL_SECONDS)
            original = (log / path.name.split(".")[0]).read_bytes()
            self.assertTrue(original.startswith(done.stdout) and done.stdout, path)
            opened += 1
        self.assertGreater(opened, 0)
        self.assertFalse(b"Received" in b"".join(path.read_bytes() for path in files.iterdir()))

        # Incremental without any secret key; the recipients are those of the configuration, and without any it is refused.
        code, _, err = tool(self.data, *command, check=False)
        self.assertEqual(code, 1)
        self.assertIn("recipients are missing", err)
        config = self.folder / "mailyard.toml"
        config.write_text(f'[backup]\nrecipients = ["{our_key}", "{other_key}"]\n')
        with Server(self.data):
            _, out, _ = tool(self.data, *command, "--config", config)
        [saved] = json.loads(out)["snapshots"]
        self.assertLess(saved["copied_files"], 2)
        self.assertEqual(self.verify()[1]["damaged"], 0)
        _, out, _ = tool(None, "backup", "verify", self.to, "--identity", ours, "--json")
        self.assertEqual((json.loads(out)["damaged"], json.loads(out)["snapshots"]), (0, 2))
        for identity, said in [((), "an identity is needed"), (("--identity", stranger), "none of the identities opens it")]:
            code, _, err = tool(self.data, "restore", "--user", support.USER, "--from", self.to, "--as-user", "bob",
                                *identity, check=False)
            self.assertEqual(code, 1)
            self.assertIn(said, err)

        # The server restores with the key that it is given for this; the secret is not in its log.
        tool(self.data, "user", "remove", support.USER, "--delete-mail")
        add_user(self.data, "bob")
        with Server(self.data) as server:
            said = self.restore("--as-user", "carol", "--identity", ours)
            self.assertEqual((said["restored"], said["account_is_new"]), (COUNT, True))
            tool(self.data, "restore", "--user", support.USER, "--from", self.to, "--as-user", "dave", "--identity", "-",
                 stdin=other.read_bytes())
        add_user(self.data, "carol")
        add_user(self.data, "dave")
        with Server(self.data) as server:
            for user in ("carol", "dave"):
                self.assertEqual(self.seen(self.log_in(server, user)), before)
        tool(self.data, "check")

    def test_plain_tar(self):
        """tar of a running server's directory, without the index: everything acknowledged before is in it."""
        archive, copy = self.folder / "mail.tar", self.folder / "copy"
        with Server(self.data) as server:
            before = self.seen(self.log_in(server))
            with Load(server) as load:
                while True:
                    known = list(load.acknowledged)
                    done = subprocess.run(
                        ["tar", "--exclude=index", "--exclude=spool", "-C", self.data, "-cf", archive, "accounts", "users"],
                        capture_output=True, timeout=support.TOOL_SECONDS)
                    # A file that was sealed or compacted away between tar's listing and its reading: once more.
                    if b"removed" not in done.stderr and len(known) > 200:
                        break
            self.assertIn(done.returncode, (0, 1), done.stderr)
        copy.mkdir()
        subprocess.run(["tar", "-C", copy, "-xpf", archive], check=True, timeout=support.TOOL_SECONDS)
        shutil.rmtree(self.data)
        with Server(copy) as server:
            imap = self.log_in(server)
            self.assertEqual(self.seen(imap), before)
            bodies = {values["BODY[]"] for values in all_messages(imap, "INBOX", ITEMS)}
            self.assertLessEqual(set(known), bodies)
        self.assertEqual({values[2] for values in before.values()}, {crlf(raw) for _, raw in self.mail})


if __name__ == "__main__":
    unittest.main()
