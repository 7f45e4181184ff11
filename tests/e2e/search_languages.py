"""Sentences in many languages, the character sets that have all of their letters, and the names that mail gives those sets."""

# Sentences, and the character sets that have all of their letters.
LANGUAGES = [
    ("Die Straße nach Köln führt über grüne Hügel; größte Änderung: Übermut tut selten gut.",
     ["iso-8859-1", "iso-8859-15", "windows-1252", "utf-8", "utf-7", "macintosh", "ibm437", "ibm850", "utf-16"]),
    ("Où est passé l'été ? Le cœur a ses raisons… « garçon, un café déjà payé »", ["windows-1252", "utf-8", "utf-7", "macintosh"]),
    ("Zażółć gęślą jaźń, a potem ŁÓDŹ i źdźbło trawy.", ["iso-8859-2", "windows-1250", "utf-8", "ibm852", "iso-8859-16"]),
    ("Съешь же ещё этих мягких французских булок, да выпей чаю. ОТПУСК",
     ["koi8-r", "windows-1251", "iso-8859-5", "utf-8", "utf-7", "ibm866", "koi8-u", "x-mac-cyrillic", "utf-16be"]),
    ("Ґава їсть борщ, а єнот її питає: де мій ґудзик? ЇЖАК", ["koi8-u", "windows-1251", "utf-8"]),
    ("Ταχίστη αλώπηξ βαφής ψημένη γη, δρασκελίζει υπέρ νωθρού κυνός. ΣΊΣΥΦΟΣ", ["windows-1253", "iso-8859-7", "utf-8"]),
    ("Pijamalı hasta yağız şoföre çabucak güvendi. IĞDIR İSTANBUL", ["iso-8859-9", "windows-1254", "utf-8", "ibm857", "iso-8859-3"]),
    ("עטלף אבק נס דרך מזגן שהתפוצץ כי חם", ["windows-1255", "iso-8859-8", "utf-8", "iso-8859-8-i"]),
    ("نص حكيم له سر قاطع وذو شأن عظيم", ["windows-1256", "iso-8859-6", "utf-8"]),
    ("Įlinkdama fechtuotojo špaga sublykčiojusi pragręžė apvalų arbūzą", ["windows-1257", "iso-8859-13", "utf-8", "iso-8859-4"]),
    ("Do bạch kim rất quý nên sẽ dùng để lắp vô xương", ["utf-8", "utf-16le"]),
    ("Þetta er íslenskur texti með æ, ö og ð. ÁÐUR", ["iso-8859-10", "iso-8859-1", "utf-8", "ibm858"]),
    ("เป็นมนุษย์สุดประเสริฐเลิศคุณค่า", ["windows-874", "iso-8859-11", "utf-8"]),
    ("日本語の手紙です。東京は今日も雨でした、カタカナとひらがな。", ["iso-2022-jp", "shift_jis", "euc-jp", "utf-8", "gb18030", "utf-16"]),
    # Wave dash, double bar and minus: where tables of JIS X 0208 differ.
    ("東京〜大阪‖三−一の予約を変更しました。", ["iso-2022-jp", "euc-jp", "utf-8"]),
    ("敏捷的棕色狐狸跳过懒狗。我们明天在北京见面,好吗?", ["gb18030", "gb2312", "hz-gb-2312", "utf-8"]),
    ("我們明天在臺北見面,請帶文件。", ["big5", "utf-8", "gb18030"]),
    # Kana, circled figures and Hong Kong's own characters: where tables of Big5 differ.
    ("日本語ひらがなとカタカナ、我哋喺香港食嘢。①②ⅠⅡ•∼", ["big5", "big5", "utf-8"]),
    ("키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.", ["euc-kr", "utf-8", "iso-2022-kr"]),
    ("Mixed 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁne ℌello Ⅷ ½ naïve 🙂 ﬀ Ǆungla e\u0301te\u0301 soft\u00adhyphen zero\u200bwidth", ["utf-8", "gb18030", "utf-7", "utf-16le"]),
    ("Plain words of every day: free money, happy hour, the end of the world.", ["us-ascii", "utf-8", "iso-8859-1", "utf-7"]),
]

# What Python calls a set, where it has another name or another table than the WHATWG Encoding Standard.
PYTHON = {
    "hz-gb-2312": "hz", "iso-2022-jp": "iso2022_jp", "shift_jis": "cp932", "euc-jp": "euc_jp", "iso-2022-kr": "iso2022_kr", "gb2312": "gb2312",
    "euc-kr": "euc_kr", "big5": "big5hkscs", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic", "windows-874": "cp874",
    "iso-8859-8-i": "iso8859-8", "iso-8859-11": "iso8859-11", "utf-16be": "utf-16-be", "utf-16le": "utf-16-le",
    **{f"ibm{number}": f"cp{number}" for number in (437, 850, 852, 857, 858, 866)},
}

# Labels that mail has for the same sets, some of them of no standard.
ALIASES = {
    "iso-8859-1": ["latin1", "iso_8859-1", "iso8859-1", "iso-88591", "cp819", "ISO_8859-1:1987"],
    "windows-1252": ["cp1252", "x-cp1252", "windows1252", "win-1252"],
    "iso-8859-2": ["latin2", "iso8859-2", "iso_8859-2", "l2"],
    "iso-8859-9": ["latin5", "iso_8859-9"],
    "iso-8859-15": ["iso8859-15", "iso_8859-15"],
    "koi8-r": ["koi8", "koi8_r", "cskoi8r", "cp20866"],
    "windows-1251": ["cp1251", "x-cp1251", "win-1251", "windows1251"],
    "windows-1250": ["cp1250", "win1250"],
    "windows-1256": ["cp1256", "windows1256"],
    "shift_jis": ["x-sjis", "sjis", "shift-jis", "ms_kanji", "windows-31j", "cp932", "ms932"],
    "euc-jp": ["x-euc-jp", "EUC_JP"],
    "iso-2022-jp": ["csISO2022JP", "ISO_2022_JP"],
    "gb2312": ["gbk", "x-gbk", "gb_2312-80", "chinese", "cp936", "iso-ir-58"],
    "big5": ["big5-hkscs", "cn-big5", "x-x-big5", "csbig5", "cp950"],
    "euc-kr": ["ks_c_5601-1987", "korean", "ksc5601", "windows-949", "ms949", "cp949"],
    "utf-8": ["utf8", "unicode-1-1-utf-8", "utf_8"],
    "utf-7": ["unicode-1-1-utf-7", "x-unicode-1-1-utf-7"],
    "ibm850": ["cp850", "850"],
    "ibm437": ["cp437", "cspc8codepage437"],
    "ibm866": ["cp866", "866"],
    "us-ascii": ["ansi_x3.4-1968", "ascii", "us", "646", "iso646-us"],
}
# Nobody knows these: what they label is guessed.
UNKNOWN = ["x-unknown", "unknown-8bit", "klingon", "default_charset", "x-roman8-plus", "iso-2022-cn-ext", "%charset%", "_autodetect"]


def encode(text, charset):
    """`text` in a set; of its sequences with shifts every line begins anew."""
    return text.encode(PYTHON.get(charset, charset))
