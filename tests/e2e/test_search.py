"""SEARCH: the index, a scan and an oracle of its own (search_oracle.py) give the same answer to random queries over real mail and mail in
many languages.

A run is bounded in time; its seed is printed. `SEARCH_QUERIES=50000 SEARCH_SEED=7 python3 tests/e2e/test_search.py` asks as many
queries, however long it takes; SEARCH_KEEP names a file for the message of a wrong answer, SEARCH_MAILBOX how many messages a mailbox has.
"""

import datetime
import json
import os
import pathlib
import random
import socket
import time
import unittest

import search_mail
import support
from search_languages import encode
from search_oracle import BORDER, Message, Unsure, decode, fold
from support import Case, Server, add_user, corpus, crlf, fetch, tool, until, write_maildir

SECONDS = 45
QUERIES = int(os.environ.get("SEARCH_QUERIES", 0))
SEED = int(os.environ.get("SEARCH_SEED", "1"))
MADE_MESSAGES = 2500
# Smaller mailboxes are quicker to scan.
MAILBOX_MESSAGES = int(os.environ.get("SEARCH_MAILBOX", 1000))
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
NAMES = ["subject", "from", "to", "cc", "bcc", "received", "message-id", "content-type", "x-mailer", "x-note", "x-empty", "date", "reply-to",
         "content-disposition", "x-nowhere", "Content-Transfer-Encoding"]
CHARSETS = ["koi8-r", "iso-8859-1", "windows-1251", "iso-2022-jp", "gb18030", "us-ascii", "big5", "shift_jis", "euc-jp", "euc-kr", "utf-7", "hz-gb-2312",
            "iso-2022-kr", "iso-8859-2", "windows-1253", "windows-1255", "windows-1256", "ibm850", "macintosh"]


class Mailbox:
    """The messages of a mailbox as the oracle knows them; sets of them are bits of a number."""

    def __init__(self, name, rows, messages):
        self.name, self.rows, self.messages = name, rows, messages
        self.all = (1 << len(rows)) - 1

    def where(self, test):
        """The messages for which a test is true, and those for which nobody knows."""
        yes = unknown = 0
        for at, answer in enumerate(map(test, self.rows, self.messages)):
            if answer is None:
                unknown |= 1 << at
            elif answer:
                yes |= 1 << at
        return yes, unknown


