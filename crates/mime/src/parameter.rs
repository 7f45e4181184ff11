//! Content-Type, Content-Disposition and their parameters (RFC 2045 §5.1, RFC 2183, RFC 2231).
//!
//! Tolerated: missing and doubled semicolons, unquoted values with spaces or special characters, quotes
//! that are never closed, comments anywhere, parameters without a value (dropped).

use crate::charset::decode_charset;
use crate::encoded_word::{decode_unstructured, hex_pair, unfold};
use crate::structure::Parameter;

/// `token` or `token/token` at the start of a value, upper case, and the parameters after it.
pub(crate) struct Parsed {
    /// Before the slash.
    pub(crate) first: Vec<u8>,
    /// After the slash; `None` without a slash.
    pub(crate) second: Option<Vec<u8>>,
    /// In order, RFC 2231 continuations joined.
    pub(crate) parameters: Vec<Parameter>,
    /// More parameters than the limit were there.
    pub(crate) truncated: bool,
}

/// A raw Content-Type, Content-Disposition or Content-Transfer-Encoding value.
pub(crate) fn parse(value: &[u8], parameters_max: usize) -> Parsed {
    let unfolded = unfold(value);
    let mut cursor = Cursor { rest: &unfolded };
    cursor.skip_cfws();
    let first = cursor.token().to_ascii_uppercase();
    cursor.skip_cfws();
    let second = cursor.take(b'/').then(|| {
        cursor.skip_cfws();
        cursor.token().to_ascii_uppercase()
    });
    let (parameters, truncated) = cursor.parameters(parameters_max);
    Parsed { first, second, parameters: join_continuations(parameters), truncated }
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn advance(&mut self, octets: usize) -> &'a [u8] {
        let (before, after) = self.rest.split_at(octets.min(self.rest.len()));
        self.rest = after;
        before
    }

    fn take(&mut self, octet: u8) -> bool {
        let taken = self.rest.first() == Some(&octet);
        if taken {
            self.advance(1);
        }
        taken
    }

    /// `[CFWS]`: white space and comments; a comment that is never closed runs to the end.
    fn skip_cfws(&mut self) {
        loop {
            let blank = |octet: &&u8| octet.is_ascii_whitespace() || **octet == 0;
            self.advance(self.rest.iter().take_while(blank).count());
            if self.rest.first() != Some(&b'(') {
                return;
            }
            let mut depth = 0usize;
            let mut escaped = false;
            let end = self.rest.iter().position(|&octet| {
                match octet {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0
            });
            self.advance(end.map_or(self.rest.len(), |at| at + 1));
        }
    }

    /// RFC 2045 §5.1 token, and octets above 127; may be empty.
    fn token(&mut self) -> &'a [u8] {
        self.advance(self.rest.iter().take_while(|octet| is_token(**octet)).count())
    }

    /// `*(";" parameter)`, at most `max` of them; whether there were more.
    fn parameters(&mut self, max: usize) -> (Vec<Parameter>, bool) {
        let mut parameters = Vec::new();
        loop {
            self.skip_cfws();
            if self.rest.is_empty() {
                return (parameters, false);
            }
            let name = self.token();
            self.skip_cfws();
            if name.is_empty() || !self.take(b'=') {
                // A semicolon, or junk.
                let junk = self.rest.iter().take_while(|octet| !is_token(**octet)).count();
                self.advance(if name.is_empty() { junk.max(1) } else { 0 });
                continue;
            }
            if parameters.len() >= max {
                return (parameters, true);
            }
            let value = self.value();
            parameters.push(Parameter { name: name.to_vec(), value });
        }
    }

    /// `value = token / quoted-string`.
    fn value(&mut self) -> Vec<u8> {
        self.skip_cfws();
        if self.take(b'"') {
            return self.quoted();
        }
        // Anything up to a semicolon, a comment, or white space before what looks like the next parameter.
        let mut length = 0;
        while let Some(&octet) = self.rest.get(length) {
            match octet {
                b';' | b'(' => break,
                _ if octet.is_ascii_whitespace() => {
                    let after = self.rest.get(length..).unwrap_or_default();
                    let blanks = after.iter().take_while(|o| o.is_ascii_whitespace()).count();
                    let words = after.get(blanks..).unwrap_or_default();
                    let token = words.iter().take_while(|octet| is_token(**octet)).count();
                    if token == 0 || words.get(token) == Some(&b'=') {
                        break;
                    }
                    length += blanks + token;
                }
                _ => length += 1,
            }
        }
        self.advance(length).trim_ascii_end().to_vec()
    }

    /// The rest of a quoted string, dequoted; it ends with the value if it is never closed.
    fn quoted(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut octets = self.rest.iter();
        while let Some(&octet) = octets.next() {
            match octet {
                b'"' => break,
                // File names of a well-known system come with bare backslashes: only these are escapes.
                b'\\' if matches!(octets.as_slice().first(), Some(b'"' | b'\\')) => {
                    text.extend(octets.next());
                }
                0 => {}
                octet => text.push(octet),
            }
        }
        self.rest = octets.as_slice();
        text
    }
}

