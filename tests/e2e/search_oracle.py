"""What SEARCH finds, by the rules of docs/search.md and nothing of the program under test: MIME, character sets (Python's codecs), HTML
and case folding (Python's unicodedata) are undone here once more.

What no standard decides is left open: octets that are not of their character set, a Date that RFC 5322 has no form for, uuencode. A
message that has such in a place that a key looks into is neither a hit nor a miss for the oracle.
"""

import codecs
import datetime
import html.entities
import re
import unicodedata

# Between texts: no needle has it.
BORDER = "\U0010fffe"
WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


# ---- folding ------------------------------------------------------------------------------------------------

class Folding(dict):
    """Each character by itself: compatibility decomposition, then case (RFC 5051), for str.translate."""

    def __missing__(self, code):
        folded = "".join(
            unicodedata.normalize("NFKD", last)
            for piece in unicodedata.normalize("NFKD", chr(code))
            for lower in piece.lower()
            for upper in lower.upper()
            for last in upper.lower())
        self[code] = folded
        return folded


FOLDING = Folding()


def fold(text):
    return text.translate(FOLDING)


# ---- character sets -----------------------------------------------------------------------------------------

class Unsure(Exception):
    """The octets are not of the character set that they claim."""


# By what mail says, in lower case with hyphens: labels of the WHATWG Encoding Standard and names that are none. Python's codec.
CODECS = {
    label: codec
    for codec, labels in {
        "cp1252": "iso-8859-1 latin1 l1 windows-1252 iso8859-1 iso-88591 8859-1 x-cp1252 cp1252 windows1252 win-1252 cp819 iso-8859-1:1987",
        "cp1254": "iso-8859-9 latin5 l5 iso8859-9", "cp874": "iso-8859-11 tis-620 windows-874 dos-874 cp874",
        "iso8859-2": "iso-8859-2 latin2 l2 iso8859-2", "iso8859-15": "iso-8859-15 iso8859-15 l9", "iso8859-8": "iso-8859-8-i logical",
        "koi8-r": "koi8-r koi8 koi cskoi8r cp20866", "koi8-u": "koi8-u koi8-ru",
        "gb18030": "gb2312 gbk x-gbk gb-2312-80 gb18030 cp936 chinese csgb2312 iso-ir-58",
        "cp949": "ks-c-5601-1987 ks-c-5601 euc-kr ksc5601 korean windows-949 ms949 cp949 cseuckr",
        "cp932": "shift-jis x-sjis sjis ms-kanji windows-31j cp932 ms932", "euc_jp": "euc-jp x-euc-jp",
        # What the WHATWG calls Big5 has the characters of Hong Kong, and the kana where ETen put them, at C6E7. Python's big5 and cp950
        # have the kana of another vendor at C6A5.
        "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5 csbig5 cp950",
        "utf-7": "utf-7 unicode-1-1-utf-7 x-unicode-1-1-utf-7", "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
        "iso2022_jp": "iso-2022-jp csiso2022jp", "hz": "hz-gb-2312 hz", "iso2022_kr": "iso-2022-kr csiso2022kr",
        "utf-16-le": "utf-16 utf-16le", "utf-16-be": "utf-16be", "mac_roman": "macintosh", "mac_cyrillic": "x-mac-cyrillic",
        "cp866": "ibm866 cp866 866", "cp437": "ibm437 cp437 cspc8codepage437", "cp850": "ibm850 cp850 850", "cp852": "ibm852 cp852",
        "cp857": "ibm857 cp857", "cp858": "ibm858 cp858",
    }.items()
    for label in labels.split()
}
GUESSED = {"", "us-ascii", "ascii", "ansi-x3.4-1968", "us", "646", "iso646-us"}
# Known to Python, not to us, and of no use to mail: what they label is guessed.
UNKNOWN = {"iso-2022-cn", "iso-2022-cn-ext"}