class Queries:
    """Random queries: what is sent, as pieces of text and needles, and what it means."""

    def __init__(self, rng, mailbox):
        self.random, self.mailbox = rng, mailbox

    def needle(self):
        rng = self.random
        if rng.random() < 0.1:
            return rng.choice(["e", "a", "@", " ", "the", "of the", "re:", "-- ", "\r\n", ". ", "ss", "ß", "を", "ия", "one of the", "http://", "=", "nowhere at all"])
        for _ in range(50):
            message = rng.choice(self.mailbox.messages)
            if message.originals:
                break
        text = rng.choice(message.originals)
        length = rng.choice([1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 60, 100, 300])
        if rng.random() < 0.3:
            # Words: what people look for.
            words = text.split(" ")
            at = rng.randrange(len(words))
            needle = " ".join(words[at:at + rng.choice([1, 1, 1, 2, 2, 3, 4])])[:200]
        else:
            at = rng.randrange(len(text))
            needle = text[at:at + length]
        kind = rng.random()
        if kind < 0.1:
            needle = needle.upper()
        elif kind < 0.2:
            needle = needle.swapcase()
        elif kind < 0.25:
            needle = needle[:-1] + rng.choice("xyz ,.")
        elif kind < 0.3:
            needle = fold(needle)
        needle = needle.replace("\0", "").replace(BORDER, "").replace("\ufffd", "")
        return needle if rng.random() > 0.005 else ""

    def date(self):
        rng = self.random
        return datetime.date(rng.choice([1999, 2000, 2001, 2002, 2002, 2002, 2003, 2004, 2005]), rng.randrange(1, 13), rng.randrange(1, 29))

    def numbers(self, highest):
        rng = self.random
        ranges = [sorted((rng.randrange(1, highest + 20), rng.randrange(1, highest + 20))) for _ in range(rng.randrange(1, 4))]
        text = ",".join(f"{low}:{high}" if rng.random() < 0.8 else str(low) for low, high in ranges)
        found = set()
        for piece in text.split(","):
            low, _, high = piece.partition(":")
            found.update(range(int(low), int(high or low) + 1))
        return text, found

    def query(self, depth):
        """(pieces, (yes, unknown)): text stands as str, a needle as (needle,)."""
        rng, box = self.random, self.mailbox
        kind = rng.random() if depth else 1.0
        if kind < 0.15:
            pieces, (yes, unknown) = self.query(depth - 1)
            return ["NOT ", *pieces], (box.all & ~yes & ~unknown, unknown)
        if kind < 0.3:
            (a, (a_yes, a_unknown)), (b, (b_yes, b_unknown)) = self.query(depth - 1), self.query(depth - 1)
            yes = a_yes | b_yes
            return ["OR ", *a, " ", *b], (yes, (a_unknown | b_unknown) & ~yes)
        if kind < 0.45:
            pieces, yes, unknown = ["("], box.all, 0
            for number in range(rng.randrange(1, 4)):
                more, (its_yes, its_unknown) = self.query(depth - 1)
                pieces += [" ", *more] if number else more
                # Neither yes nor unknown is no, and that decides.
                maybe = (yes | unknown) & (its_yes | its_unknown)
                yes &= its_yes
                unknown = maybe & ~yes
            return [*pieces, ")"], (yes, unknown)
        return self.key()

    def key(self):
        rng, box = self.random, self.mailbox
        kind = rng.random()
        if kind < 0.55:
            key = rng.choice(["TEXT", "BODY"])
            needle = self.needle()
            folded, place = fold(needle), key.lower()
            return [f"{key} ", (needle,)], box.where(lambda row, message: message.has(place, folded))
        if kind < 0.75:
            needle = self.needle()
            if rng.random() < 0.5:
                key = rng.choice(["SUBJECT", "FROM", "TO", "CC", "BCC"])
                name, pieces = key.lower(), [f"{key} ", (needle,)]
            else:
                key = rng.choice(NAMES)
                name = key.lower()
                needle = "" if rng.random() < 0.3 else needle
                pieces = [f"HEADER {key} ", (needle,)]
            if needle and rng.random() < 0.7:
                # Most needles are of other fields: take one of this.
                own = [text for message in box.messages for field, text in message.fields if field == name and text]
                if own:
                    text = rng.choice(own)
                    at = rng.randrange(len(text))
                    needle = text[at:at + rng.choice([1, 2, 3, 5, 8, 13])].replace(BORDER, "").replace("\0", "").replace("\ufffd", "")
                    pieces[-1] = (needle,)
            folded = fold(needle)
            return pieces, box.where(lambda row, message: message.has_field(name, folded))
        date = self.date()
        written = f"{date.day}-{MONTHS[date.month - 1]}-{date.year}"
        compare = rng.choice([("BEFORE", lambda day: day < date), ("ON", lambda day: day == date), ("SINCE", lambda day: day >= date)])
        if kind < 0.83:
            def sent(row, message):
                return None if message.day is ... else message.day is not None and compare[1](message.day)
            return [f"SENT{compare[0]} {written}"], box.where(sent)
        if kind < 0.87:
            return [f"{compare[0]} {written}"], box.where(lambda row, message: compare[1](row["day"]))
        if kind < 0.9:
            size = rng.choice([500, 2000, 3000, 5000, 10000])
            larger = rng.random() < 0.5
            return [f"{'LARGER' if larger else 'SMALLER'} {size}"], box.where(
                lambda row, message: message.size > size if larger else message.size < size)
        if kind < 0.94:
            flag = rng.choice(["SEEN", "ANSWERED", "FLAGGED", "DELETED", "DRAFT"])
            unset = rng.random() < 0.5
            return [f"{'UN' if unset else ''}{flag}"], box.where(lambda row, message: (flag in row["flags"]) != unset)
        if kind < 0.96:
            text, numbers = self.numbers(len(box.rows))
            return [text], box.where(lambda row, message: row["number"] in numbers)
        if kind < 0.98:
            text, numbers = self.numbers(box.rows[-1]["uid"])
            return [f"UID {text}"], box.where(lambda row, message: row["uid"] in numbers)
        if kind < 0.99:
            name = rng.choice(["emailid", "threadid"])
            value = rng.choice(box.rows)[name]
            return [f"{name.upper()} {value}"], box.where(lambda row, message: row[name] == value)
        return rng.choice([(["ALL"], (box.all, 0)), (["SAVEDBEFORE 1-Jan-2001"], (0, 0)), (["SAVEDSINCE 1-Jan-2001"], (box.all, 0)),
                           (["YOUNGER 100000"], (0, 0)), (["OLDER 100000"], (box.all, 0)), (["MODSEQ 1"], (box.all, 0))])


