//! Character sets to UTF-8 (through `encoding_rs`), streaming, whatever the label says.
//!
//! Decisions:
//! * a missing or unknown label, and `us-ascii`, means a guess: UTF-8 as long as the octets are valid UTF-8,
//!   windows-1252 from the first that is not (mail labelled US-ASCII is often neither);
//! * a label may come with quotes, spaces, parameters or a language behind it, `cp` and `ibm` names of Windows
//!   and PC code pages, underscores for hyphens;
//! * besides what the WHATWG Encoding Standard has: UTF-7 (RFC 2152), HZ (RFC 1843), ISO-2022-KR (RFC 1557),
//!   IBM437, 850, 852, 857, 858;
//! * a byte order mark at the beginning of a text says more than the label;
//! * what cannot be decoded becomes U+FFFD.

use crate::code_pages;
use crate::utf7::Utf7;
use encoding_rs::{CoderResult, Decoder, EUC_KR, Encoding, GBK, ISO_2022_JP, REPLACEMENT, UTF_8, WINDOWS_1252};
use std::borrow::Cow;

/// Streaming decoder from a labelled character set to UTF-8. Never fails. The output does not depend on how
/// the input was cut.
pub struct CharsetDecoder {
    state: State,
}

enum State {
    /// UTF-8 until proved otherwise; the octets of a character that is not complete yet.
    Guess(Vec<u8>),
    Standard(Decoder),
    /// The characters of 0x80..=0xFF.
    CodePage(Vec<char>),
    Utf7(Utf7),
    Shifted(Shift, Decoder),
}

impl std::fmt::Debug for CharsetDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match &self.state {
            State::Guess(_) => "guess",
            State::Standard(decoder) => decoder.encoding().name(),
            State::CodePage(_) => "code page",
            State::Utf7(_) => "UTF-7",
            State::Shifted(_, decoder) => decoder.encoding().name(),
        };
        f.debug_tuple("CharsetDecoder").field(&name).finish()
    }
}

