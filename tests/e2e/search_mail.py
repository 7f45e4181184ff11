"""Mail in many languages and forms, made from a seed: character sets under all their names and under wrong ones, encodings that split
characters, words and lines or are broken, markup with references, encoded words, RFC 2231 names, reports and messages inside messages.
"""

import base64
import html
import html.entities
import random

from search_languages import ALIASES, LANGUAGES, UNKNOWN, encode

BLOCKS = ["p", "div", "td", "li", "b", "i", "span", "a href=\"http://x.example/?a=1&b=<>\"", "br/", "h2", "font color=red", "P\r\nclass='a > b'",
          "td bgcolor=#fff nowrap", "textarea", "x-own:tag", "TITLE", "pre"]
# What stands between words of a document and is not shown, or not as it stands.
MARKS = ["<!-- not > this -->", "<!-- a -- b --- >c-->", "<style>p { x }</style>", "<script>if (a<b) '</p>'</script>", "<SCRIPT type=x>hidden</Script >", "&nbsp;",
         "<br>", "<br/>", "</p >", "<!doctype html>", "<?xml version='1.0'?>", "<![if !mso]>", "<hr size=1/>", "<img alt='a>b' src=x>", "</b", "< 3 ", "<3", "<>", "&",
         "AT&T", "&amp", "&bogus;", "&#147;quoted&#148;", "&#x2014;", "&#0;", "&#xD800;", "&#99999999;", "&#;", "&#x;", "&#32;", "&copy 2002", "&hellip;", "&shy;",
         "&zwj;", "&EACUTE;", "&Eacute;", "&thetasym;", "&amp;lt;", "&quot;&apos;", "&#38;#38;", "&&amp;&"]
TYPES = ["text/plain"] * 12 + ["TEXT/PLAIN", "text/enriched", "text/calendar", "text/x-vcard", "text/rfc822-headers", "text", "text/", "plain", "message/partial; id=\"x@y\"; number=1",
                               "message/feedback-report", "Text/Plain (a \\) comment)"]