def rendered(pieces, charset="utf-8"):
    """A query as octets; None when a needle has characters that the set lacks."""
    out = b""
    for piece in pieces:
        if isinstance(piece, str):
            out += piece.encode()
            continue
        try:
            octets = encode(piece[0], charset)
            # Where Python's table is another one, the server reads other characters.
            if decode(charset, octets) != piece[0]:
                return None
        except (UnicodeError, Unsure):
            return None
        quotable = octets.isascii() and not any(octet in b'"\\\r\n\x1b' or octet < 32 for octet in octets)
        out += b'"' + octets + b'"' if quotable and octets else b"{%d+}\r\n%s" % (len(octets), octets) if octets else b'""'
    return out


class Asker:
    """Asks the server: by IMAP, and through the control socket for the index and a scan beside it."""

    def __init__(self, server, user=support.USER):
        self.imap = server.connect(user)
        self.control = str(server.data / "control.sock")
        self.number = 0

    def by_imap(self, query, charset):
        self.number += 1
        tag = b"s%d" % self.number
        prefix = b"" if charset == "utf-8" else b"CHARSET %s " % charset.encode()
        self.imap.send(b"%s UID SEARCH %s%s\r\n" % (tag, prefix, query))
        found = None
        while True:
            line = self.imap.readline().rstrip(b"\r\n")
            if line.startswith(b"* SEARCH"):
                found = {int(uid) for uid in line.split(b"(")[0].split()[2:]}
            elif line.startswith(tag + b" "):
                if not line.startswith(tag + b" OK"):
                    raise AssertionError(f"{line!r} to {query!r}")
                return found

    def verified(self, mailbox, query):
        """What the index finds; a scan must find the same."""
        request = {"command": "search", "user": support.USER, "mailbox": mailbox, "query": query.decode(), "imap": True, "verify": True}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(120)
            connection.connect(self.control)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as lines:
                for line in lines:
                    answer = json.loads(line)
                    if "done" in answer:
                        return answer["done"]
                    if "failed" in answer:
                        raise AssertionError(f"{answer['failed']}: {query!r}")
        raise AssertionError("the server ended")


