//! Address lists (RFC 5322 §3.4 and §4.4) as IMAP's ENVELOPE shows them (RFC 9051 §7.5.2).
//!
//! Nothing is refused; what can be kept is kept. The choices:
//! * a local part without a domain has the empty `host`, never `None` (that would make it a group) and
//!   never an invented word; an angle address that is empty (`<>`) has empty `mailbox` and `host`;
//! * words without any address (`John Doe`) are a display name with empty `mailbox` and `host`, but a single
//!   word (`root`) is a local part;
//! * a comment is the display name where there is no phrase (`jd@x (John Doe)`);
//! * the text before `<` is the display name even if it has characters that only a quoted string may have
//!   (`jd@x <jd@x>`);
//! * a quote, comment, angle bracket or domain literal that is never closed is taken as ordinary text or as
//!   closed by the next comma.
//!
//! The time is linear in the value: a search for a closing quote or parenthesis that failed once is not made
//! again.

use crate::encoded_word::decode_unstructured;

/// One address of an address list as IMAP represents it (RFC 9051 §7.5.2), undecoded.
///
/// A group is an address with `mailbox` = the group's name and no `host`, then its members, then an
/// address with neither `mailbox` nor `host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Display name ("personal name"), dequoted and unfolded, still with encoded words.
    pub name: Option<Vec<u8>>,
    /// Obsolete source route ("at-domain-list").
    pub adl: Option<Vec<u8>>,
    /// Local part, dequoted.
    pub mailbox: Option<Vec<u8>>,
    /// Domain.
    pub host: Option<Vec<u8>>,
}

impl Address {
    /// The address as one decoded text, for SEARCH and display: `Name <mailbox@host>`; a group's name alone
    /// for the start of a group; nothing for its end.
    pub fn text(&self) -> String {
        let mut address = String::new();
        if let Some(mailbox) = &self.mailbox {
            address.push_str(&decode_unstructured(mailbox));
        }
        if let Some(host) = self.host.as_deref().filter(|host| !host.is_empty()) {
            address.push('@');
            address.push_str(&decode_unstructured(host));
        }
        match &self.name {
            Some(name) => format!("{} <{address}>", decode_unstructured(name)),
            None => address,
        }
    }
}

/// The addresses of a raw field value, at most `addresses_max` entries (starts and ends of groups count).
pub fn parse_addresses(value: &[u8], addresses_max: usize) -> Vec<Address> {
    let mut parser = Parser { lexer: Lexer::new(value), addresses: Vec::new(), addresses_max, in_group: false };
    parser.address_list();
    parser.addresses
}

/// A piece of an address list.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Ordinary characters or a quoted string, dequoted; whether it was quoted.
    Word(Vec<u8>, bool),
    /// A comment's text, without the outer parentheses.
    Comment(Vec<u8>),
    /// A domain literal, brackets included.
    Literal(Vec<u8>),
    /// White space or folding.
    Space,
    /// One of `< > @ , ; :`.
    Special(u8),
}

/// Cuts a value into [`Token`]s.
struct Lexer<'a> {
    value: &'a [u8],
    position: usize,
    /// No closing `"`, `)`, `]` comes any more: their openers are ordinary characters from here on.
    quotes_end: bool,
    comments_end: bool,
    literals_end: bool,
}

impl<'a> Lexer<'a> {
    fn new(value: &'a [u8]) -> Self {
        Lexer { value, position: 0, quotes_end: false, comments_end: false, literals_end: false }
    }