/// What a label stands for.
enum Charset {
    Guess,
    Standard(&'static Encoding),
    CodePage(&'static str),
    Utf7,
    Hz,
    Iso2022Kr,
}

impl Charset {
    /// `None` for a label that means nothing.
    fn for_label(label: &[u8]) -> Option<Charset> {
        // "us-ascii; format=flowed", "\"utf-8\"", "utf-8 (comment)", "iso-8859-1''".
        let label = label.trim_ascii().trim_ascii_start();
        let label = label.strip_prefix(b"\"").unwrap_or(label).trim_ascii_start();
        let end = |octet: &u8| matches!(octet, b';' | b'"' | b' ' | b'\t' | b'(' | b'\'' | b',' | b'*');
        let label = label.split(end).next().unwrap_or_default();
        let name = String::from_utf8_lossy(label).to_ascii_lowercase().replace('_', "-");
        Some(match name.as_str() {
            "us-ascii" | "ascii" | "ansi-x3.4-1968" | "us" | "iso646-us" | "iso-ir-6" | "646" => Charset::Guess,
            "utf-7" | "unicode-1-1-utf-7" | "x-unicode-1-1-utf-7" | "csunicode11utf7" | "x-utf-7" | "utf7" => {
                Charset::Utf7
            }
            "hz-gb-2312" | "hz" => Charset::Hz,
            "iso-2022-kr" | "csiso2022kr" => Charset::Iso2022Kr,
            name => {
                let known = Encoding::for_label(label).or_else(|| Encoding::for_label(name.as_bytes()));
                return match known {
                    // Nothing but one U+FFFD, for pages that would attack their reader. Mail has words in ASCII all the same.
                    Some(encoding) if encoding == REPLACEMENT => None,
                    Some(encoding) => Some(Charset::Standard(encoding)),
                    None => code_page(name),
                };
            }
        })
    }
}

/// `cp1252`, `ibm850`, `windows1251`, `ms949`, `x-cp932` and such.
fn code_page(name: &str) -> Option<Charset> {
    // The names that IANA has beside IBM437 and its like.
    let name = match name {
        "cspc8codepage437" => "437",
        "cspc850multilingual" => "850",
        "cspcp852" => "852",
        name => name,
    };
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let prefix = name.strip_suffix(digits)?.trim_start_matches("x-").trim_end_matches('-');
    if prefix == "iso" || prefix == "iso8859" || prefix == "8859" || prefix.is_empty() && digits.starts_with("8859") {
        // iso8859-1, iso-88591, 8859-15.
        let part = digits.trim_start_matches("8859").trim_start_matches('-');
        return Encoding::for_label(format!("iso-8859-{part}").as_bytes()).map(Charset::Standard);
    }
    if !matches!(prefix, "cp" | "ibm" | "windows" | "win" | "ms" | "dos" | "csibm" | "") {
        return None;
    }
    let label = match digits {
        "437" => return Some(Charset::CodePage(code_pages::IBM437)),
        "850" => return Some(Charset::CodePage(code_pages::IBM850)),
        "852" => return Some(Charset::CodePage(code_pages::IBM852)),
        "857" => return Some(Charset::CodePage(code_pages::IBM857)),
        "858" => return Some(Charset::CodePage(code_pages::IBM858)),
        "367" | "20127" => return Some(Charset::Guess),
        "65000" => return Some(Charset::Utf7),
        "65001" => "utf-8",
        "819" | "28591" => "iso-8859-1",
        "866" => "ibm866",
        "874" => "windows-874",
        "932" | "943" | "31j" => "shift_jis",
        "936" | "1386" => "gbk",
        "949" => "euc-kr",
        "950" => "big5",
        "10000" => "macintosh",
        "20866" => "koi8-r",
        "21866" => "koi8-u",
        "50220" | "50221" | "50222" => "iso-2022-jp",
        "51932" => "euc-jp",
        "54936" => "gb18030",
        "1200" => "utf-16le",
        "1201" => "utf-16be",
        digits => {
            return Encoding::for_label(format!("windows-{digits}").as_bytes()).map(Charset::Standard);
        }
    };
    Encoding::for_label(label.as_bytes()).map(Charset::Standard)
}

impl CharsetDecoder {
    /// A decoder for `label` as found in a message, junk and all.
    pub fn new(label: &[u8]) -> Self {
        let state = match Charset::for_label(label).unwrap_or(Charset::Guess) {
            Charset::Guess => State::Guess(Vec::new()),
            Charset::Standard(encoding) => State::Standard(encoding.new_decoder()),
            Charset::CodePage(table) => State::CodePage(table.chars().collect()),
            Charset::Utf7 => State::Utf7(Utf7::default()),
            Charset::Hz => State::Shifted(Shift::hz(), GBK.new_decoder_without_bom_handling()),
            Charset::Iso2022Kr => State::Shifted(Shift::iso_2022_kr(), EUC_KR.new_decoder_without_bom_handling()),
        };
        CharsetDecoder { state }
    }

    /// Decodes `input`, appending to `out`.
    pub fn push(&mut self, input: &[u8], out: &mut String) {
        match &mut self.state {
            State::Guess(held) => {
                if let Some(rest) = guess_utf8(held, input, out) {
                    let mut decoder = WINDOWS_1252.new_decoder_without_bom_handling();
                    run(&mut decoder, &std::mem::take(held), false, out);
                    run(&mut decoder, rest, false, out);
                    self.state = State::Standard(decoder);
                }
            }
            State::Standard(decoder) => run(decoder, input, false, out),
            State::CodePage(table) => out.extend(input.iter().map(|&octet| code_page_char(table, octet))),
            State::Utf7(utf7) => utf7.push(input, out),
            State::Shifted(shift, decoder) => run(decoder, &shift.push(input), false, out),
        }
    }

    /// Flushes what was held back.
    pub fn finish(&mut self, out: &mut String) {
        match &mut self.state {
            State::Guess(held) => {
                run(&mut WINDOWS_1252.new_decoder_without_bom_handling(), &std::mem::take(held), true, out);
            }
            State::Standard(decoder) => finish_decoder(decoder, b"", out),
            State::Shifted(shift, decoder) => finish_decoder(decoder, &std::mem::take(&mut shift.held), out),
            State::CodePage(_) => {}
            State::Utf7(utf7) => utf7.finish(out),
        }
    }
}

/// Gives `decoder` its last input. It may not be used after that: a new one takes its place.
fn finish_decoder(decoder: &mut Decoder, input: &[u8], out: &mut String) {
    let next = decoder.encoding().new_decoder_without_bom_handling();
    run(&mut std::mem::replace(decoder, next), input, true, out);
}

fn run(decoder: &mut Decoder, mut input: &[u8], last: bool, out: &mut String) {
    loop {
        let wanted = decoder.max_utf8_buffer_length(input.len()).unwrap_or(input.len());
        out.reserve(wanted);
        let (result, read, _) = decoder.decode_to_string(input, out, last);
        input = input.get(read..).unwrap_or_default();
        if result == CoderResult::InputEmpty {
            return;
        }
    }
}

/// Takes valid UTF-8 from `held` and `input`. When something cannot be UTF-8: the rest, before which what is
/// in `held` still has to be decoded.
fn guess_utf8<'i>(held: &mut Vec<u8>, input: &'i [u8], out: &mut String) -> Option<&'i [u8]> {
    let mut input = input;
    // Complete the character that was cut.
    while !held.is_empty() {
        let (&octet, rest) = input.split_first()?;
        held.push(octet);
        match std::str::from_utf8(held) {
            Ok(text) => {
                out.push_str(text);
                held.clear();
                input = rest;
            }
            Err(error) if error.error_len().is_none() => input = rest,
            Err(_) => {
                held.pop();
                return Some(input);
            }
        }
    }
    match std::str::from_utf8(input) {
        Ok(text) => out.push_str(text),
        Err(error) => {
            let (valid, rest) = input.split_at(error.valid_up_to());
            out.push_str(&String::from_utf8_lossy(valid));
            if error.error_len().is_some() {
                return Some(rest);
            }
            held.extend_from_slice(rest);
        }
    }
    None
}