# Where Python's tables have another character than the WHATWG Encoding Standard.
JIS = str.maketrans({0x301c: 0xff5e, 0x2212: 0xff0d, 0x2016: 0x2225, 0xa2: 0xffe0, 0xa3: 0xffe1, 0xac: 0xffe2})
DIFFERENT = {
    "iso2022_jp": JIS, "euc_jp": JIS, "koi8-u": str.maketrans({0x255d: 0x45e, 0x256c: 0x40e}),
    "big5hkscs": str.maketrans({0x2022: 0x2027, 0xff64: 0xfe51, 0x203e: 0xaf, 0x223c: 0xff5e, 0x2641: 0x2295, 0x2609: 0x2299, 0xa5: 0xffe5,
                                0xa2: 0xffe0, 0xa3: 0xffe1}),
}
# Characters that stand for several in Python's tables, or are private to them.
UNCLEAR = {"big5hkscs": re.compile("[\uff0f\uff3c]"), "gb18030": re.compile("[\ue000-\uf8ff]"), "euc_jp": re.compile("~")}


def windows_1252(octets):
    """With the five octets that have no character as controls, as the WHATWG has it."""
    return "".join(chr(octet) if octet in (0x81, 0x8d, 0x8f, 0x90, 0x9d) else bytes([octet]).decode("cp1252") for octet in octets)


def codec_of(label):
    """A codec's name; None: to be guessed."""
    name = re.split(r"[;\" \t(',*]", label.strip(" \t\r\n\"").lower())[0].replace("_", "-")
    if name in GUESSED or name in UNKNOWN:
        return None
    if name in CODECS:
        return CODECS[name]
    windows = re.fullmatch(r"(?:x-)?(?:cp|windows-?|win-?|ms)(125\d)", name)
    if windows:
        return "cp" + windows[1]
    part = re.fullmatch(r"iso-?8859-?(\d+)(?:-[ie])?", name)
    if part:
        return "iso8859-" + part[1]
    try:
        codecs.lookup(name)
    except LookupError:
        return None
    # Known to Python: whether to us as well is not for a guess.
    raise Unsure(name)


MARKS = {b"\xfe\xff": "utf-16-be", b"\xff\xfe": "utf-16-le", b"\xef\xbb\xbf": "utf-8"}


def decode(label, octets, by_prefix=False):
    """Octets of a character set as text. A guess is UTF-8 when all of it is valid, else windows-1252; with `by_prefix` UTF-8 as far as
    it is valid, and a byte order mark goes before what a label says."""
    codec = codec_of(label)
    if codec is None:
        try:
            return octets.decode("utf-8")
        except UnicodeDecodeError as error:
            valid = error.start if by_prefix else 0
            return octets[:valid].decode("utf-8") + windows_1252(octets[valid:])
    mark = next((mark for mark in MARKS if octets.startswith(mark)), None)
    if mark and codec not in ("utf-7", "hz", "iso2022_kr", "cp437", "cp850", "cp852", "cp857", "cp858"):
        if not by_prefix:
            raise Unsure("a byte order mark in a header")
        codec, octets = MARKS[mark], octets[len(mark):]
    if codec == "cp1252":
        return windows_1252(octets)
    if codec == "utf-8":
        # What is valid does not depend on what is not; how many U+FFFD that becomes nobody promises, and no needle has one.
        return octets.decode(codec, "replace")
    try:
        text = octets.decode(codec)
    except UnicodeError as error:
        raise Unsure(codec) from error
    if codec in UNCLEAR and UNCLEAR[codec].search(text):
        raise Unsure(codec)
    return text.translate(DIFFERENT.get(codec, {}))


# ---- header -------------------------------------------------------------------------------------------------

WORD = re.compile(rb"=\?([!->@-~]{1,64})\?([bBqQ])\?")
# Character sets with shifts: each word begins in the initial state (RFC 2047 §3).
SHIFTED = ("iso2022_jp", "iso2022_kr", "utf-7", "hz")