fn is_token(octet: u8) -> bool {
    octet > b' '
        && octet != 127
        && !matches!(
            octet,
            b'(' | b')' | b'<' | b'>' | b'@' | b',' | b';' | b':' | b'\\' | b'"' | b'/' | b'[' | b']' | b'?' | b'='
        )
}

/// One `name*N` or `name*N*` parameter.
struct Piece {
    number: u32,
    extended: bool,
    value: Vec<u8>,
}

/// RFC 2231 §3 and §4.1: the pieces of a parameter as one, at the place of the first. If any piece is
/// extended, so is the whole: its name ends in `*` and pieces that were not are percent-encoded.
fn join_continuations(parameters: Vec<Parameter>) -> Vec<Parameter> {
    if !parameters.iter().any(|parameter| numbered(&parameter.name).is_some()) {
        return parameters;
    }
    let mut joined: Vec<(Parameter, Vec<Piece>)> = Vec::new();
    for parameter in parameters {
        let Some((base, number, extended)) = numbered(&parameter.name) else {
            joined.push((parameter, Vec::new()));
            continue;
        };
        let piece = Piece { number, extended, value: parameter.value };
        let same = |(other, pieces): &&mut (Parameter, Vec<Piece>)| {
            !pieces.is_empty() && other.name.eq_ignore_ascii_case(base)
        };
        match joined.iter_mut().find(same) {
            Some((_, pieces)) => pieces.push(piece),
            None => joined.push((Parameter { name: base.to_vec(), value: Vec::new() }, vec![piece])),
        }
    }
    let finish = |(mut parameter, mut pieces): (Parameter, Vec<Piece>)| {
        pieces.sort_by_key(|piece| piece.number);
        let extended = pieces.iter().any(|piece| piece.extended);
        if extended {
            parameter.name.push(b'*');
            if !pieces.first().is_some_and(|piece| piece.extended) {
                parameter.value.extend_from_slice(b"''");
            }
        }
        for piece in pieces {
            if extended && !piece.extended {
                percent_encode(&piece.value, &mut parameter.value);
            } else {
                parameter.value.extend_from_slice(&piece.value);
            }
        }
        parameter
    };
    joined.into_iter().map(finish).collect()
}

/// `name "*" number ["*"]`: name, number, whether extended.
fn numbered(name: &[u8]) -> Option<(&[u8], u32, bool)> {
    let (rest, extended) = match name.strip_suffix(b"*") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let star = rest.iter().rposition(|&octet| octet == b'*')?;
    let digits = std::str::from_utf8(rest.get(star + 1..)?).ok()?;
    let number = digits.bytes().all(|d| d.is_ascii_digit()).then(|| digits.parse().ok())??;
    (star > 0).then_some((rest.get(..star)?, number, extended))
}

fn percent_encode(value: &[u8], out: &mut Vec<u8>) {
    for &octet in value {
        // RFC 2231 §7 attribute-char.
        if is_token(octet) && octet < 128 && !matches!(octet, b'*' | b'\'' | b'%') {
            out.push(octet);
        } else {
            out.extend_from_slice(format!("%{octet:02X}").as_bytes());
        }
    }
}

/// The decoded value of the parameter `name` (`filename`, `name`, `charset` ...): RFC 2231, and encoded
/// words where RFC 2231 is not used.
pub fn decode_parameter(parameters: &[Parameter], name: &str) -> Option<String> {
    let name = name.as_bytes();
    let extended = parameters
        .iter()
        .find(|parameter| parameter.name.strip_suffix(b"*").is_some_and(|base| base.eq_ignore_ascii_case(name)));
    if let Some(parameter) = extended {
        return Some(decode_extended(&parameter.value));
    }
    let plain = parameters.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))?;
    Some(decode_unstructured(&plain.value).into_owned())
}