fn code_page_char(table: &[char], octet: u8) -> char {
    match octet.checked_sub(128) {
        None => char::from(octet),
        Some(index) => table.get(usize::from(index)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Whether `label` names a character set that is known (for SEARCH CHARSET).
pub fn charset_known(label: &[u8]) -> bool {
    Charset::for_label(label).is_some()
}

/// Whether what octets of the character set `label` mean depends on shifts before them.
pub(crate) fn has_shifts(label: &[u8]) -> bool {
    match Charset::for_label(label) {
        Some(Charset::Utf7 | Charset::Hz | Charset::Iso2022Kr) => true,
        Some(Charset::Standard(encoding)) => encoding == ISO_2022_JP,
        Some(Charset::Guess | Charset::CodePage(_)) | None => false,
    }
}

/// `bytes` of the character set `label` as text; for an unknown label a guess over all of them (UTF-8 if all
/// is valid, else windows-1252).
pub fn decode_charset<'a>(label: &[u8], bytes: &'a [u8]) -> Cow<'a, str> {
    match Charset::for_label(label).unwrap_or(Charset::Guess) {
        Charset::Guess => guess(bytes),
        Charset::Standard(encoding) if encoding == UTF_8 => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
        },
        _ => {
            let mut out = String::new();
            let mut decoder = CharsetDecoder::new(label);
            decoder.push(bytes, &mut out);
            decoder.finish(&mut out);
            Cow::Owned(out)
        }
    }
}

/// Unlabelled octets as text: UTF-8 if they are valid UTF-8, else windows-1252.
pub(crate) fn guess(octets: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(octets) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => WINDOWS_1252.decode_without_bom_handling(octets).0,
    }
}

/// Turns 7-bit encodings with shifts into the 8-bit encoding of the same characters: between shift-in and
/// shift-out the high bit is set.
struct Shift {
    kind: ShiftKind,
    inside: bool,
    /// What may begin an escape.
    held: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ShiftKind {
    /// RFC 1843: `~{` ... `~}`, `~~`, `~` line end.
    Hz,
    /// RFC 1557: SO ... SI, after an `ESC $ ) C` that is dropped.
    Iso2022Kr,
}

impl Shift {
    fn hz() -> Self {
        Shift { kind: ShiftKind::Hz, inside: false, held: Vec::new() }
    }