def base64_octets(text):
    """Whatever is not of the alphabet is passed over; padding ends a group."""
    out = bytearray()
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for group in re.sub(rb"[^A-Za-z0-9+/=]", b"", text).split(b"="):
        whole = len(group) // 4 * 4
        rest = group[whole:]
        if len(rest) == 1:
            rest = b""
        out += codecs.decode(group[:whole] + (rest + b"==="[:4 - len(rest)] if rest else b""), "base64")
    assert len(alphabet) == 64
    return bytes(out)


def q_octets(text):
    return re.sub(rb"=([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), text.replace(b"_", b" "))


def unfold(value):
    """RFC 5322 §2.2.3; a line end that no white space follows is a blank."""
    return re.sub(rb"\r?\n(?=[^ \t])", b" ", re.sub(rb"\r?\n(?=[ \t]|$)", b"", value)) if b"\n" in value else value


def header_value(value):
    """RFC 2047: a value as text, white space around it included."""
    value = unfold(value)
    out, waiting = [], None
    done = at = 0

    def flush():
        nonlocal waiting
        if waiting:
            out.append(decode(waiting[0], waiting[1]))
        waiting = None

    while True:
        found = WORD.search(value, at)
        if not found:
            break
        end = value.find(b"?=", found.end())
        body = value[found.end():end]
        if end < 0 or b"=?" in body:
            at = found.start() + 2
            continue
        octets = q_octets(body) if found[2] in b"qQ" else base64_octets(body)
        charset = found[1].decode().split("*")[0].lower()
        between = value[done:found.start()]
        adjacent = waiting is not None and not between.strip(b" \t\r\n\x0c")
        if adjacent and waiting[0] == charset and codec_of(charset) not in SHIFTED:
            waiting = (charset, waiting[1] + octets)
        else:
            flush()
            if not adjacent:
                out.append(decode("", between))
            waiting = (charset, octets)
        done = at = end + 2
    flush()
    out.append(decode("", value[done:]))
    return "".join(out)


class Field:
    def __init__(self, name, value):
        self.name, self.value = name, value

    def text(self):
        return header_value(self.value).strip(WHITE)

    def extended(self):
        """RFC 2231: what is said in the extended form, as `name=value`."""
        if self.name.lower() not in (b"content-type", b"content-disposition") or b"*" not in self.value:
            return []
        pieces = {}
        for name, value in parameters(unfold(self.value))[2]:
            found = re.fullmatch(rb"(.+?)(?:\*(\d+))?(\*)?", name)
            if found[2] is None and found[3] is None:
                continue
            if found[2] is None:
                pieces.setdefault(found[1], []).append((0, True, value))
            else:
                pieces.setdefault(found[1], []).append((int(found[2]), found[3] is not None, value))
        texts = []
        for name, parts in pieces.items():
            parts.sort(key=lambda part: part[0])
            if not any(extended for _, extended, _ in parts):
                continue
            if not parts[0][1] or parts[0][2].count(b"'") < 2:
                raise Unsure("RFC 2231")
            charset, _, first = parts[0][2].split(b"'", 2)
            octets = b""
            for number, (_, extended, value) in enumerate(parts):
                value = first if number == 0 else value
                octets += re.sub(rb"%([0-9A-Fa-f]{2})", lambda hit: bytes([int(hit[1], 16)]), value) if extended else value
            texts.append(f"{name.decode()}={decode(charset.decode(), octets)}")
        return texts


TOKEN = rb"[^\x00- \x7f()<>@,;:\\\"/\[\]?=]+"


def parameters(value):
    """Type, subtype and parameters as written of a Content-Type and its like, comments left out."""
    value = re.sub(rb"(\"(?:[^\"\\]|\\.)*\")|\((?:[^()\\]|\\.)*\)", lambda found: found[1] or b" ", value)
    head = re.match(rb"\s*(" + TOKEN + rb")?\s*(?:/\s*(" + TOKEN + rb")?)?", value)
    found = []
    for piece in re.finditer(
            rb"(" + TOKEN + rb")\s*=\s*(?:\"((?:\\[\\\"]|[^\"])*)(?:\"|$)|((?:[^;\s]|\s+(?=" + TOKEN + rb"(?!\s*=)))*))", value[head.end():]):
        quoted = piece[2] is not None
        text = re.sub(rb"\\([\\\"])", rb"\1", piece[2]) if quoted else piece[3]
        found.append((piece[1], text))
    return (head[1] or b"").lower(), None if head[2] is None else head[2].lower(), found


def fields_of(block):
    """The fields of a header: lines that are none are passed over with their continuations."""
    fields = []
    for item in re.findall(rb"[^\n]*\n(?:[ \t][^\n]*\n)*|[^\n]+(?:\n[ \t][^\n]*)*\Z", block):
        found = re.match(rb"([^\x00- \x7f:]+)[ \t\r\n\x0c]*:", item)
        if found:
            fields.append(Field(found[1], re.sub(rb"\r?\n\Z", b"", item[found.end():])))
    return fields


def first(fields, name):
    return next((field.value for field in fields if field.name.lower() == name), None)


# ---- structure ----------------------------------------------------------------------------------------------

class Parser:
    """The leaves and the nested headers of a message, in its order."""

    def __init__(self, message):
        self.message = message
        self.starts = [0] + [found.end() for found in re.finditer(rb"\n", message)]
        if self.starts[-1] == len(message):
            self.starts.pop()
        self.starts.append(len(message))
        # What was found: ("header", octets), ("part header", octets), ("leaf", type, subtype, charset, encoding, octets).
        self.found = []
        self.open = []
        self.entity(0, (b"text", b"plain"), "header")

    def line(self, number):
        return self.message[self.starts[number]:self.starts[number + 1]]

    @property
    def lines(self):
        return len(self.starts) - 1

    def delimiter(self, number):
        """Which open multipart the line delimits, and whether it closes it."""
        line = self.line(number)
        if not line.startswith(b"--") or not self.open:
            return None
        best = None
        for index, boundary in enumerate(self.open):
            if boundary is not None and line.startswith(boundary, 2) and (best is None or len(boundary) >= len(self.open[best])):
                best = index
        return None if best is None else (best, line.startswith(b"--", 2 + len(self.open[best])))

    def body(self, start, end_line):
        """The octets from `start` to a delimiter's line: the line end before it is the delimiter's."""
        end = self.starts[end_line]
        if end_line < self.lines:
            end -= 2 if self.message[:end].endswith(b"\r\n") else 1
        return self.message[start:max(start, end)]

    def entity(self, at, default, place):
        """A part or message whose header begins in line `at`; gives the line where it ends."""
        start = at
        while at < self.lines and self.delimiter(at) is None and self.line(at) not in (b"\n", b"\r\n"):
            at += 1
        block = self.message[self.starts[start]:self.starts[at]]
        if at < self.lines and self.delimiter(at) is None:
            at += 1
        self.found.append((place, block))
        fields = fields_of(block)
        kind, subtype, values = default + ([],)
        value = first(fields, b"content-type")
        if value is not None:
            kind, subtype, values = parameters(unfold(value))
            if kind == b"multipart" and subtype is None:
                subtype = b"mixed"
            if not kind or not subtype:
                values = values if kind == b"text" else []
                kind, subtype = b"text", b"plain"
        encoding = parameters(unfold(first(fields, b"content-transfer-encoding") or b""))[0]
        charset = next((value for name, value in values if name.lower() == b"charset"), b"")
        for name, value in values:
            if name.lower().startswith((b"charset*", b"boundary*")):
                raise Unsure("RFC 2231")
        if kind == b"multipart":
            boundary = next((value.rstrip() for name, value in values if name.lower() == b"boundary"), b"")
            if boundary:
                return self.multipart(at, boundary, subtype)
            kind, subtype, charset = b"text", b"plain", b""
        if kind == b"message" and subtype in (b"rfc822", b"global"):
            return self.entity(at, (b"text", b"plain"), "nested header")
        body_start = self.starts[at]
        while at < self.lines and self.delimiter(at) is None:
            at += 1
        self.found.append(("leaf", kind, subtype, charset, encoding, self.body(body_start, at)))
        return at

    def multipart(self, at, boundary, subtype):
        index = len(self.open)
        self.open.append(boundary)
        body_start, has_parts = self.starts[at], False
        while at < self.lines:
            delimiter = self.delimiter(at)
            if delimiter is None:
                at += 1
            elif delimiter[0] < index:
                break
            elif delimiter[1]:
                self.open[index] = None
                at += 1
            elif at + 1 == self.lines:
                at += 1
            else:
                has_parts = True
                default = (b"message", b"rfc822") if subtype == b"digest" else (b"text", b"plain")
                at = self.entity(at + 1, default, "part header")
        del self.open[index:]
        if not has_parts:
            self.found.append(("leaf", b"text", b"plain", b"", b"", self.body(body_start, at)))
        return at


def transfer_decoded(encoding, octets):
    if encoding == b"base64":
        return base64_octets(octets)
    if encoding == b"quoted-printable":
        def piece(found):
            return bytes([int(found[1], 16)]) if found[1] else found[2] or b""
        return re.sub(rb"=(?:([0-9A-Fa-f]{2})|[ \t]*(?:\r?\n|\r?\Z))|[ \t]+(\r?\n|\r?\Z)", piece, octets)
    if b"uu" in encoding:
        raise Unsure("uuencode")
    return octets


# ---- HTML ---------------------------------------------------------------------------------------------------

SEPARATING = set("""address article aside blockquote body br caption center dd div dl dt fieldset figcaption figure footer form h1 h2 h3
h4 h5 h6 head header hr html legend li main nav ol option p pre section table td th title tr ul textarea""".split())
TAG = re.compile(r"<(/?[a-zA-Z][^> \t\n\x0c\r/]*|/[^> \t\n\x0c\r/]*)")
RAW_END = {name: re.compile(rf"</{name}[^<>]*>", re.IGNORECASE) for name in ("script", "style")}
REFERENCE = re.compile(r"&([a-zA-Z0-9#]{0,32})(;?)")


def character(name):
    """The character of a reference; None when it is none."""
    number = re.fullmatch(r"#(?:[xX]([0-9a-fA-F]+)|([0-9]+))", name)
    if number:
        code = int(number[1], 16) if number[1] else int(number[2])
        if 128 <= code < 160:
            return windows_1252(bytes([code]))
        return chr(code) if 0 < code < 0x110000 and not 0xd800 <= code < 0xe000 else None
    if name == "apos":
        return "'"
    code = html.entities.name2codepoint.get(name)
    return None if code is None else chr(code)


def html_text(source):
    """Markup out, references resolved, white space as it is shown."""
    pieces, at = [], 0
    while at < len(source):
        here = source[at]
        if here == "<":
            tag = TAG.match(source, at)
            if tag:
                name, at = tag[1].lower(), after_tag(source, tag.end())
                if name.lstrip("/") in SEPARATING or name[1:] in SEPARATING and name.startswith("/"):
                    pieces.append(BORDER)
                if name in RAW_END:
                    end = RAW_END[name].search(source, at)
                    at = end.end() if end else len(source)
            elif source.startswith(("<!", "<?"), at):
                end = source.find("-->", at + 4) if source.startswith("--", at + 2) else source.find(">", at)
                length = 3 if source.startswith("--", at + 2) else 1
                at = end + length if end >= 0 else len(source)
            else:
                pieces.append("<")
                at += 1
        elif here == "&":
            found = REFERENCE.match(source, at)
            pieces.append(character(found[1]) or found[0])
            at = found.end()
        else:
            end = min((end for end in (source.find("<", at), source.find("&", at)) if end >= 0), default=len(source))
            pieces.append(source[at:end])
            at = end
    text = "".join(pieces)
    gap = f"[{WHITE}{BORDER}]+"
    text = re.sub(gap, lambda found: "\n" if BORDER in found[0] else " ", text)
    return text.strip(" \n")


def after_tag(source, at):
    """Behind the tag: quotes count for values only."""
    while at < len(source) and source[at] != ">":
        if source[at] != "=":
            at += 1
            continue
        at += 1
        while at < len(source) and source[at] in " \t\n\x0c\r":
            at += 1
        if source[at:at + 1] in ('"', "'"):
            end = source.find(source[at], at + 1)
            at = len(source) if end < 0 else end + 1
        elif source[at:at + 1] != ">":
            at += 1
    return at + 1


# ---- a message ----------------------------------------------------------------------------------------------

# RFC 5322 §3.3 and §4.3: what is behind the year does not count for SENT keys, but must be a time.
DATE = re.compile(r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s*,\s*)?(\d{1,2})\s+([A-Za-z]{3})\s+(\d{2,4})\s+\d\d:\d\d(?::\d\d)?\s+(?:[-+]\d{4}|[A-Z]{1,3})"
                  r"(?:\s+\((?:[\w ]|\([\w ]*\))*\))?")
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Message:
    """The texts of a message, folded; None where no standard says what they are."""

    def __init__(self, raw):
        self.size = len(raw)
        self.fields = []
        self.header = self.body = None
        self.originals = []
        header, body = [], []
        try:
            parser = Parser(raw)
        except Unsure:
            parser = None
        own = fields_of(parser.found[0][1] if parser else re.split(rb"(?<=\n)\r?\n", raw, maxsplit=1)[0])
        for field in own:
            self.fields.append((field.name.lower().decode("latin-1"), self.field_texts(field)))
        self.day = self.sent_day(own)
        if parser is None:
            return
        for place, *what in parser.found:
            texts = header if place in ("header", "part header") else body
            try:
                if place == "leaf":
                    self.leaf(texts, *what)
                else:
                    for field in fields_of(what[0]):
                        texts.append(f"{header_value(field.name)}: {field.text()}")
                        texts += field.extended()
            except Unsure:
                texts.append(None)
        self.originals = [text for text in header + body if text]
        self.header, self.body = self.joined(header), self.joined(body)

    @staticmethod
    def joined(texts):
        return None if None in texts else fold(BORDER.join(texts))

    @staticmethod
    def field_texts(field):
        try:
            return fold(BORDER.join([field.text(), *field.extended()]))
        except Unsure:
            return None

    @staticmethod
    def leaf(texts, kind, subtype, charset, encoding, octets):
        if kind not in (b"text", b"message"):
            return
        text = decode(charset.decode("latin-1"), transfer_decoded(encoding, octets), by_prefix=True)
        texts.append(html_text(text) if (kind, subtype) == (b"text", b"html") else text)

    @staticmethod
    def sent_day(fields):
        """None: there is no date; Ellipsis: not one that RFC 5322 has a form for."""
        value = first(fields, b"date")
        if value is None:
            return None
        found = DATE.fullmatch(unfold(value).decode("latin-1").strip())
        month = found and found[2].title()
        if not found or month not in MONTHS:
            return ...
        # RFC 5322 §4.3: two digits are of 1950 to 2049, three are years after 1900.
        year = int(found[3])
        year += {2: 2000 if year < 50 else 1900, 3: 1900, 4: 0}[len(found[3])]
        try:
            return datetime.date(year, MONTHS.index(month) + 1, int(found[1]))
        except ValueError:
            return ...

    def has(self, place, needle):
        """Whether a folded needle is there: True, False or None for nobody knows."""
        if not needle:
            return True
        texts = (self.body,) if place == "body" else (self.header, self.body)
        if any(text is not None and needle in text for text in texts):
            return True
        return None if None in texts else False

    def has_field(self, name, needle):
        texts = [text for field, text in self.fields if field == name]
        if not needle:
            return bool(texts)
        if any(text is not None and needle in text for text in texts):
            return True
        return None if None in texts else False
