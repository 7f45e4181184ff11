"""SORT and THREAD on real mail, beside an oracle that follows RFC 5256 sentence by sentence.

Only messages whose headers leave no room for interpretation are asked about: dates as RFC 5322 has them, ASCII without encoded words.
"""

import email.utils
import re
import unittest

import support
from support import Case, Server, add_user, corpus, crlf, tool, write_mbox

DATE = re.compile(r"(?:[A-Z][a-z]{2}, +)?\d{1,2} [A-Z][a-z]{2} (?:19|20)\d\d \d\d:\d\d:\d\d [-+]\d{4}")
ADDRESS = re.compile(r'(?:"[\w .-]+" |[\w][\w .-]*[\w.] )?<([\w.+-]+)@([\w.-]+)>|([\w.+-]+)@([\w.-]+)')
MESSAGE_ID = re.compile(r"<([\w.!#$%&'*+/=?^`{|}~-]+@[\w.!#$%&'*+/=?^`{|}~-]+)>")


class Message:
    """The header of one message, and whether it is plain enough."""

    def __init__(self, raw):
        header = crlf(raw).split(b"\r\n\r\n", 1)[0].decode("latin-1")
        self.fields = {}
        for field in re.split(r"\r\n(?![ \t])", header):
            name, colon, value = field.partition(":")
            if colon:
                self.fields.setdefault(name.strip().lower(), []).append(value.replace("\r\n", ""))
        self.subject, self.is_reply = base_subject(self.first("subject"))

    def first(self, name):
        return self.fields.get(name, [""])[0]

    def is_plain(self):
        names = ("date", "subject", "from", "to", "message-id", "references", "in-reply-to")
        values = [self.first(name) for name in names]
        once = all(len(self.fields.get(name, [])) <= 1 for name in names)
        ids = [MESSAGE_ID.sub("", self.first(name)).strip() for name in names[4:6]]
        reply = self.first("in-reply-to").strip()
        return (
            once
            and DATE.fullmatch(values[0].strip()) is not None
            and ADDRESS.fullmatch(values[2].strip()) is not None
            and all(value.isascii() and "=?" not in value and "\0" not in value for value in values)
            and not any(ids)
            and (not reply or MESSAGE_ID.fullmatch(reply) is not None)
        )

    def date(self):
        return email.utils.parsedate_to_datetime(self.first("date").strip()).timestamp()

    def sender(self):
        found = ADDRESS.fullmatch(self.first("from").strip())
        return (found[1] or found[3]).upper()

    def references(self):
        return MESSAGE_ID.findall(self.first("references")) or MESSAGE_ID.findall(self.first("in-reply-to"))[:1]

    def message_id(self):
        found = MESSAGE_ID.findall(self.first("message-id"))
        return found[0] if found else None


def base_subject(text):
    """RFC 5256 §2.1, step by step; in upper case, and whether a reply or forward was recognised."""
    blob = r"\[[^\[\]]*\] *"
    refwd = rf"(?:re|fwd?) *(?:{blob})?:"
    is_reply = False
    text = re.sub(" +", " ", text.replace("\t", " "))
    while True:
        while True:
            shorter = re.sub(r"(?i)\(fwd\)$", "", text.rstrip(" "))
            is_reply |= len(shorter) < len(text.rstrip(" "))
            if shorter == text:
                break
            text = shorter
        while True:
            before = text
            text = text.lstrip(" ")
            leader = re.match(rf"(?i)(?:{blob})*{refwd}", text)
            if leader:
                text, is_reply = text[leader.end():], True
            else:
                prefix = re.match(blob, text)
                if prefix and text[prefix.end():]:
                    text = text[prefix.end():]
            if text == before:
                break
        inside = re.fullmatch(r"(?is)\[fwd:(.*)\]", text)
        if not inside:
            return text.upper(), is_reply
        text, is_reply = inside[1], True


class Node:
    """A message of the thread tree, or a dummy without one."""

    def __init__(self, number=None, message=None):
        self.number, self.message = number, message
        self.parent, self.children = None, []

    def put_below(self, parent):
        at = parent
        while at is not None:
            if at is self:
                return
            at = at.parent
        self.parent = parent
        parent.children.append(self)

    def cut(self):
        if self.parent is not None:
            self.parent.children.remove(self)
            self.parent = None

    def key(self):
        if self.message is None:
            return min(child.key() for child in self.children)
        return (self.message.date(), self.number)

    def speaker(self):
        return self if self.message else min(self.children, key=Node.key)

    def text(self):
        own = [] if self.number is None else [str(self.number)]
        children = sorted(self.children, key=Node.key)
        if len(children) == 1:
            return " ".join(own + [children[0].text()])
        return " ".join(own + (["".join(f"({child.text()})" for child in children)] if children else []))