    fn iso_2022_kr() -> Self {
        Shift { kind: ShiftKind::Iso2022Kr, inside: false, held: Vec::new() }
    }

    fn push(&mut self, input: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(input.len());
        for &octet in input {
            match self.kind {
                ShiftKind::Hz => self.hz_octet(octet, &mut out),
                ShiftKind::Iso2022Kr => self.iso_2022_kr_octet(octet, &mut out),
            }
        }
        out
    }

    fn plain(&self, octet: u8, out: &mut Vec<u8>) {
        let is_graphic = (0x21..=0x7E).contains(&octet);
        out.push(if self.inside && is_graphic { octet | 0x80 } else { octet });
    }

    fn hz_octet(&mut self, octet: u8, out: &mut Vec<u8>) {
        if self.held.pop().is_some() {
            match octet {
                b'{' => self.inside = true,
                b'}' => self.inside = false,
                b'~' => out.push(b'~'),
                b'\n' => {}
                octet => {
                    self.plain(b'~', out);
                    self.plain(octet, out);
                }
            }
        } else if octet == b'~' {
            self.held.push(octet);
        } else {
            // A line end leaves the shifted mode (RFC 1843 §2).
            self.inside &= octet != b'\n';
            self.plain(octet, out);
        }
    }

    fn iso_2022_kr_octet(&mut self, octet: u8, out: &mut Vec<u8>) {
        const DESIGNATION: &[u8] = b"\x1b$)C";
        if DESIGNATION.get(self.held.len()) == Some(&octet) {
            self.held.push(octet);
            if self.held == DESIGNATION {
                self.held.clear();
            }
            return;
        }
        for held in std::mem::take(&mut self.held) {
            self.plain(held, out);
        }
        match octet {
            0x0E => self.inside = true,
            0x0F => self.inside = false,
            octet => {
                self.inside &= octet != b'\n';
                self.plain(octet, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn decode(label: &str, octets: &[u8]) -> String {
        let whole = decode_charset(label.as_bytes(), octets).into_owned();
        for at in 0..=octets.len() {
            let (head, tail) = octets.split_at(at);
            let mut out = String::new();
            let mut decoder = CharsetDecoder::new(label.as_bytes());
            decoder.push(head, &mut out);
            decoder.push(tail, &mut out);
            decoder.finish(&mut out);
            assert_eq!(out, whole, "{label} cut at {at}");
        }
        whole
    }

    #[test]
    fn known_answers() {
        assert_eq!(decode("utf-8", "na\u{ef}ve \u{20ac}".as_bytes()), "na\u{ef}ve \u{20ac}");
        assert_eq!(decode("utf-8", b"a\xffb"), "a\u{fffd}b");
        assert_eq!(decode("ISO-8859-1", b"caf\xe9"), "caf\u{e9}");
        assert_eq!(decode("iso-8859-15", b"\xa4"), "\u{20ac}");
        assert_eq!(decode("koi8-r", b"\xf0\xd2\xc9"), "\u{41f}\u{440}\u{438}");
        assert_eq!(decode("iso-2022-jp", b"\x1b$B$3\x1b(B!"), "\u{3053}!");
        assert_eq!(decode("gb2312", b"\xc4\xe3"), "\u{4f60}");
        assert_eq!(decode("cp850", b"\x82\xd5"), "\u{e9}\u{131}");
        assert_eq!(decode("ibm437", b"\xe1"), "\u{df}");
        assert_eq!(decode("hz-gb-2312", b"a~{<:Ky~}~~b"), "a\u{5df1}\u{6240}~b");
        assert_eq!(decode("iso-2022-kr", b"\x1b$)C\x0e0!\x0fx"), "\u{ac00}x");
        assert_eq!(decode("unicode-1-1-utf-7", b"Hi Mom -+Jjo--!"), "Hi Mom -\u{263a}-!");
    }

    #[test]
    fn junk_labels() {
        for label in [
            "\"iso-8859-2\"",
            " ISO-8859-2 ",
            "iso-8859-2; format=flowed",
            "iso_8859-2",
            "iso8859-2",
            "iso8859_2",
            "iso-8859-2''",
            "iso-8859-2 (x)",
            "latin2",
            "8859-2",
            "iso-88592",
        ] {
            assert_eq!(decode(label, b"\xb1"), "\u{105}", "{label}");
        }
        assert_eq!(decode("cp1251", b"\xe0"), "\u{430}");
        assert_eq!(decode("windows1251", b"\xe0"), "\u{430}");
        assert_eq!(decode("win-1251", b"\xe0"), "\u{430}");
        assert_eq!(decode("cp932", b"\x82\xa0"), "\u{3042}");
        assert_eq!(decode("CP936", b"\xc4\xe3"), "\u{4f60}");
        assert_eq!(decode("csPC8CodePage437", b"\xe1"), "\u{df}");
        assert_eq!(decode("csPCp852", b"\xa5"), "\u{105}");
    }

    #[test]
    fn guesses() {
        for label in
            ["", "us-ascii", "x-unknown", "unknown-8bit", "us-ascii; foo", "\u{e9}", "iso-2022-cn", "replacement"]
        {
            assert_eq!(decode(label, "\u{e9}\u{20ac}".as_bytes()), "\u{e9}\u{20ac}");
        }
        let mut out = String::new();
        let mut decoder = CharsetDecoder::new(b"x-unknown");
        decoder.push("\u{e9} caf".as_bytes(), &mut out);
        decoder.push(b"\xe9 \x80\xe2\x82", &mut out);
        decoder.finish(&mut out);
        assert_eq!(out, "\u{e9} caf\u{e9} \u{20ac}\u{e2}\u{201a}");
    }

    /// What the WHATWG calls Big5 has the kana where ETen put them, and the characters of Hong Kong.
    #[test]
    fn big5_with_kana() {
        for label in ["big5", "big5-hkscs", "cp950", "cn-big5"] {
            assert_eq!(decode(label, b"\xa4\xe9\xc6\xe8\xc7\x7c\x92\x5d"), "\u{65e5}\u{3042}\u{30a2}\u{54cb}");
        }
    }

    #[test]
    fn shifts() {
        for label in ["ISO-2022-JP", "csISO2022JP", "utf-7", "x-unicode-1-1-utf-7", "hz", "iso-2022-kr"] {
            assert!(has_shifts(label.as_bytes()), "{label}");
        }
        for label in ["unicode-1-1-utf-8", "utf-8", "big5", "x-unknown", ""] {
            assert!(!has_shifts(label.as_bytes()), "{label}");
        }
    }

    #[test]
    fn known_or_not() {
        for label in ["utf-8", "US-ASCII", "koi8-u", "UTF-7", "cp437", "iso-2022-jp", "big5"] {
            assert!(charset_known(label.as_bytes()), "{label}");
        }
        for label in ["", "x-unknown", "klingon", "cp9999", "utf-9"] {
            assert!(!charset_known(label.as_bytes()), "{label}");
        }
    }

    #[test]
    fn code_pages_are_complete() {
        for table in
            [code_pages::IBM437, code_pages::IBM850, code_pages::IBM852, code_pages::IBM857, code_pages::IBM858]
        {
            assert_eq!(table.chars().count(), 128);
        }
    }

    proptest! {
        #[test]
        fn the_cut_does_not_matter(octets in proptest::collection::vec(
            prop_oneof![Just(b'+'), Just(b'-'), Just(b'~'), Just(b'{'), Just(0x1b), Just(b'$'), any::<u8>()], 0..24)) {
            for label in ["utf-8", "utf-7", "hz-gb-2312", "iso-2022-kr", "iso-2022-jp", "big5", "utf-16"] {
                decode(label, &octets);
            }
            // A guess is made over all octets when they are at hand, and from the first wrong one when not.
            let mut one = String::new();
            let mut decoder = CharsetDecoder::new(b"");
            decoder.push(&octets, &mut one);
            decoder.finish(&mut one);
            for at in 0..octets.len() {
                let mut two = String::new();
                let mut decoder = CharsetDecoder::new(b"");
                decoder.push(&octets[..at], &mut two);
                decoder.push(&octets[at..], &mut two);
                decoder.finish(&mut two);
                prop_assert_eq!(&one, &two);
            }
        }
    }
}