    /// The text from an opener to its closer and the position after it, quoted pairs resolved, line ends and
    /// NULs dropped. `None` if it is never closed.
    fn delimited(&self, open: u8, close: u8) -> Option<(Vec<u8>, usize)> {
        let mut text = Vec::new();
        let mut depth = 0usize;
        let mut position = self.position + 1;
        loop {
            let mut octet = *self.value.get(position)?;
            position += 1;
            if octet == b'\\' {
                octet = *self.value.get(position)?;
                position += 1;
            } else if octet == close {
                match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => return Some((text, position)),
                }
            } else if octet == open {
                depth += 1;
            }
            if !matches!(octet, b'\r' | b'\n' | 0) {
                text.push(octet);
            }
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let first = *self.value.get(self.position)?;
        let opened = match first {
            b'"' if !self.quotes_end => match self.delimited(b'"', b'"') {
                Some((text, end)) => Some((Token::Word(text, true), end)),
                None => {
                    self.quotes_end = true;
                    None
                }
            },
            b'(' if !self.comments_end => match self.delimited(b'(', b')') {
                Some((text, end)) => Some((Token::Comment(text), end)),
                None => {
                    self.comments_end = true;
                    None
                }
            },
            b'[' if !self.literals_end => match self.delimited(b'[', b']') {
                Some((mut text, end)) => {
                    text.insert(0, b'[');
                    text.push(b']');
                    Some((Token::Literal(text), end))
                }
                None => {
                    self.literals_end = true;
                    None
                }
            },
            b'<' | b'>' | b'@' | b',' | b';' | b':' => Some((Token::Special(first), self.position + 1)),
            _ => None,
        };
        if let Some((token, end)) = opened {
            self.position = end;
            return Some(token);
        }
        let rest = self.value.get(self.position..)?;
        let is_space = |octet: &u8| matches!(octet, b' ' | b'\t' | b'\r' | b'\n' | 0);
        let spaces = rest.iter().take_while(|octet| is_space(octet)).count();
        if spaces > 0 {
            self.position += spaces;
            return Some(Token::Space);
        }
        // At least one character: an opener that is never closed is an ordinary one.
        let length = 1 + rest
            .iter()
            .skip(1)
            .take_while(|octet| {
                !is_space(octet) && !matches!(octet, b'"' | b'(' | b'[' | b'<' | b'>' | b'@' | b',' | b';' | b':')
            })
            .count();
        self.position += length;
        Some(Token::Word(rest.get(..length)?.to_vec(), false))
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    addresses: Vec<Address>,
    addresses_max: usize,
    in_group: bool,
}

impl Parser<'_> {
    /// `address-list = (address *("," address))`, `group = display-name ":" [group-list] ";"`.
    fn address_list(&mut self) {
        let mut tokens = Vec::new();
        let mut in_angle = false;
        let mut angle_route = false;
        // Whether the tokens hold an "@" or "<": no group's name then.
        let mut has_address = false;
        while let Some(token) = self.lexer.next() {
            if self.addresses.len() >= self.addresses_max {
                return;
            }
            has_address |= matches!(token, Token::Special(b'@' | b'<'));
            match token {
                Token::Special(b'<') => {
                    in_angle = true;
                    angle_route = false;
                    tokens.push(token);
                }
                Token::Special(b'>') => {
                    in_angle = false;
                    tokens.push(token);
                }
                // RFC 5322 §4.4 obs-route: "<@a,@b:local@c>".
                Token::Special(b'@') => {
                    angle_route |= in_angle && last_solid(&tokens) == Some(&Token::Special(b'<'));
                    tokens.push(token);
                }
                Token::Special(b',' | b':') if in_angle && angle_route => {
                    angle_route = token != Token::Special(b':');
                    tokens.push(token);
                }
                Token::Special(b',') => {
                    in_angle = false;
                    has_address = false;
                    self.address(&std::mem::take(&mut tokens));
                }
                Token::Special(b':') if !in_angle && !self.in_group && !has_address => {
                    self.in_group = true;
                    let name = Some(phrase(&std::mem::take(&mut tokens)));
                    self.add(Address { mailbox: name, ..Address::default() });
                }
                Token::Special(b';') if !in_angle => {
                    has_address = false;
                    self.address(&std::mem::take(&mut tokens));
                    if std::mem::take(&mut self.in_group) {
                        self.add(Address::default());
                    }
                }
                token => tokens.push(token),
            }
        }
        self.address(&tokens);
        if self.in_group {
            self.add(Address::default());
        }
    }

    fn add(&mut self, address: Address) {
        // The end of a group that began before the limit is still added: the list stays well-formed.
        let is_group_end = address.mailbox.is_none();
        if self.addresses.len() < self.addresses_max || is_group_end {
            self.addresses.push(address);
        }
    }

    /// `mailbox = name-addr / addr-spec`: one address's tokens, without the comma.
    fn address(&mut self, tokens: &[Token]) {
        if tokens.iter().all(|token| matches!(token, Token::Space)) {
            return;
        }
        let comment = tokens.iter().rev().find_map(|token| match token {
            Token::Comment(text) if !text.trim_ascii().is_empty() => Some(text.trim_ascii().to_vec()),
            _ => None,
        });
        // The last "<" is the angle address; an earlier one belongs to the name.
        let angle = tokens.iter().rposition(|token| *token == Token::Special(b'<'));
        let mut address = match angle.map(|at| tokens.split_at(at)) {
            Some((name, route_addr)) => {
                let inside = route_addr.get(1..).unwrap_or_default();
                let end = inside.iter().position(|token| *token == Token::Special(b'>'));
                let mut address = route_address(inside.get(..end.unwrap_or(inside.len())).unwrap_or(inside));
                address.name = Some(phrase(name)).filter(|name| !name.is_empty());
                address
            }
            None if has_address(tokens) => addr_spec(tokens),
            None => {
                let words = phrase(tokens);
                let solid = tokens.iter().filter(|t| !matches!(t, Token::Space | Token::Comment(_)));
                if solid.count() > 1 {
                    Address { name: Some(words), ..nowhere() }
                } else if words.is_empty() && comment.is_none() {
                    return;
                } else {
                    Address { mailbox: Some(words), ..nowhere() }
                }
            }
        };
        if address.name.is_none() {
            address.name = comment;
        }
        self.add(address);
    }
}

