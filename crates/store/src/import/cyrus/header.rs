//! `cyrus.header`: what a mailbox is called and what its flags mean.
//!
//! Three lines that never change, and then, up to 3.4, a line `QUOTAROOT<TAB>UNIQUEID`, a line of flag names separated by spaces, and the access rights;
//! since 3.6 one list of keys and values: `%(T e N user.ann.Drafts I 8kbey... A %(ann lrs) U ($Label1 foo))`. A value is an atom, a string in quotes, a
//! literal, or a list of such.

/// How the file begins.
const MAGIC: &[u8] = b"\xa1\x02\x8b\x0dCyrus mailbox header\n";
/// Lines that never change, the first included.
const FIXED_LINES: usize = 3;
/// Lists within lists.
const NESTING_MAX: usize = 16;

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::import) struct Header {
    /// The server's own name of the mailbox; `None` before 3.6.
    pub(in crate::import) name: Option<String>,
    /// The names of the flags, by the bit that stands for them; `None` for a bit whose flag was removed.
    pub(in crate::import) flags: Vec<Option<String>>,
}

impl Header {
    /// Reads a file; `None`: it is none.
    pub(in crate::import) fn parse(bytes: &[u8]) -> Option<Header> {
        let mut rest = bytes.strip_prefix(MAGIC).map(|_| bytes)?;
        for _ in 0..FIXED_LINES {
            rest = rest.get(memchr::memchr(b'\n', rest)? + 1..)?;
        }
        if rest.starts_with(b"%(") {
            return Header::parse_list(rest);
        }
        let mut lines = rest.split(|byte| *byte == b'\n').skip(1);
        let flags = String::from_utf8_lossy(lines.next()?).into_owned();
        let name = |flag: &str| Some(flag.to_owned()).filter(|flag| !flag.is_empty());
        Some(Header { name: None, flags: flags.trim_end_matches(' ').split(' ').map(name).collect() })
    }

    fn parse_list(bytes: &[u8]) -> Option<Header> {
        let Value::Pairs(pairs) = Parser { rest: bytes }.value(0)? else { return None };
        let mut header = Header::default();
        for (key, value) in pairs {
            match (key.as_str(), value) {
                ("N", Value::Text(name)) => header.name = Some(name),
                ("U", Value::List(flags)) => {
                    let name = |flag| match flag {
                        Value::Text(name) => Some(name),
                        _ => None,
                    };
                    header.flags = flags.into_iter().map(name).collect();
                }
                _ => {}
            }
        }
        Some(header)
    }
}

/// A value of a list.
enum Value {
    Nil,
    Text(String),
    List(Vec<Value>),
    Pairs(Vec<(String, Value)>),
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl Parser<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > NESTING_MAX {
            return None;
        }
        match *self.rest {
            [b'%', b'(', ..] => {
                self.skip(2);
                let mut pairs = Vec::new();
                while !self.closes()? {
                    let Value::Text(key) = self.value(depth + 1)? else { return None };
                    self.spaces();
                    pairs.push((key, self.value(depth + 1)?));
                }
                Some(Value::Pairs(pairs))
            }
            [b'(', ..] => {
                self.skip(1);
                let mut values = Vec::new();
                while !self.closes()? {
                    values.push(self.value(depth + 1)?);
                }
                Some(Value::List(values))
            }
            [b'"', ..] => {
                self.skip(1);
                self.quoted()
            }
            [b'{', ..] => {
                self.skip(1);
                self.literal()
            }
            _ => self.atom(),
        }
    }

    /// Passes a closing parenthesis, if one is next; `None` at the end.
    fn closes(&mut self) -> Option<bool> {
        self.spaces();
        let closes = *self.rest.first()? == b')';
        if closes {
            self.skip(1);
        }
        Some(closes)
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    fn skip(&mut self, octets: usize) {
        self.rest = self.rest.get(octets..).unwrap_or_default();
    }

    fn take(&mut self, octets: usize) -> Option<String> {
        let (taken, rest) = self.rest.split_at_checked(octets)?;
        self.rest = rest;
        Some(String::from_utf8_lossy(taken).into_owned())
    }

    fn atom(&mut self) -> Option<Value> {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'(' | b')');
        let len = self.rest.iter().position(is_end).unwrap_or(self.rest.len());
        let text = self.take(len).filter(|text| !text.is_empty())?;
        Some(if text == "NIL" { Value::Nil } else { Value::Text(text) })
    }

    fn quoted(&mut self) -> Option<Value> {
        let mut octets = Vec::new();
        loop {
            let (first, rest) = self.rest.split_first()?;
            self.rest = rest;
            match first {
                b'"' => return Some(Value::Text(String::from_utf8_lossy(&octets).into_owned())),
                b'\\' => {
                    let (escaped, rest) = self.rest.split_first()?;
                    self.rest = rest;
                    octets.push(*escaped);
                }
                other => octets.push(*other),
            }
        }
    }

    /// `{N}` or `{N+}`, a line end, N octets.
    fn literal(&mut self) -> Option<Value> {
        let end = memchr::memchr(b'}', self.rest)?;
        let count = self.take(end)?;
        self.skip(1);
        self.rest = self.rest.strip_prefix(b"\r").unwrap_or(self.rest).strip_prefix(b"\n")?;
        self.take(count.trim_end_matches('+').parse().ok()?).map(Value::Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXED: &str =
        "\"The best thing about this system was that it had lots of goals.\"\n\t--Jim Morris on Andrew\n";

    fn parse(rest: &str) -> Option<Header> {
        Header::parse(&[MAGIC, FIXED.as_bytes(), rest.as_bytes()].concat())
    }

    fn flags(header: &Header) -> Vec<&str> {
        header.flags.iter().map(|flag| flag.as_deref().unwrap_or("-")).collect()
    }

    #[test]
    fn what_cyrus_3_6_writes() {
        let header = parse(
            "%(T e N user.ann.a^b I k5sz A %(ann lrswipkxtecdan) U (foo $Label1 NIL \"a \\\" b\" {3+}\r\nx y))\n",
        );
        let header = header.unwrap();
        assert_eq!(header.name.as_deref(), Some("user.ann.a^b"));
        assert_eq!(flags(&header), ["foo", "$Label1", "-", "a \" b", "x y"]);
        assert_eq!(parse("%(T e N user.ann)\n").unwrap().flags, []);
    }

    #[test]
    fn what_earlier_ones_write() {
        let header = parse("user.ann\t2c5c08f54f7f35f1\n$Label1 foo  bar \nann\tlrswipkxtecda\t\n").unwrap();
        assert_eq!((header.name.as_ref(), flags(&header)), (None, vec!["$Label1", "foo", "-", "bar"]));
        assert_eq!(flags(&parse("\t2c5c\n\nann\tlrs\t\n").unwrap()), ["-"]);
    }

    #[test]
    fn what_is_no_header() {
        for bad in ["", "%(N", "%(N user.ann", "%(N user.ann U (a", "%(N \"a", "%(N {9}\nx)", "%((a) b)", "%(N {x}\nx)"]
        {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(parse(&format!("%(A {}", "(".repeat(100_000))), None);
        assert_eq!(Header::parse(b"%(N user.ann)"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read(text in "(%\\(|\\(|\\)|\"|\\\\|\\{[0-9]{0,2}\\+?\\}|\r?\n| |[a-zN]{0,3}|\u{e9}){0,30}") {
            parse(&text);
            parse(&format!("%({text})"));
        }
    }
}
