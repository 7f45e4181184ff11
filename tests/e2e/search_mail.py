"""Mail in many languages and forms, made from a seed: character sets, encodings that split characters, words and lines, markup with
references, encoded words, RFC 2231 names, reports and messages inside messages.
"""

import base64
import html
import html.entities
import random

# Sentences, and the character sets that have all of their letters.
LANGUAGES = [
    ("Die Straße nach Köln führt über grüne Hügel; größte Änderung: Übermut tut selten gut.",
     ["iso-8859-1", "iso-8859-15", "windows-1252", "utf-8", "utf-7"]),
    ("Où est passé l'été ? Le cœur a ses raisons… « garçon, un café déjà payé »", ["windows-1252", "utf-8", "utf-7"]),
    ("Zażółć gęślą jaźń, a potem ŁÓDŹ i źdźbło trawy.", ["iso-8859-2", "windows-1250", "utf-8"]),
    ("Съешь же ещё этих мягких французских булок, да выпей чаю. ОТПУСК", ["koi8-r", "windows-1251", "iso-8859-5", "utf-8", "utf-7"]),
    ("Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός. ΣΊΣΥΦΟΣ", ["windows-1253", "iso-8859-7", "utf-8"]),
    ("Pijamalı hasta yağız şoföre çabucak güvendi. IĞDIR İSTANBUL", ["iso-8859-9", "windows-1254", "utf-8"]),
    ("עטלף אבק נס דרך מזגן שהתפוצץ כי חם", ["windows-1255", "iso-8859-8", "utf-8"]),
    ("نص حكيم له سر قاطع وذو شأن عظيم", ["windows-1256", "iso-8859-6", "utf-8"]),
    ("Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą", ["windows-1257", "iso-8859-13", "utf-8"]),
    ("日本語の手紙です。東京は今日も雨でした、カタカナとひらがな。", ["iso-2022-jp", "shift_jis", "euc-jp", "utf-8", "gb18030"]),
    ("敏捷的棕色狐狸跳过懒狗。我们明天在北京见面,好吗?", ["gb18030", "gb2312", "hz-gb-2312", "utf-8"]),
    ("我們明天在臺北見面,請帶文件。", ["big5", "utf-8", "gb18030"]),
    ("키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.", ["euc-kr", "utf-8", "iso-2022-kr"]),
    ("Mixed 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁne ℌello Ⅷ ½ naïve 🙂 ﬀ Ǆungla e\u0301te\u0301", ["utf-8", "gb18030", "utf-7"]),
    ("Plain words of every day: free money, happy hour, the end of the world.", ["us-ascii", "utf-8", "iso-8859-1", "utf-7"]),
]
PYTHON = {"hz-gb-2312": "hz", "iso-2022-jp": "iso2022_jp", "shift_jis": "cp932", "euc-jp": "euc_jp", "iso-2022-kr": "iso2022_kr",
          "gb2312": "gb2312", "euc-kr": "euc_kr"}
BLOCKS = ["p", "div", "td", "li", "b", "i", "span", "a href=\"http://x.example/?a=1&b=<>\"", "br/", "h2", "font color=red"]


def encode(text, charset):
    return text.encode(PYTHON.get(charset, charset))