class Mail:
    """One message after the other from a random number generator."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def maybe(self, probability):
        return self.random.random() < probability

    def sentence(self):
        """Some text and a character set for it."""
        text, charsets = self.random.choice(LANGUAGES)
        words = text.split(" ")
        start = self.random.randrange(len(words))
        words = words[start:] + words[:start]
        text = " ".join(words[:self.random.randrange(1, len(words) + 1)])
        if self.maybe(0.15):
            text = text.upper() if "ß" not in text else text
        charset = self.random.choice(charsets)
        try:
            encode(text, charset)
        except UnicodeEncodeError:
            charset = "utf-8"
        return text, charset

    # ---- encodings ------------------------------------------------------------------------------------------

    def transfer(self, octets, charset):
        """Octets in an encoding that carries them, cut anywhere; its name."""
        kinds = ["base64", "quoted-printable"]
        if charset.startswith(("iso-2022", "utf-7", "hz", "us-ascii")):
            kinds.append("7bit")
        elif b"\n--" not in octets and not charset.startswith("utf-16"):
            kinds += ["8bit", self.random.choice(["binary", "x-unknown", "8bits", "none"])]
        kind = self.random.choice(kinds)
        name = self.random.choice([kind, kind, kind, kind.upper(), f"{kind} (a comment)", f" {kind} "])
        if kind == "base64":
            return name, self.base64(octets)
        if kind == "quoted-printable":
            return name, self.quoted(octets)
        return name, octets

    def base64(self, octets):
        """In lines of any length; some of it broken."""
        width = self.random.choice([60, 72, 76, 40, 61, 7])
        if self.maybe(0.05):
            # Two pieces, each with its own padding.
            cut = self.random.randrange(len(octets) + 1)
            text = base64.b64encode(octets[:cut]) + base64.b64encode(octets[cut:])
        else:
            text = base64.b64encode(octets)
        if self.maybe(0.05):
            text = text.rstrip(b"=")
        if self.maybe(0.05):
            text = text[:len(text) - self.random.randrange(4)]
        line_end = self.random.choice([b"\r\n", b"\r\n", b"\r\n", b"\r\n\r\n", b" \r\n\t"])
        lines = [text[at:at + width] for at in range(0, len(text), width)]
        if self.maybe(0.1):
            lines = [line if self.maybe(0.7) else line[:3] + self.random.choice([b"!", b" ", b"*", b"-", b"\xa0", b"."]) + line[3:] for line in lines]
        footer = b"-- \r\nThis footer is no base64.\r\n" if self.maybe(0.03) else b""
        return line_end.join(lines) + b"\r\n" + footer

    def quoted(self, octets):
        """With soft line breaks in the middle of words and characters, white space that is dropped, and escapes that are none."""
        out = bytearray()
        column, limit = 0, self.random.randrange(20, 76)
        form = b"=%02x" if self.maybe(0.2) else b"=%02X"
        for line in octets.split(b"\r\n"):
            for octet in line:
                token = form % octet if octet > 126 or octet < 32 or octet == 61 or self.maybe(0.02) else bytes([octet])
                if column + len(token) > limit:
                    out += b"=\r\n" if self.maybe(0.8) else b"=  \r\n"
                    column = 0
                out += token
                column += len(token)
            if self.maybe(0.01):
                out += self.random.choice([b"=XY", b"=3", b"=", b"==41", b"=4=31"])
            if out[-1:] == b" ":
                out[-1:] = b"=20"
            out += b"  \r\n" if self.maybe(0.1) else b"\r\n"
            column = 0
        return bytes(out)

    # ---- text parts -----------------------------------------------------------------------------------------

    def paragraphs(self):
        """Several lines in one character set."""
        text, charset = self.sentence()
        lines = [text]
        for _ in range(self.random.randrange(6)):
            more = self.sentence()[0]
            try:
                encode(more, charset)
            except UnicodeEncodeError:
                more = text[: self.random.randrange(len(text) + 1)]
            lines.append(more)
        # Lines that break inside sentences.
        words = " ".join(lines).split(" ")
        out = ""
        for word in words:
            out += word + self.random.choice([" ", " ", " ", " ", "\r\n", "  ", "\t"])
        return out + "\r\n", charset

    def label(self, charset):
        """What a part calls its character set: mostly its name, or one of the others; None for nothing at all."""
        if charset in ("us-ascii", "utf-8") and self.maybe(0.2):
            return self.random.choice([*UNKNOWN, None, "us-ascii", ""])
        if charset == "windows-1252" and self.maybe(0.2):
            # A guess takes what is no UTF-8 for it.
            return self.random.choice([*UNKNOWN, None, "us-ascii"])
        if charset in ALIASES and self.maybe(0.25):
            charset = self.random.choice(ALIASES[charset])
        return charset.upper() if self.maybe(0.3) else charset

    def leaf(self):
        """A part: (header fields, body)."""
        text, charset = self.paragraphs()
        kind = self.random.choice(TYPES)
        if self.maybe(0.35):
            kind, text = self.random.choice(["text/html", "text/html", "TEXT/HTML", "text/html (page)"]), self.markup(text)
            try:
                encode(text, charset)
            except UnicodeEncodeError:
                charset = "utf-8"
        octets = encode(text, charset)
        if charset.startswith("utf-16") and (charset == "utf-16" or self.maybe(0.5)):
            # Python's utf-16 has the mark already.
            octets = octets if charset == "utf-16" else encode("\ufeff" + text, charset)
        if charset == "utf-8" and self.maybe(0.03):
            octets = b"\xef\xbb\xbf" + octets
        encoding, body = self.transfer(octets, charset)
        return self.leaf_fields(kind, self.label(charset), encoding), body

    def leaf_fields(self, kind, label, encoding):
        """Content-Type and what goes with it, in any order and form."""
        if label is None:
            value = kind
        else:
            quote = self.random.choice(['"', "", "", "\""]) if label and all(letter.isalnum() or letter in "-_." for letter in label) else '"'
            value = self.random.choice([
                "{kind}; charset={label}", "{kind};charset={label}", "{kind};\r\n\tcharset = {label}", "{kind}; Charset={label};", "{kind}; format=flowed; CHARSET={label}",
                "{kind}; charset={label}; name=\"a; b.txt\"", "{kind}; (note) charset={label} (really)"])
            value = value.format(kind=kind, label=f"{quote}{label}{quote}")
        fields = [f"{self.random.choice(['Content-Type', 'Content-type', 'content-type'])}: {value}", f"Content-Transfer-Encoding: {encoding}"]
        if self.maybe(0.2):
            fields.append(self.named_file())
        if self.maybe(0.1):
            fields.append(f"Content-Description: {self.phrase()}")
        self.random.shuffle(fields)
        return "".join(field + "\r\n" for field in fields).encode("latin-1")

    def markup(self, text):
        pieces = []
        for word in text.split(" "):
            word = html.escape(word, quote=False)
            if self.maybe(0.2):
                word = "".join(self.reference(letter) for letter in word)
            if self.maybe(0.3) and "\r\n" not in word:
                block = self.random.choice(BLOCKS)
                word = f"<{block}>{word}</{block.split()[0].rstrip('/')}>"
            if self.maybe(0.08):
                word += self.random.choice(MARKS) + self.random.choice(["", " ", "."])
            if self.maybe(0.1) and len(word) > 4 and word.isalpha():
                word = word[:3] + self.random.choice(["<b>", "<wbr>", "<!---->", "&#173;", "<span style='a'>"]) + word[3:]
            pieces.append(word)
        separator = " " if self.maybe(0.9) else "\r\n "
        end = "</body></html>\r\n" if self.maybe(0.9) else self.random.choice(["<", "&", "&am", "<p", "<!-- never ends", "<a href=\"never ends", "<style>never"])
        return "<html><body>" + separator.join(pieces) + end

    def reference(self, letter):
        if not letter.isalpha() or self.maybe(0.5):
            return letter
        name = html.entities.codepoint2name.get(ord(letter))
        if name and self.maybe(0.5):
            return f"&{name};"
        return f"&#{ord(letter)};" if self.maybe(0.5) else f"&#{self.random.choice('xX')}{ord(letter):X};"

    # ---- header ---------------------------------------------------------------------------------------------

    def named_file(self):
        """A name in the forms of RFC 2231: in one piece or several, all of them escaped or some."""
        text, charset = self.sentence()
        text = text[:24].strip()
        charset = charset if charset in ("iso-8859-1", "windows-1252", "koi8-r", "utf-8", "big5", "shift_jis") else "utf-8"
        name = self.escaped(encode(text, charset))
        label = self.random.choice([charset, charset.upper(), *ALIASES.get(charset, [])[:1]])
        field, parameter = self.random.choice([("Content-Disposition: attachment", "filename"), ("Content-Disposition: inline", "FileName"),
                                               ("Content-Type: application/octet-stream", "name")])
        if field.startswith("Content-Type"):
            # A second Content-Type that does not count.
            field = "Content-Disposition: attachment"
        kind = self.random.random()
        cut = self.random.randrange(len(name) + 1)
        if kind < 0.3 and "%" not in name[max(0, cut - 2):cut]:
            return f"{field};\r\n {parameter}*0*={label}''{name[:cut]};\r\n {parameter}*1*={name[cut:]}"
        if kind < 0.45 and "%" not in name[max(0, cut - 2):cut]:
            # The pieces in another order, one of them quoted and not escaped.
            return f"{field};\r\n {parameter}*2=\" (final) 100%25.txt\"; {parameter}*1*={name[cut:]};\r\n {parameter}*0*={label}'de'{name[:cut]}"
        if kind < 0.55:
            return f"{field}; {parameter}*0=\"plain \";\r\n {parameter}*1=pieces.txt"
        if kind < 0.65:
            return f"{field}; {parameter}=\"{self.phrase().replace(chr(13) + chr(10), '')}\""
        return f"{field}; {parameter}*={label}'en'{name}"

    @staticmethod
    def escaped(octets):
        return "".join(chr(octet) if chr(octet).isascii() and chr(octet).isalnum() else f"%{octet:02X}" for octet in octets)

    def phrase(self):
        """A header value: encoded words, of which one character may be split over two, and what only looks like them."""
        text, charset = self.sentence()
        text = text[:40]
        kind = self.random.random()
        if kind < 0.15 and text.isascii():
            return text
        if kind < 0.25:
            return text.encode().decode("latin-1") if charset == "utf-8" else text.encode("ascii", "replace").decode()
        if charset.startswith("utf-16"):
            charset = "utf-8"
        octets = encode(text, charset)
        words = []
        gap = self.random.choice(["\r\n ", "\r\n ", "\r\n\t", "\r\n  \t ", " ", "", " ,\r\n "])
        is_broken = self.maybe(0.1)
        if is_broken or "," in gap or charset.startswith(("iso-2022", "utf-7", "hz")):
            # Characters stay whole.
            chunks = [encode(text[at:at + 9], charset) for at in range(0, len(text), 9)]
        else:
            size = self.random.randrange(5, 30)
            chunks = [octets[at:at + size] for at in range(0, len(octets), size)]
        names = [charset, charset.upper()]
        if self.maybe(0.2):
            names = [self.random.choice(ALIASES.get(charset, [charset])).replace(" ", "")]
        elif self.maybe(0.1):
            names = [f"{charset}*de"]
        for chunk in chunks:
            words.append(self.encoded_word(self.random.choice(names), chunk))
        if is_broken:
            words.insert(self.random.randrange(len(words) + 1), self.random.choice(
                ["plain", "=?utf-8?q?broken =?=", "=?utf-8?x?nothing?=", "=?utf-8?q?=C3=A9", "=?utf-8?q??=", "(a =?utf-8?q?comment?=)", "=?utf-8?q?two words?=",
                 "\"=?utf-8?b?w6k=?=\"", "=?x-unknown?q?=E9t=E9?=", "=?us-ascii?q?=C3=A9t=C3=A9?=", "=?utf-8?b?!w6=3=?=", "=?utf-8?Q?a=?b?=", "?=", "=?"]))
        return gap.join(words)

    def encoded_word(self, name, chunk):
        if self.maybe(0.5):
            return f"=?{name}?{self.random.choice('bB')}?{base64.b64encode(chunk).decode()}?="
        coded = "".join(chr(octet) if chr(octet).isascii() and chr(octet).isalnum() else "_" if octet == 32 else f"={octet:02X}" for octet in chunk)
        return f"=?{name}?{self.random.choice('qQ')}?{coded}?="

    def date(self):
        """A Date in the forms of RFC 5322 §3.3 and §4.3."""
        day, month, year = self.random.randrange(1, 29), self.random.choice("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()), self.random.randrange(1999, 2006)
        zone = self.random.choice(["+0000", "-0800", "+0930", "+0200", "-0000", "GMT", "UT", "EST", "PDT", "Z", "+0200 (CEST)", "-0500 (EST (a))"])
        hour = self.random.randrange(24)
        return self.random.choice([
            f"{day} {month} {year} {hour:02}:30:00 {zone}", f"Mon, {day:02} {month} {year} {hour:02}:30:59 {zone}", f"{day} {month} {year % 100:02} {hour:02}:30 {zone}",
            f"Tue,  {day} {month}  {year} {hour:02}:30:00 {zone}", f"{day} {month} {year - 1900} {hour:02}:30:00 {zone}", f"Sun, {day}\r\n {month} {year} {hour:02}:30:00\r\n\t{zone}",
            f"{day} {month.upper()} {year} {hour:02}:30:00 {zone}"])

    def header(self, number):
        lines = [
            f"Date: {self.date()}",
            f"From: {self.phrase()} <writer{self.random.randrange(30)}@example.org>",
            f"To: {self.phrase()} <reader{self.random.randrange(30)}@example.net>",
            f"{self.random.choice(['Subject', 'Subject', 'SUBJECT', 'subject'])}:{self.random.choice([' ', ' ', '', chr(9), '  ', chr(13) + chr(10) + ' '])}{self.phrase()}",
            f"Message-ID: <{number}.{self.random.randrange(10**9)}@example.org>",
        ]
        if self.maybe(0.3):
            lines.append(f"Cc: {self.phrase()} <copy@example.com>")
        if self.maybe(0.1):
            lines.append(f"Bcc: {self.phrase()} <blind@example.com>")
        if self.maybe(0.3):
            lines.append(f"X-Note: {self.phrase()}")
        if self.maybe(0.1):
            lines.append("X-Empty:")
        if self.maybe(0.05):
            # The second of a field that there should be one of.
            lines.append(f"Subject: {self.phrase()}")
        if self.maybe(0.03):
            lines.append("X-Note : white space before the colon")
        if self.maybe(0.03):
            lines.append("this line is no field\r\n nor this one")
        self.random.shuffle(lines)
        return "\r\n".join(lines).encode("latin-1") + b"\r\n"

    # ---- structure ------------------------------------------------------------------------------------------

    def body(self, depth=2):
        """(MIME fields, body)."""
        kind = self.random.random()
        if depth == 0 or kind < 0.5:
            return self.leaf()
        if kind < 0.6:
            kind = self.random.choice(["message/rfc822", "message/rfc822", "message/global", "Message/RFC822; name=\"a.eml\""])
            encoding = self.random.choice(["", "", "Content-Transfer-Encoding: 8bit\r\n", "Content-Disposition: attachment\r\n"])
            return f"Content-Type: {kind}\r\n{encoding}".encode(), self.message(self.random.randrange(10**6), depth - 1)
        return self.multipart(depth)

    def multipart(self, depth):
        boundary = f"=_{self.random.randrange(10**9)}"
        if self.maybe(0.1):
            boundary = self.random.choice(["a b", "x", "--", "=_1", "simple", "(c)", "a:b?"])
        subtype = self.random.choice(["mixed", "alternative", "report", "digest", "related", "x-own", "Signed"])
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            if subtype == "digest":
                parts.append(b"\r\n" + self.message(self.random.randrange(10**6), depth - 1))
            elif subtype == "report" and self.maybe(0.5):
                report = f"Reporting-MTA: dns; mx{self.random.randrange(9)}.example.org\r\n\r\nFinal-Recipient: rfc822; gone{self.random.randrange(99)}@example.org\r\n" \
                         "Action: failed\r\nStatus: 5.1.1\r\n"
                parts.append(b"Content-Type: message/delivery-status\r\n\r\n" + report.encode())
            elif self.maybe(0.15):
                parts.append(b"Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(b"not searched") + b"\r\n")
            elif self.maybe(0.05):
                # No header at all, or nothing but one.
                parts.append(self.random.choice([b"\r\na part without a header\r\n", b"Content-Type: text/plain\r\n", b"", b"Content-Type: ;\r\n\r\nodd type\r\n"]))
            else:
                fields, body = self.body(depth - 1)
                parts.append(fields + b"\r\n" + body)
        border = f"--{boundary}".encode()
        space = self.random.choice([b"", b"", b"", b" ", b"\t "])
        text = b"preamble is not text\r\n" + b"".join(border + space + b"\r\n" + part + b"\r\n" for part in parts)
        if self.maybe(0.95):
            text += border + b"--\r\nepilogue\r\n"
        named = f"\"{boundary}\""
        if self.maybe(0.02):
            # The boundary that is named is another one, or none is.
            named = self.random.choice(["\"other\"", "\"\""])
        return f"Content-Type: multipart/{subtype};\r\n boundary={named}\r\n".encode(), text

    def message(self, number, depth=2):
        fields, body = self.body(depth)
        return self.header(number) + b"MIME-Version: 1.0\r\n" + fields + b"\r\n" + body