def threads(messages):
    """RFC 5256 §3 REFERENCES for {number: message}."""
    nodes, taken, everything = {}, set(), []
    for number, message in sorted(messages.items()):
        last = None
        for name in message.references():
            node = nodes.setdefault(name, Node())
            if last is not None and node.parent is None:
                node.put_below(last)
            last = node
        name = message.message_id()
        if name is None or name in taken:
            node = Node()
            everything.append(node)
        else:
            taken.add(name)
            node = nodes.setdefault(name, Node())
        node.number, node.message = number, message
        node.cut()
        if last is not None:
            node.put_below(last)
    everything += nodes.values()

    def pruned(node, at_root):
        children = [one for child in node.children for one in pruned(child, False)]
        if node.message is None and not (at_root and len(children) > 1):
            return children
        node.children = children
        return [node]

    root = [one for node in everything if node.parent is None for one in pruned(node, True)]
    root.sort(key=Node.key)
    table = {}
    for node in root:
        subject = node.speaker().message.subject
        known = table.get(subject)
        replaces = known is not None and known.message is not None and (
            node.message is None or known.message.is_reply and not node.message.is_reply
        )
        if subject and (known is None or replaces):
            table[subject] = node
    for node in list(root):
        subject = node.speaker().message.subject
        if not subject or table[subject] is node or node not in root:
            continue
        known = table[subject]
        root.remove(node)
        if known.message is None:
            known.children += node.children if node.message is None else [node]
        elif node.message.is_reply and not known.message.is_reply:
            known.children.append(node)
        else:
            root.remove(known)
            table[subject] = Node()
            table[subject].children = [known, node]
            root.append(table[subject])
    return [f"({node.text()})" for node in sorted(root, key=Node.key)]


def split(answer):
    """The threads of a THREAD response."""
    found, depth, start = [], 0, 0
    for at, char in enumerate(answer):
        if char == "(":
            start = at if depth == 0 else start
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                found.append(answer[start:at + 1])
    return found


class Order(Case):
    def test_real_mail(self):
        add_user(self.data)
        mail = corpus()
        mbox = self.folder / "mbox"
        write_mbox(mbox, mail)
        tool(self.data, "import", "--user", support.USER, "--mailbox", "INBOX", mbox)
        messages = {number: Message(raw) for number, (_, raw) in enumerate(mail, 1)}
        plain = {number: message for number, message in messages.items() if message.is_plain()}
        self.assertGreater(len(plain), 2000)
        self.assertGreater(sum(bool(message.references()) for message in plain.values()), 500)
        wanted = ",".join(map(str, plain))
        with Server(self.data) as server:
            imap = server.connect()
            self.ok(imap.select("INBOX", readonly=True))
            for criteria, key in (
                ("(DATE)", lambda n: (plain[n].date(), n)),
                ("(REVERSE DATE)", lambda n: (-plain[n].date(), n)),
                ("(SUBJECT)", lambda n: (plain[n].subject, n)),
                ("(FROM SUBJECT REVERSE DATE)", lambda n: (plain[n].sender(), plain[n].subject, -plain[n].date(), n)),
            ):
                found = self.ok(imap.sort(criteria, "UTF-8", wanted))[0].split()
                self.assertEqual([int(number) for number in found], sorted(plain, key=key), criteria)
            found = split(self.ok(imap.thread("REFERENCES", "UTF-8", wanted))[0].decode())
            self.assertEqual(found, threads(plain))
            # All of the mail: every message stands in one thread, whatever its header says.
            for algorithm in ("REFERENCES", "REFS", "ORDEREDSUBJECT"):
                answer = self.ok(imap.thread(algorithm, "UTF-8", "ALL"))[0].decode()
                numbers = sorted(map(int, re.findall(r"\d+", answer)))
                self.assertEqual(numbers, list(range(1, len(mail) + 1)), algorithm)
            imap.logout()


if __name__ == "__main__":
    unittest.main()
