//! Names of messages for ever (RFC 1939 §7 UIDL), in the form that an administrator chooses: clients that have synchronised with another
//! server load nothing again when UIDs were kept and the names are formed in the same way.

use std::fmt;
use std::str::FromStr;

use model::{Error, ErrorKind, Uid, UidValidity};

/// RFC 1939 §7: at most so many octets.
const NAME_BYTES_MAX: usize = 70;
/// The most digits that a number is filled up to.
const WIDTH_MAX: usize = 20;

/// A form such as `%08Xu%08Xv`: `%u` is the UID, `%v` the UIDVALIDITY; between, `x` or `X` for hexadecimal digits, and before that a
/// width, filled with zeros when it begins with one. `%%` is a percent sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UidlFormat {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Number { what: What, base: Base, width: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Uid,
    UidValidity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Decimal,
    LowerHex,
    UpperHex,
}

impl Default for UidlFormat {
    /// That of Dovecot: `%08Xu%08Xv`.
    fn default() -> Self {
        let number = |what| Part::Number { what, base: Base::UpperHex, width: 8 };
        UidlFormat { text: "%08Xu%08Xv".to_owned(), parts: vec![number(What::Uid), number(What::UidValidity)] }
    }
}

impl FromStr for UidlFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::new(ErrorKind::Invalid, format!("UIDL format {text:?}: {why}"));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            // RFC 1939 §7: octets of 0x21 to 0x7E.
            if !first.is_ascii_graphic() {
                return Err(wrong("only visible ASCII may be in it"));
            }
            let Some(code) = rest.strip_prefix('%') else {
                let end = rest.find('%').unwrap_or(rest.len());
                let (literal, after) = rest.split_at(end);
                if !literal.chars().all(|c| c.is_ascii_graphic()) {
                    return Err(wrong("only visible ASCII may be in it"));
                }
                parts.push(Part::Text(literal.to_owned()));
                rest = after;
                continue;
            };
            if let Some(after) = code.strip_prefix('%') {
                parts.push(Part::Text("%".to_owned()));
                rest = after;
                continue;
            }
            let digits = code.find(|c: char| !c.is_ascii_digit()).unwrap_or(code.len());
            let (digits, code) = code.split_at(digits);
            let width = match digits {
                "" => 0,
                digits => digits.parse().ok().filter(|width| *width <= WIDTH_MAX).ok_or_else(|| wrong("too wide"))?,
            };
            if width > 0 && !digits.starts_with('0') {
                return Err(wrong("a width begins with 0: names have no spaces"));
            }
            let (base, code) = match (code.strip_prefix('x'), code.strip_prefix('X')) {
                (Some(code), _) => (Base::LowerHex, code),
                (_, Some(code)) => (Base::UpperHex, code),
                _ => (Base::Decimal, code),
            };
            let what = match code.chars().next() {
                Some('u') => What::Uid,
                Some('v') => What::UidValidity,
                _ => return Err(wrong("after % comes u (UID) or v (UIDVALIDITY)")),
            };
            parts.push(Part::Number { what, base, width });
            rest = code.get(1..).unwrap_or_default();
        }
        if !parts.iter().any(|part| matches!(part, Part::Number { what: What::Uid, .. })) {
            return Err(wrong("without %u all messages have the same name"));
        }
        let format = UidlFormat { text: text.to_owned(), parts };
        if let (Some(uid), Some(uid_validity)) = (Uid::new(u32::MAX), UidValidity::new(u32::MAX))
            && format.name(uid, uid_validity).len() > NAME_BYTES_MAX
        {
            return Err(wrong("names become longer than 70 octets"));
        }
        Ok(format)
    }
}

/// As it was written.
impl fmt::Display for UidlFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl UidlFormat {
    /// The name of a message.
    pub fn name(&self, uid: Uid, uid_validity: UidValidity) -> String {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Number { what, base, width } => {
                    let number = match what {
                        What::Uid => uid.get(),
                        What::UidValidity => uid_validity.get(),
                    };
                    name.push_str(&match base {
                        Base::Decimal => format!("{number:0width$}"),
                        Base::LowerHex => format!("{number:0width$x}"),
                        Base::UpperHex => format!("{number:0width$X}"),
                    });
                }
            }
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let (uid, validity) = (Uid::new(31).expect("a UID"), UidValidity::new(1_000_000_000).expect("a UIDVALIDITY"));
        for (format, name) in [
            ("%08Xu%08Xv", "0000001F3B9ACA00"),
            ("%v.%u", "1000000000.31"),
            ("UID%u-%v", "UID31-1000000000"),
            ("%u", "31"),
            ("%xu%%", "1f%"),
        ] {
            assert_eq!(format.parse::<UidlFormat>().expect(format).name(uid, validity), name);
        }
        assert_eq!("%08Xu%08Xv".parse::<UidlFormat>().ok(), Some(UidlFormat::default()));
        for bad in ["", "%v", "%", "%q", "%u %v", "%8u", "%0999u", "%uä", &"%020u".repeat(4)] {
            assert!(bad.parse::<UidlFormat>().is_err(), "{bad}");
        }
    }
}