/// An address of which nothing is known: present, but empty.
fn nowhere() -> Address {
    Address { mailbox: Some(Vec::new()), host: Some(Vec::new()), ..Address::default() }
}

fn has_address(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| matches!(token, Token::Special(b'@' | b'<')))
}

fn last_solid(tokens: &[Token]) -> Option<&Token> {
    tokens.iter().rev().find(|token| !matches!(token, Token::Space | Token::Comment(_)))
}

/// The inside of `<...>`: `[obs-route] addr-spec`.
fn route_address(tokens: &[Token]) -> Address {
    let colon = tokens.iter().position(|token| *token == Token::Special(b':'));
    let starts_with_at =
        tokens.iter().find(|token| !matches!(token, Token::Space | Token::Comment(_))) == Some(&Token::Special(b'@'));
    match colon.filter(|_| starts_with_at).map(|at| tokens.split_at(at)) {
        Some((route, rest)) => {
            Address { adl: Some(joined(route, false)), ..addr_spec(rest.get(1..).unwrap_or_default()) }
        }
        None => addr_spec(tokens),
    }
}

/// `addr-spec = local-part "@" domain`. The domain ends at white space, after which anything is ignored, and
/// the local part is what stands before the last `@`.
fn addr_spec(tokens: &[Token]) -> Address {
    let Some(at) = tokens.iter().rposition(|token| *token == Token::Special(b'@')) else {
        return Address { mailbox: Some(joined(tokens, true)), ..nowhere() };
    };
    let (local, domain) = tokens.split_at(at);
    Address {
        mailbox: Some(joined(local, true)),
        host: Some(dotted(domain.get(1..).unwrap_or_default())),
        ..Address::default()
    }
}

/// A domain: words that are joined by dots, with white space and comments around the dots (RFC 5322 §4.4
/// obs-domain); it ends with the first word that is not.
fn dotted(tokens: &[Token]) -> Vec<u8> {
    let mut domain: Vec<u8> = Vec::new();
    let mut gap = false;
    for token in tokens {
        match token {
            Token::Word(text, _) | Token::Literal(text) => {
                let joins = domain.is_empty() || domain.ends_with(b".") || text.starts_with(b".");
                if gap && !joins {
                    break;
                }
                domain.extend_from_slice(text);
                gap = false;
            }
            Token::Space | Token::Comment(_) => gap = true,
            Token::Special(_) => break,
        }
    }
    domain
}

/// The words of a display name: one space where there was any white space, quotes and comments gone.
fn phrase(tokens: &[Token]) -> Vec<u8> {
    joined(tokens, true)
}

