//! Addresses of the envelope (RFC 5321 §4.1.2, RFC 6531 §3.3).

use super::PATH_BYTES_MAX;

/// An address, with or without a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    text: String,
    local: String,
    domain: Option<String>,
}

impl Address {
    /// As it was written, without the angle brackets and without a source route.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The local part, without the quotes that it may have been written with.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// The domain in lower case. Clients of this machine may leave it out.
    pub fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// Whether it can only be used with SMTPUTF8.
    pub fn is_international(&self) -> bool {
        !self.text.is_ascii()
    }
}

/// Reverse-path or Forward-path: `"<" [ A-d-l ":" ] Mailbox ">"`; `Some(None)` is `<>`. With what comes behind it.
pub(super) fn path(text: &str) -> Option<(Option<Address>, &str)> {
    let mut rest = text.strip_prefix('<')?;
    if rest.starts_with('@') {
        // RFC 5321 §4.1.2: a source route is accepted and ignored.
        rest = rest.split_once(':')?.1;
    }
    if let Some(after) = rest.strip_prefix('>') {
        return Some((None, after));
    }
    let (local, after_local) = local_part(rest)?;
    let (domain, after) = match after_local.strip_prefix('@') {
        Some(domain) => {
            let (domain, after) = domain.split_once('>')?;
            (Some(domain).filter(|domain| is_domain(domain)).map(|_| domain.to_lowercase())?.into(), after)
        }
        None => (None, after_local.strip_prefix('>')?),
    };
    let text = rest.get(..rest.len().checked_sub(after.len())?.checked_sub(1)?)?;
    let is_whole = after.is_empty() || after.starts_with(' ');
    (is_whole && text.len() <= PATH_BYTES_MAX).then(|| (Some(Address { text: text.to_owned(), local, domain }), after))
}

/// Local-part: Dot-string or Quoted-string. Dots may stand anywhere, as they do in addresses that are in use.
fn local_part(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(|c: char| !is_atext(c) && c != '.')?;
        let (local, rest) = text.split_at(end);
        return (!local.is_empty()).then(|| (local.to_owned(), rest));
    };
    let mut local = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((local, quoted.get(at + 1..)?)),
            '\\' => local.push(characters.next()?.1),
            other => local.push(other),
        }
    }
    None
}

/// RFC 5322 §3.2.3 atext, RFC 6531 §3.3.
fn is_atext(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character) || is_international(character)
}

fn is_international(character: char) -> bool {
    !character.is_ascii() && !character.is_control()
}

/// Domain or address-literal; underscores are in use.
pub(super) fn is_domain(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|literal| literal.strip_suffix(']')) {
        Some(literal) => literal.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-".contains(&byte)),
        None => {
            let is_fine = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c) || is_international(c);
            !text.is_empty() && text.chars().all(is_fine)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let address = |text: &str, local: &str, domain: Option<&str>| {
            Some(Address { text: text.into(), local: local.into(), domain: domain.map(str::to_owned) })
        };
        for (text, expected, rest) in [
            ("<>", None, ""),
            ("<ann@Example.org> SIZE=1", address("ann@Example.org", "ann", Some("example.org")), " SIZE=1"),
            ("<ann>", address("ann", "ann", None), ""),
            ("<@a.example,@b.example:ann@c.example>", address("ann@c.example", "ann", Some("c.example")), ""),
            (
                "<\"a \\\"b\\\\ >@c\"@d.example>",
                address("\"a \\\"b\\\\ >@c\"@d.example", "a \"b\\ >@c", Some("d.example")),
                "",
            ),
            ("<a..b.@[IPv6:::1]>", address("a..b.@[IPv6:::1]", "a..b.", Some("[ipv6:::1]")), ""),
            ("<jörg@exämple.org>", address("jörg@exämple.org", "jörg", Some("exämple.org")), ""),
        ] {
            assert_eq!(path(text), Some((expected, rest)), "{text}");
        }
        for bad in [
            "",
            "ann@example.org",
            "<ann@example.org",
            "<ann@>",
            "<@example.org>",
            "<a b@example.org>",
            "<ann@exa mple>",
            "<ann@a>x",
            "<\"ann@a>",
            "<a@b@c>",
            "<a<b@c>",
            "<\"a\\",
            &format!("<{}@a>", "x".repeat(PATH_BYTES_MAX)),
        ] {
            assert_eq!(path(bad), None, "{bad}");
        }
    }

    #[test]
    fn characters_of_local_parts() {
        for byte in 0..=0x7fu8 {
            let expected = byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
            assert_eq!(is_atext(char::from(byte)), expected, "{byte:#x}");
        }
    }
}