class Search(Case):
    def fill(self, server_data):
        """Mailboxes of real and of made mail, mixed; what each message is for the oracle."""
        rng = random.Random(SEED)
        maker = search_mail.Mail(SEED)
        messages = [raw for _, raw in corpus()] + [maker.message(number) for number in range(MADE_MESSAGES)]
        rng.shuffle(messages)
        self.boxes = {}
        for start in range(0, len(messages), MAILBOX_MESSAGES):
            name = f"box{start // MAILBOX_MESSAGES}"
            part = messages[start:start + MAILBOX_MESSAGES]
            flags = ["".join(sorted(rng.sample("SRFTD", rng.randrange(3)))) for _ in part]
            folder = self.folder / name
            write_maildir(folder, [(str(number), raw) for number, raw in enumerate(part)], flags)
            for number, path in enumerate(sorted((folder / "cur").iterdir())):
                day = rng.randrange(1999 - 1970, 2006 - 1970) * 31_557_600 + rng.randrange(31_000_000)
                os.utime(path, (day, day))
            tool(server_data, "import", "--user", support.USER, "--mailbox", name, folder)
            self.boxes[name] = [crlf(raw) for raw in part]

    def known(self, imap):
        boxes = []
        for name, raws in self.boxes.items():
            self.ok(imap.select(name, readonly=True))
            found = fetch(imap, "1:*", "(UID FLAGS INTERNALDATE RFC822.SIZE EMAILID THREADID)")
            rows = []
            for number, raw in enumerate(raws, 1):
                values = found[number]
                self.assertEqual(values["RFC822.SIZE"], len(raw))
                day = datetime.datetime.strptime(values["INTERNALDATE"].decode().strip().split(" ")[0], "%d-%b-%Y").date()
                rows.append({
                    "number": number, "uid": values["UID"], "day": day, "flags": {flag.decode().lstrip("\\").upper() for flag in values["FLAGS"]},
                    "emailid": values["EMAILID"][0].decode(), "threadid": values["THREADID"][0].decode(),
                })
            boxes.append(Mailbox(name, rows, [Message(raw) for raw in raws]))
        return boxes

    def test_index_and_scan_and_oracle(self):
        print(f"seed {SEED}", flush=True)
        add_user(self.data)
        self.fill(self.data)
        with Server(self.data) as server:
            asker = Asker(server)
            boxes = self.known(asker.imap)
            unsure = [message for box in boxes for message in box.messages if message.body is None or message.header is None]
            self.assertLess(len(unsure), len(corpus()) // 100, "the oracle does not know enough")
            rng = random.Random(SEED + 1)
            end = time.monotonic() + SECONDS
            asked = hits = left_open = 0
            while asked < QUERIES if QUERIES else time.monotonic() < end:
                box = rng.choice(boxes)
                self.ok(asker.imap.select(box.name, readonly=True))
                for _ in range(50):
                    count, unknown = self.one(asker, rng, box)
                    asked, hits, left_open = asked + 1, hits + count, left_open + unknown
            print(f"{asked} queries, {hits} hits, {left_open} answers that no standard decides", flush=True)
            # As many as the machine had time for, one round at least.
            self.assertGreaterEqual(asked, 50)
            self.assertGreater(hits, asked)
            asker.imap.logout()

    def one(self, asker, rng, box):
        """Asks one query; how many messages it finds, and of how many nobody knows."""
        query = None
        # A needle that begins with a byte order mark is not what it was when it was read again.
        while query is None:
            pieces, (yes, unknown) = Queries(rng, box).query(rng.choice([0, 0, 1, 2, 3]))
            query = rendered(pieces)
        done = asker.verified(box.name, query)
        said = f"seed {SEED}: {query!r} in {box.name}"
        self.assertEqual(done["findings"], [], said)
        found = {row["uid"] for row in done["messages"]}
        self.assertEqual(done["found"], len(found), said)
        charset = rng.choice(CHARSETS) if rng.random() < 0.2 else "utf-8"
        in_charset = rendered(pieces, charset)
        by_imap = asker.by_imap(*((query, "utf-8") if in_charset is None else (in_charset, charset)))
        self.assertEqual(by_imap, found, said)
        for at, row in enumerate(box.rows):
            if unknown >> at & 1 == 0 and (yes >> at & 1 == 1) != (row["uid"] in found):
                place = os.environ.get("SEARCH_KEEP", os.devnull)
                pathlib.Path(place).write_bytes(self.boxes[box.name][at])
                raise AssertionError(f"{said}: the oracle says {bool(yes >> at & 1)} of message {row['number']}, kept in {place}")
        return yes.bit_count(), unknown.bit_count()


if __name__ == "__main__":
    unittest.main()
