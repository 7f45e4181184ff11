"""The same questions about the same mail have the same answers in every format, and those of the oracle: in Mailyard's own store, in an mbox
file, in a Maildir and in a database; while the index is deleted under the running server, and after other programs delivered and removed.
"""

import datetime
import os
import random
import re
import unittest

import search_mail
from mariadb import Database
from search_oracle import Message
from support import PASSWORD, Case, Server, add_maildir_user, add_mbox_user, add_user, all_messages, corpus, crlf, fetch, tool, until, write_maildir
from test_search import Asker, Mailbox, Queries, rendered

SEED = int(os.environ.get("SEARCH_SEED", "1"))
MESSAGES = 200
QUERIES = 80
FORMATS = ["native", "mbox", "maildir", "sql"]
ORDERS = [("sort", "(REVERSE DATE SUBJECT)"), ("sort", "(FROM SIZE)"), ("thread", "REFERENCES"), ("thread", "ORDEREDSUBJECT")]
# What an mbox file keeps otherwise: fields for its own state, NULs.
OTHERWISE = re.compile(rb"(?mi)\0|^(?:status|x-status|x-uid|x-keywords|x-imap|x-imapbase|content-length)\s*:")


class SearchFormats(Case):
    def setUp(self):
        super().setUp()
        maker, rng = search_mail.Mail(SEED), random.Random(SEED)
        real = rng.sample(corpus(), MESSAGES)
        # As every format keeps them: with a line end at the end.
        made = [re.sub(rb"(\r\n)*\Z", b"\r\n", maker.message(number)) for number in range(MESSAGES)]
        self.raws = [crlf(raw) for _, raw in real if not OTHERWISE.search(raw) and raw.endswith(b"\n")] + made
        rng.shuffle(self.raws)
        self.rng = rng
        self.config = self.folder / "mailyard.toml"

    def tool(self, *arguments, **how):
        return tool(self.data, *arguments, "--config", self.config, **how)

    def add_users(self, database):
        self.config.write_text(f'[sql]\nurls = ["{database.create("mail")}"]\n')
        self.tool("sql", "update")
        add_user(self.data, "native")
        self.inbox, _ = add_mbox_user(self.data, self.folder, "mbox")
        self.maildir = add_maildir_user(self.data, self.folder, "maildir")
        self.tool("user", "add", "sql", "--password-stdin", "--format", "sql", stdin=PASSWORD.encode() + b"\n")
        write_maildir(self.folder / "in", [(str(number), raw) for number, raw in enumerate(self.raws)])
        for user in FORMATS:
            self.tool("import", "--user", user, "--mailbox", "INBOX", self.folder / "in")

    def known(self, imap):
        """The mailbox as the oracle knows it."""
        self.ok(imap.select("INBOX", readonly=True))
        rows, messages = [], []
        for number, values in sorted(fetch(imap, "1:*", "(UID FLAGS INTERNALDATE BODY.PEEK[])").items()):
            day = datetime.datetime.strptime(values["INTERNALDATE"].decode().strip().split(" ")[0], "%d-%b-%Y").date()
            flags = {flag.decode().lstrip("\\").upper() for flag in values["FLAGS"]}
            rows.append({"number": number, "uid": values["UID"], "day": day, "flags": flags, "emailid": "", "threadid": ""})
            messages.append(Message(values["BODY[]"]))
        return Mailbox("INBOX", rows, messages)

    def compare(self, askers, queries=QUERIES, during=lambda asked: None):
        box = self.known(askers["native"].imap)
        hits = 0
        for asked in range(queries):
            during(asked)
            pieces, (yes, unknown) = Queries(self.rng, box).query(self.rng.choice([0, 0, 1, 2]))
            query = rendered(pieces)
            if query is None or b"EMAILID" in query or b"THREADID" in query:
                # Each account has its own; or the needle would be read otherwise.
                continue
            found = {}
            for user, asker in askers.items():
                self.ok(asker.imap.select("INBOX", readonly=True))
                found[user] = asker.by_imap(query, "utf-8")
            said = f"seed {SEED}: {query!r}"
            for user in FORMATS:
                self.assertEqual(found[user], found["native"], f"{said} in {user}")
            for at, row in enumerate(box.rows):
                if unknown >> at & 1 == 0:
                    self.assertEqual(row["uid"] in found["native"], bool(yes >> at & 1), f"{said}: message {row['number']}")
            hits += len(found["native"])
        for command, how in ORDERS:
            answers = {user: self.ok(asker.imap.uid(command, how, "UTF-8", "ALL")) for user, asker in askers.items()}
            for user in FORMATS:
                self.assertEqual(answers[user], answers["native"], f"seed {SEED}: {command} {how} in {user}")
        return hits

    def test_every_format_finds_the_same(self):
        print(f"seed {SEED}", flush=True)
        with Database(self.folder / "mariadb") as database:
            self.add_users(database)
            with Server(self.data, "--config", self.config) as server:
                askers = {user: Asker(server, user) for user in FORMATS}
                self.assertEqual([values["BODY[]"] for values in all_messages(askers["native"].imap, "INBOX")], self.raws)
                self.assertGreater(self.compare(askers), QUERIES)
                places = [path for kind in ("accounts", "cache") for path in (self.data / kind).glob("*/**") if path.is_dir()]

                def delete(asked):
                    if asked % 5 == 0:
                        for path in [path for place in places for path in place.glob("search*")]:
                            path.unlink(missing_ok=True)

                self.compare(askers, queries=30, during=delete)
                self.change(askers)
                self.compare(askers, queries=60)
                for asker in askers.values():
                    asker.imap.logout()
            for user in FORMATS:
                _, out, _ = self.tool("search", "--user", user, "--imap", "--verify", "--json", 'OR TEXT "the" BODY "ü"')
                self.assertIn('"damaged":0', out.replace(" ", ""), user)

    def change(self, askers):
        """The same mail comes and goes everywhere: in files by other programs, elsewhere through the server."""
        new = [b"From: other@example.org\r\nSubject: quuxly\r\nDate: 3 Jan 2024 10:00:00 +0000\r\n\r\nplugh of the linux\r\n",
               b"From: another@example.org\r\nSubject: Re: quuxly\r\nDate: 4 Jan 2024 10:00:00 +0000\r\n\r\nxyzzy\r\n"]
        stamp = 1_500_000_000
        for number, raw in enumerate(new):
            for user in ("native", "sql"):
                self.ok(askers[user].imap.append("INBOX", None, f'"{datetime.datetime.fromtimestamp(stamp, datetime.UTC):%d-%b-%Y %H:%M:%S +0000}"', raw))
            with open(self.inbox, "ab") as file:
                day = datetime.datetime.fromtimestamp(stamp, datetime.UTC)
                file.write(f"From other@example.org {day:%a %b %d %H:%M:%S %Y}\n".encode() + raw.replace(b"\r\n", b"\n") + b"\n")
            path = self.maildir / "tmp" / f"{stamp}.M{number}.other"
            path.write_bytes(raw.replace(b"\r\n", b"\n"))
            os.utime(path, (stamp, stamp))
            path.rename(self.maildir / "new" / path.name)

            def there(user, wanted=len(self.raws) + number + 1):
                return int(self.ok(askers[user].imap.select("INBOX", readonly=True))[0]) == wanted

            for user in FORMATS:
                until(f"the new message in {user}", lambda user=user: there(user), seconds=60)
        # And some go.
        gone = {row["uid"] for row in self.known(askers["maildir"].imap).rows if row["uid"] % 7 == 3}
        numbers = ",".join(map(str, sorted(gone)))
        for user in FORMATS:
            imap = askers[user].imap
            self.ok(imap.select("INBOX"))
            self.ok(imap.uid("STORE", numbers, "+FLAGS.SILENT", "(\\Deleted)"))
            self.ok(imap.expunge())


if __name__ == "__main__":
    unittest.main()