/// Tokens as text, dequoted, without comments; white space is one space or, if not wanted, nothing. A space
/// beside a dot, as obs-local-part has it, stays: what it means in a broken address is not ours to say.
fn joined(tokens: &[Token], spaces: bool) -> Vec<u8> {
    let mut text = Vec::new();
    for token in tokens {
        match token {
            Token::Word(word, _) | Token::Literal(word) => text.extend_from_slice(word),
            Token::Special(octet) => text.push(*octet),
            Token::Space | Token::Comment(_) if !spaces => {}
            Token::Space | Token::Comment(_) if text.is_empty() || text.ends_with(b" ") => {}
            Token::Space | Token::Comment(_) => text.push(b' '),
        }
    }
    text.truncate(text.trim_ascii_end().len());
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Addresses as `name|adl|mailbox|host`, `-` for none.
    fn shown(value: &str) -> Vec<String> {
        let show = |field: &Option<Vec<u8>>| match field {
            Some(text) => String::from_utf8_lossy(text).into_owned(),
            None => "-".to_string(),
        };
        parse_addresses(value.as_bytes(), 1000)
            .iter()
            .map(|a| [&a.name, &a.adl, &a.mailbox, &a.host].map(show).join("|"))
            .collect()
    }

    #[test]
    fn plain_forms() {
        assert_eq!(shown(" jd@example.org"), ["-|-|jd|example.org"]);
        assert_eq!(shown("John Doe <jd@example.org>"), ["John Doe|-|jd|example.org"]);
        assert_eq!(shown("\"Doe, John\" <jd@x>, a@b"), ["Doe, John|-|jd|x", "-|-|a|b"]);
        assert_eq!(shown("jd@x (John (Jack) Doe)"), ["John (Jack) Doe|-|jd|x"]);
        assert_eq!(shown("Name <a@b> (ignored)"), ["Name|-|a|b"]);
        assert_eq!(shown("\"j \\\"d\\\"\"@x"), ["-|-|j \"d\"|x"]);
        assert_eq!(shown("John\r\n Doe\r\n\t<jd@x>"), ["John Doe|-|jd|x"]);
        assert_eq!(shown("a@[10.0.0.1]"), ["-|-|a|[10.0.0.1]"]);
        assert_eq!(shown("=?utf-8?Q?J=C3=B6?= <j@x>"), ["=?utf-8?Q?J=C3=B6?=|-|j|x"]);
    }

    #[test]
    fn routes_and_groups() {
        assert_eq!(shown("<@a,@b:c@d>"), ["-|@a,@b|c|d"]);
        assert_eq!(shown("N <@a:c@d>, e@f"), ["N|@a|c|d", "-|-|e|f"]);
        assert_eq!(shown("undisclosed-recipients:;"), ["-|-|undisclosed-recipients|-", "-|-|-|-"]);
        assert_eq!(
            shown("A Group: Ed <e@x>, j@y; z@z"),
            ["-|-|A Group|-", "Ed|-|e|x", "-|-|j|y", "-|-|-|-", "-|-|z|z"]
        );
        assert_eq!(shown("open: a@b"), ["-|-|open|-", "-|-|a|b", "-|-|-|-"]);
    }

    #[test]
    fn broken_forms_keep_what_can_be_kept() {
        assert_eq!(shown(""), [""; 0]);
        assert_eq!(shown(" , ,"), [""; 0]);
        assert_eq!(shown("root"), ["-|-|root|"]);
        assert_eq!(shown("root (Charlie Root)"), ["Charlie Root|-|root|"]);
        assert_eq!(shown("John Doe"), ["John Doe|-||"]);
        assert_eq!(shown("<>"), ["-|-||"]);
        assert_eq!(shown("Nobody <>"), ["Nobody|-||"]);
        assert_eq!(shown("<jd>"), ["-|-|jd|"]);
        assert_eq!(shown("a@b <a@b>"), ["a@b|-|a|b"]);
        assert_eq!(shown("\"Unclosed <a@b>"), ["\"Unclosed|-|a|b"]);
        assert_eq!(shown("(unclosed a@b"), ["-|-|(unclosed a|b"]);
        assert_eq!(shown("<a@b, c@d"), ["-|-|a|b", "-|-|c|d"]);
        assert_eq!(shown("<Nobody:;@x>"), ["-|-|Nobody:;|x"]);
        assert_eq!(shown("a@b c@d"), ["-|-|a@b c|d"]);
        assert_eq!(shown("a@"), ["-|-|a|"]);
        assert_eq!(shown("@b"), ["-|-||b"]);
        assert_eq!(shown("j@x . org (Joe)"), ["Joe|-|j|x.org"]);
        assert_eq!(shown("<a@b> junk"), ["-|-|a|b"]);
        assert_eq!(shown("(only a comment)"), ["only a comment|-||"]);
    }

    #[test]
    fn limit_counts_entries() {
        assert_eq!(parse_addresses(b"a@b,c@d,e@f", 2).len(), 2);
        assert_eq!(parse_addresses(b"g:a@b,c@d;", 2).len(), 2);
    }

    #[test]
    fn text_is_decoded() {
        let all = parse_addresses(b"=?utf-8?Q?J=C3=B6?= <j@x>, g:;", 10);
        assert_eq!(all[0].text(), "J\u{f6} <j@x>");
        assert_eq!(all[1].text(), "g");
        assert_eq!(all[2].text(), "");
    }

    #[test]
    fn openers_without_end_cost_linear_time() {
        let value = b"\"\\".repeat(200_000);
        parse_addresses(&value, 10);
        let value = b"(".repeat(200_000);
        parse_addresses(&value, 10);
        let value = b"<@".repeat(200_000);
        parse_addresses(&value, 10);
    }
}