/// RFC 2231 §4 `[charset] "'" [language] "'" *(ext-octet / attribute-char)`.
fn decode_extended(value: &[u8]) -> String {
    let mut fields = value.splitn(3, |&octet| octet == b'\'');
    let (charset, encoded) = match (fields.next(), fields.next(), fields.next()) {
        (Some(charset), Some(_language), Some(encoded)) => (charset, encoded),
        _ => (&b""[..], value),
    };
    let mut octets = Vec::with_capacity(encoded.len());
    let mut rest = encoded.iter();
    while let Some(&octet) = rest.next() {
        match (octet, hex_pair(rest.as_slice())) {
            (b'%', Some(decoded)) => {
                octets.push(decoded);
                rest.nth(1);
            }
            _ => octets.push(octet),
        }
    }
    decode_charset(charset, &octets).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(value: &str) -> String {
        let parsed = parse(value.as_bytes(), 100);
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let mut out = text(&parsed.first);
        if let Some(second) = &parsed.second {
            out += &format!("/{}", text(second));
        }
        for parameter in &parsed.parameters {
            out += &format!(" {}=[{}]", text(&parameter.name), text(&parameter.value));
        }
        out
    }

    #[test]
    fn plain_forms() {
        assert_eq!(shown(" text/plain; charset=us-ascii (Plain)"), "TEXT/PLAIN charset=[us-ascii]");
        assert_eq!(shown("text/plain; charset=\"us\\\"-ascii\""), "TEXT/PLAIN charset=[us\"-ascii]");
        assert_eq!(shown("Multipart/Mixed;\r\n\tboundary=\"a b\"; x=y"), "MULTIPART/MIXED boundary=[a b] x=[y]");
        assert_eq!(shown("text"), "TEXT");
        assert_eq!(shown(""), "");
        assert_eq!(shown("attachment; filename=a.txt"), "ATTACHMENT filename=[a.txt]");
    }

    #[test]
    fn broken_forms() {
        assert_eq!(shown("text/plain;; charset = utf-8 ;"), "TEXT/PLAIN charset=[utf-8]");
        assert_eq!(shown("text/plain charset=utf-8"), "TEXT/PLAIN charset=[utf-8]");
        assert_eq!(shown("a/b; name=my long file.doc; x=1"), "A/B name=[my long file.doc] x=[1]");
        assert_eq!(shown("a/b; charset=utf-8 boundary=x"), "A/B charset=[utf-8] boundary=[x]");
        assert_eq!(shown("a/b; boundary=--=_x/y?z:1"), "A/B boundary=[--=_x/y?z:1]");
        assert_eq!(shown("a/b; name=\"unclosed; x=1"), "A/B name=[unclosed; x=1]");
        assert_eq!(shown("a/b; name=\"C:\\dir\\f.txt\""), "A/B name=[C:\\dir\\f.txt]");
        assert_eq!(shown("a/b; flag; x=1"), "A/B x=[1]");
        assert_eq!(shown("a/b; x="), "A/B x=[]");
        assert_eq!(shown("a/b; =x; y=1"), "A/B y=[1]");
        assert_eq!(shown("a/b (unclosed; x=1"), "A/B");
        assert_eq!(shown("a/b; name=x "), "A/B name=[x]");
    }

    #[test]
    fn continuations() {
        assert_eq!(shown("m/x; URL*0=\"ftp://\"; URL*1=\"cs.utk.edu\"; a=b"), "M/X URL=[ftp://cs.utk.edu] a=[b]");
        assert_eq!(
            shown("a/x; title*1*=%2A%2A%2Afun%2A%2A%2A%20; title*2=\"isn't it!\"; title*0*=us-ascii'en'This%20is"),
            "A/X title*=[us-ascii'en'This%20is%2A%2A%2Afun%2A%2A%2A%20isn%27t%20it%21]".replace("%21", "!")
        );
        assert_eq!(shown("a/b; t*=utf-8''x%20y"), "A/B t*=[utf-8''x%20y]");
        assert_eq!(shown("a/b; *0=x; a*b=1"), "A/B *0=[x] a*b=[1]");
    }

    #[test]
    fn decoded_values() {
        let decode = |value: &str, name: &str| decode_parameter(&parse(value.as_bytes(), 100).parameters, name);
        let title = "a/x; title*0*=us-ascii'en'This%20is%20; title*1=\"it's\"";
        assert_eq!(decode(title, "TITLE").unwrap(), "This is it's");
        assert_eq!(decode("a/b; n*=utf-8''na%C3%AFve", "n").unwrap(), "na\u{ef}ve");
        assert_eq!(decode("a/b; n*=iso-8859-1''%e9%zz", "n").unwrap(), "\u{e9}%zz");
        assert_eq!(decode("a/b; n*=plain", "n").unwrap(), "plain");
        assert_eq!(decode("a/b; n=\"=?utf-8?q?=C3=A9?=\"", "n").unwrap(), "\u{e9}");
        assert_eq!(decode("a/b; n=raw; n*=utf-8''ext", "n").unwrap(), "ext");
        assert_eq!(decode("a/b", "n"), None);
    }

    #[test]
    fn limit_on_parameters() {
        let parsed = parse(b"a/b; c=1; d=2; e=3", 2);
        assert_eq!((parsed.parameters.len(), parsed.truncated), (2, true));
        let parsed = parse(b"a/b; c=1; d=2", 2);
        assert_eq!((parsed.parameters.len(), parsed.truncated), (2, false));
    }

    #[test]
    fn linear_time() {
        parse(&b"a/b; x=".iter().copied().chain(b"y ".repeat(300_000)).collect::<Vec<_>>(), 100);
        parse(&b"a/b; ".iter().copied().chain(b"=\"".repeat(300_000)).collect::<Vec<_>>(), 100);
        parse(&b"(\\".repeat(300_000), 100);
    }
}