class Mail:
    """One message after the other from a random number generator."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def sentence(self):
        """Some text and a character set for it."""
        text, charsets = self.random.choice(LANGUAGES)
        words = text.split(" ")
        start = self.random.randrange(len(words))
        words = words[start:] + words[:start]
        text = " ".join(words[:self.random.randrange(1, len(words) + 1)])
        if self.random.random() < 0.15:
            text = text.upper() if "ß" not in text else text
        charset = self.random.choice(charsets)
        try:
            encode(text, charset)
        except UnicodeEncodeError:
            charset = "utf-8"
        return text, charset

    def transfer(self, octets, charset):
        """Octets in an encoding that carries them, cut anywhere; its name."""
        kinds = ["base64", "quoted-printable"]
        if charset.startswith(("iso-2022", "utf-7", "hz", "us-ascii")):
            kinds.append("7bit")
        elif b"\n--" not in octets:
            kinds.append("8bit")
        kind = self.random.choice(kinds)
        if kind == "base64":
            width = self.random.choice([60, 72, 76, 40])
            text = base64.b64encode(octets)
            return kind, b"\r\n".join(text[at:at + width] for at in range(0, len(text), width)) + b"\r\n"
        if kind == "quoted-printable":
            return kind, self.quoted(octets)
        return kind, octets

    def quoted(self, octets):
        """With soft line breaks in the middle of words and characters, and white space that is dropped."""
        out = bytearray()
        column, limit = 0, self.random.randrange(20, 76)
        for line in octets.split(b"\r\n"):
            for octet in line:
                token = b"=%02X" % octet if octet > 126 or octet < 32 or octet == 61 or self.random.random() < 0.02 else bytes([octet])
                if column + len(token) > limit:
                    out += b"=\r\n" if self.random.random() < 0.8 else b"=  \r\n"
                    column = 0
                out += token
                column += len(token)
            if out[-1:] == b" ":
                out[-1:] = b"=20"
            out += b"  \r\n" if self.random.random() < 0.1 else b"\r\n"
            column = 0
        return bytes(out)

    def paragraphs(self):
        """Several lines in one character set."""
        text, charset = self.sentence()
        lines = [text]
        for _ in range(self.random.randrange(6)):
            more = self.sentence()[0]
            try:
                # Python and the WHATWG have different places for kana in Big5.
                encode(more, "ascii" if charset == "big5" else charset)
            except UnicodeEncodeError:
                more = text[: self.random.randrange(len(text) + 1)]
            lines.append(more)
        # Lines that break inside sentences.
        words = " ".join(lines).split(" ")
        out = ""
        for word in words:
            out += word + self.random.choice([" ", " ", " ", " ", "\r\n", "  ", "\t"])
        return out + "\r\n", charset

    def leaf(self):
        """A part: (header fields, body)."""
        text, charset = self.paragraphs()
        subtype = "plain"
        if self.random.random() < 0.35:
            subtype, text = "html", self.markup(text)
            try:
                encode(text, charset)
            except UnicodeEncodeError:
                charset = "utf-8"
        encoding, body = self.transfer(encode(text, charset), charset)
        label = charset.upper() if self.random.random() < 0.3 else charset
        quote = self.random.choice(['"', ""])
        fields = f"Content-Type: text/{subtype}; charset={quote}{label}{quote}\r\nContent-Transfer-Encoding: {encoding}\r\n"
        if self.random.random() < 0.2:
            fields += self.named_file()
        return fields.encode(), body

    def markup(self, text):
        pieces = []
        for word in text.split(" "):
            word = html.escape(word, quote=False)
            if self.random.random() < 0.2:
                word = "".join(self.reference(letter) for letter in word)
            if self.random.random() < 0.3 and "\r\n" not in word:
                block = self.random.choice(BLOCKS)
                word = f"<{block}>{word}</{block.split()[0].rstrip('/')}>"
            if self.random.random() < 0.05:
                word += self.random.choice(["<!-- not > this -->", "<style>p { x }</style>", "<script>if (a<b) '</p>'</script>", "&nbsp;", "<br>"])
            if self.random.random() < 0.1 and len(word) > 4 and word.isalpha():
                word = word[:3] + "<b>" + word[3:] + "</b>"
            pieces.append(word)
        return "<html><body>" + " ".join(pieces) + "</body></html>\r\n"

    def reference(self, letter):
        if not letter.isalpha() or self.random.random() < 0.5:
            return letter
        name = html.entities.codepoint2name.get(ord(letter))
        if name and self.random.random() < 0.5:
            return f"&{name};"
        return f"&#{ord(letter)};" if self.random.random() < 0.5 else f"&#x{ord(letter):X};"

    def named_file(self):
        text, _ = self.sentence()
        octets = text[:24].strip().encode()
        name = "".join(chr(octet) if chr(octet).isascii() and chr(octet).isalnum() else f"%{octet:02X}" for octet in octets)
        cut = self.random.randrange(len(name) + 1)
        if self.random.random() < 0.5 and "%" not in name[max(0, cut - 2):cut]:
            return f"Content-Disposition: attachment;\r\n filename*0*=utf-8''{name[:cut]};\r\n filename*1*={name[cut:]}\r\n"
        return f"Content-Disposition: attachment; filename*=UTF-8'en'{name}\r\n"

    def phrase(self):
        """A header value: encoded words, of which one character may be split over two."""
        text, charset = self.sentence()
        text = text[:40]
        kind = self.random.random()
        if kind < 0.15 and text.isascii():
            return text
        if kind < 0.25:
            return text.encode().decode("latin-1") if charset == "utf-8" else text.encode("ascii", "replace").decode()
        octets = encode(text, charset)
        words = []
        if charset.startswith(("iso-2022", "utf-7", "hz")):
            chunks = [encode(text[at:at + 9], charset) for at in range(0, len(text), 9)]
        else:
            size = self.random.randrange(5, 30)
            chunks = [octets[at:at + size] for at in range(0, len(octets), size)]
        for chunk in chunks:
            if self.random.random() < 0.5:
                words.append(f"=?{charset}?B?{base64.b64encode(chunk).decode()}?=")
            else:
                coded = "".join(chr(octet) if chr(octet).isascii() and chr(octet).isalnum() else "_" if octet == 32 else f"={octet:02X}" for octet in chunk)
                words.append(f"=?{charset.upper()}?q?{coded}?=")
        return "\r\n ".join(words) if self.random.random() < 0.7 else " ".join(words)

    def header(self, number):
        day, month = self.random.randrange(1, 29), self.random.choice("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split())
        zone = self.random.choice(["+0000", "-0800", "+0930", "+0200"])
        lines = [
            f"Date: {day} {month} {self.random.randrange(1999, 2006)} {self.random.randrange(24):02}:30:00 {zone}",
            f"From: {self.phrase()} <writer{self.random.randrange(30)}@example.org>",
            f"To: {self.phrase()} <reader{self.random.randrange(30)}@example.net>",
            f"Subject: {self.phrase()}",
            f"Message-ID: <{number}.{self.random.randrange(10**9)}@example.org>",
        ]
        if self.random.random() < 0.3:
            lines.append(f"Cc: {self.phrase()} <copy@example.com>")
        if self.random.random() < 0.1:
            lines.append(f"Bcc: {self.phrase()} <blind@example.com>")
        if self.random.random() < 0.3:
            lines.append(f"X-Note: {self.phrase()}")
        if self.random.random() < 0.1:
            lines.append("X-Empty:")
        self.random.shuffle(lines)
        return "\r\n".join(lines).encode("latin-1") + b"\r\n"

    def body(self, depth=2):
        """(MIME fields, body)."""
        kind = self.random.random()
        if depth == 0 or kind < 0.5:
            return self.leaf()
        if kind < 0.6:
            return b"Content-Type: message/rfc822\r\n", self.message(self.random.randrange(10**6), depth - 1)
        boundary = f"=_{self.random.randrange(10**9)}"
        subtype = self.random.choice(["mixed", "alternative", "report", "digest"])
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            if subtype == "digest":
                parts.append(b"\r\n" + self.message(self.random.randrange(10**6), depth - 1))
            elif subtype == "report" and self.random.random() < 0.5:
                report = f"Reporting-MTA: dns; mx{self.random.randrange(9)}.example.org\r\n\r\nFinal-Recipient: rfc822; gone{self.random.randrange(99)}@example.org\r\n" \
                         "Action: failed\r\nStatus: 5.1.1\r\n"
                parts.append(b"Content-Type: message/delivery-status\r\n\r\n" + report.encode())
            elif self.random.random() < 0.15:
                parts.append(b"Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n\r\n" + base64.b64encode(b"not searched") + b"\r\n")
            else:
                fields, body = self.body(depth - 1)
                parts.append(fields + b"\r\n" + body)
        border = f"--{boundary}".encode()
        text = b"preamble is not text\r\n" + b"".join(border + b"\r\n" + part + b"\r\n" for part in parts) + border + b"--\r\nepilogue\r\n"
        return f"Content-Type: multipart/{subtype};\r\n boundary=\"{boundary}\"\r\n".encode(), text

    def message(self, number, depth=2):
        fields, body = self.body(depth)
        return self.header(number) + b"MIME-Version: 1.0\r\n" + fields + b"\r\n" + body
