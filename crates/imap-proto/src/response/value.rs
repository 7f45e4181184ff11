//! The data of a FETCH response as a tree (RFC 9051 §9 msg-att), for clients.

use crate::NameEncoding;
use crate::command::Section;
use crate::encode::{literal8_mark, number, string};
use crate::error::Parse;
use crate::limits;
use crate::scan::{Scan, ascii};

/// An item of a FETCH response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchItem {
    /// The name in upper case, without brackets: `FLAGS`, `BODY`, `BINARY.SIZE`.
    pub name: String,
    /// The section of `BODY[...]`; for `BINARY[...]` and `BINARY.SIZE[...]`, with the part only.
    pub section: Option<Section>,
    /// The origin octet of a partial.
    pub origin: Option<u64>,
    /// The value.
    pub value: Value,
}

/// A value in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `NIL`
    Nil,
    /// An atom, a number or a flag, as sent.
    Atom(String),
    /// A quoted string or a literal.
    String(Vec<u8>),
    /// `( )`
    List(Vec<Value>),
}

impl Value {
    /// The value as a number.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Atom(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The octets of a string.
    pub fn octets(&self) -> Option<&[u8]> {
        match self {
            Value::String(octets) => Some(octets),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.extend_from_slice(b"NIL"),
            Value::Atom(text) => out.extend_from_slice(text.as_bytes()),
            // Only data of BINARY can have a NUL, and that is a literal8.
            Value::String(octets) if octets.contains(&0) => {
                literal8_mark(out, octets.len() as u64);
                out.extend_from_slice(octets);
            }
            // Raw 8-bit octets as a literal in any session.
            Value::String(octets) => string(out, octets, NameEncoding::Utf7),
            Value::List(values) => {
                out.push(b'(');
                for (n, value) in values.iter().enumerate() {
                    // Bodies of a multipart stand without a space between; readers take both.
                    if n > 0 {
                        out.push(b' ');
                    }
                    value.write(out);
                }
                out.push(b')');
            }
        }
    }
}

impl FetchItem {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name.as_bytes());
        if let Some(section) = &self.section {
            section.write(out);
        }
        if let Some(origin) = self.origin {
            out.push(b'<');
            number(out, origin);
            out.push(b'>');
        }
        out.push(b' ');
        self.value.write(out);
    }
}

// RFC 9051 §9 msg-att-dynamic, msg-att-static
pub(super) fn msg_att(scan: &mut Scan) -> Parse<FetchItem> {
    let before = scan.clone();
    let name = scan.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'[' | b'(' | b')' | b'"' | b'<'));
    if name.is_empty() {
        return before.error("an item of FETCH");
    }
    let name = ascii(name).to_ascii_uppercase();
    let mut section = None;
    if scan.peek() == Some(b'[') {
        section = Some(crate::command::section(scan)?);
    }
    let mut origin = None;
    if scan.eat(b'<') {
        origin = Some(scan.number64()?);
        scan.expect(b'>', "> after an origin")?;
    }
    scan.sp()?;
    Ok(FetchItem { name, section, origin, value: value(scan)? })
}

/// Any value: the tree that all data of FETCH fits in. Lists may have no spaces between their lists (RFC 9051 §9 body-type-mpart).
fn value(scan: &mut Scan) -> Parse<Value> {
    match scan.peek() {
        Some(b'(') => scan.parenthesised(|scan| {
            let mut values = Vec::new();
            while !matches!(scan.peek(), None | Some(b')')) {
                if values.len() >= limits::RESPONSE_LIST_MAX {
                    return scan.over_limit("response_list_max");
                }
                values.push(value(scan)?);
                scan.skip_spaces();
            }
            Ok(Value::List(values))
        }),
        Some(b'"') => scan.quoted().map(Value::String),
        // A server may have messages with NULs in it: whatever comes in a literal is taken.
        Some(b'{') => scan.literal().map(|octets| Value::String(octets.to_vec())),
        Some(b'~') if scan.rest().get(1) == Some(&b'{') => {
            scan.eat(b'~');
            scan.literal().map(|octets| Value::String(octets.to_vec()))
        }
        _ => {
            let before = scan.clone();
            let octets = scan.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'(' | b')' | b'"' | b'{'));
            match octets {
                [] => before.error("a value"),
                octets if octets.eq_ignore_ascii_case(b"NIL") => Ok(Value::Nil),
                octets => Ok(Value::Atom(ascii(octets).to_owned())),
            }
        }
    }
}
