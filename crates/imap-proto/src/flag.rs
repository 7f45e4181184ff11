//! Flags as they are written (RFC 9051 §9 flag).

use model::{Keyword, SystemFlag};

use crate::chars::is_atom_char;
use crate::error::Parse;
use crate::limits;
use crate::scan::{Scan, ascii};

/// The name of a flag, in a command or in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagName {
    /// One of the five that every mailbox has.
    System(SystemFlag),
    /// A keyword.
    Keyword(Keyword),
    /// `\Recent`: RFC 3501 §2.3.2 lets no client set it, so a session answers BAD or leaves it out.
    Recent,
    /// Another name with a backslash (flag-extension); kept as written, with the backslash.
    Extension(String),
}

impl FlagName {
    /// The flag as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            FlagName::System(flag) => flag.as_str(),
            FlagName::Keyword(keyword) => keyword.as_str(),
            FlagName::Recent => "\\Recent",
            FlagName::Extension(name) => name,
        }
    }
}

// RFC 9051 §9 flag = "\Answered" / ... / flag-keyword / flag-extension; "\Recent" is read too and told apart.
pub(crate) fn flag(scan: &mut Scan) -> Parse<FlagName> {
    if scan.peek() != Some(b'\\') {
        return flag_keyword(scan).map(FlagName::Keyword);
    }
    let before = scan.clone();
    scan.eat(b'\\');
    let rest = scan.atom("the name of a flag")?;
    if rest.len() > model::limits::KEYWORD_BYTES_MAX {
        return before.over_limit("keyword_bytes_max");
    }
    let name = format!("\\{rest}");
    Ok(match SystemFlag::parse(&name) {
        Some(flag) => FlagName::System(flag),
        None if name.eq_ignore_ascii_case("\\Recent") => FlagName::Recent,
        None => FlagName::Extension(name),
    })
}

// RFC 9051 §9 flag-keyword = "$MDNSent" / ... / atom
pub(crate) fn flag_keyword(scan: &mut Scan) -> Parse<Keyword> {
    let before = scan.clone();
    let octets = scan.take_while(is_atom_char);
    match Keyword::new(ascii(octets)) {
        Ok(keyword) => Ok(keyword),
        Err(error) if error.limit().is_some() => before.over_limit("keyword_bytes_max"),
        Err(_) => before.error("a flag"),
    }
}

// RFC 9051 §9 flag-list = "(" [flag *(SP flag)] ")"
pub(crate) fn flag_list(scan: &mut Scan) -> Parse<Vec<FlagName>> {
    scan.list0(limits::FLAGS_MAX, "flags_max", flag)
}

pub(crate) fn write_flag_list(out: &mut Vec<u8>, flags: &[FlagName]) {
    out.push(b'(');
    for (n, flag) in flags.iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(flag.as_str().as_bytes());
    }
    out.push(b')');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_apart() {
        let list = flag_list(&mut Scan::new(b"(\\seen $Junk \\RECENT \\Foo)")).unwrap();
        let names: Vec<_> = list.iter().map(FlagName::as_str).collect();
        assert_eq!(names, ["\\Seen", "$Junk", "\\Recent", "\\Foo"]);
        assert_eq!(list[0], FlagName::System(SystemFlag::Seen));
        assert!(matches!(list[2], FlagName::Recent) && matches!(list[3], FlagName::Extension(_)));
        assert_eq!(flag_list(&mut Scan::new(b"()")), Ok(vec![]));
        assert!(flag_list(&mut Scan::new(b"(\\*)")).is_err() && flag_list(&mut Scan::new(b"(\"a\")")).is_err());
    }

    #[test]
    fn flags_have_limits() {
        let list = |count: usize| format!("({})", vec!["x"; count].join(" "));
        assert!(flag_list(&mut Scan::new(list(limits::FLAGS_MAX).as_bytes())).is_ok());
        let error = flag_list(&mut Scan::new(list(limits::FLAGS_MAX + 1).as_bytes())).unwrap_err();
        assert_eq!(error.limit, Some("flags_max"));
        let long = "x".repeat(model::limits::KEYWORD_BYTES_MAX);
        assert!(flag(&mut Scan::new(long.as_bytes())).is_ok());
        assert_eq!(flag(&mut Scan::new(format!("{long}x").as_bytes())).unwrap_err().limit, Some("keyword_bytes_max"));
        assert!(flag(&mut Scan::new(format!("\\{long}").as_bytes())).is_ok());
        assert_eq!(flag(&mut Scan::new(format!("\\{long}x").as_bytes())).unwrap_err().limit, Some("keyword_bytes_max"));
    }
}
