//! Commands (RFC 1939 §3: a keyword of three or four letters and arguments, each divided by one space).

/// A command line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Capa,
    User(Vec<u8>),
    Pass(Vec<u8>),
    /// The mechanism in upper case, if one is named, and the initial response.
    Auth(Option<(String, Option<Vec<u8>>)>),
    Stls,
    Utf8,
    Stat,
    List(Option<u32>),
    Uidl(Option<u32>),
    Retr(u32),
    /// A message and so many lines of its body.
    Top(u32, u64),
    Dele(u32),
    Noop,
    Rset,
    Quit,
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Unknown,
    Arguments,
}

impl Command {
    /// From a line without its end.
    pub(super) fn parse(line: &[u8]) -> Result<Command, Wrong> {
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let rest = rest.get(1..);
        let word = word.to_ascii_uppercase();
        // PASS takes everything behind the space, spaces included (RFC 1939 §7); of the others spaces at the end are let pass.
        if word == b"PASS" {
            return rest
                .filter(|rest| !rest.is_empty())
                .map(|rest| Command::Pass(rest.to_vec()))
                .ok_or(Wrong::Arguments);
        }
        let arguments: Vec<&[u8]> =
            rest.unwrap_or_default().split(|byte| *byte == b' ').filter(|argument| !argument.is_empty()).collect();
        match (word.as_slice(), arguments.as_slice()) {
            (b"CAPA", []) => Ok(Command::Capa),
            (b"USER", [user]) => Ok(Command::User(user.to_vec())),
            (b"AUTH", []) => Ok(Command::Auth(None)),
            (b"AUTH", [mechanism, initial @ ..]) if initial.len() <= 1 => {
                let mechanism = String::from_utf8_lossy(mechanism).to_ascii_uppercase();
                Ok(Command::Auth(Some((mechanism, initial.first().map(|initial| initial.to_vec())))))
            }
            (b"STLS", []) => Ok(Command::Stls),
            (b"UTF8", []) => Ok(Command::Utf8),
            (b"STAT", []) => Ok(Command::Stat),
            (b"LIST", []) => Ok(Command::List(None)),
            (b"LIST", [message]) => Ok(Command::List(Some(number(message)?))),
            (b"UIDL", []) => Ok(Command::Uidl(None)),
            (b"UIDL", [message]) => Ok(Command::Uidl(Some(number(message)?))),
            (b"RETR", [message]) => Ok(Command::Retr(number(message)?)),
            (b"TOP", [message, lines]) => Ok(Command::Top(number(message)?, lines_of(lines)?)),
            (b"DELE", [message]) => Ok(Command::Dele(number(message)?)),
            (b"NOOP", []) => Ok(Command::Noop),
            (b"RSET", []) => Ok(Command::Rset),
            (b"QUIT", []) => Ok(Command::Quit),
            (
                b"CAPA" | b"USER" | b"AUTH" | b"STLS" | b"UTF8" | b"STAT" | b"LIST" | b"UIDL" | b"RETR" | b"TOP"
                | b"DELE" | b"NOOP" | b"RSET" | b"QUIT",
                _,
            ) => Err(Wrong::Arguments),
            _ => Err(Wrong::Unknown),
        }
    }

    /// Its keyword.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Command::Capa => "CAPA",
            Command::User(_) => "USER",
            Command::Pass(_) => "PASS",
            Command::Auth(_) => "AUTH",
            Command::Stls => "STLS",
            Command::Utf8 => "UTF8",
            Command::Stat => "STAT",
            Command::List(_) => "LIST",
            Command::Uidl(_) => "UIDL",
            Command::Retr(_) => "RETR",
            Command::Top(..) => "TOP",
            Command::Dele(_) => "DELE",
            Command::Noop => "NOOP",
            Command::Rset => "RSET",
            Command::Quit => "QUIT",
        }
    }
}

/// A message number; 0 is none. One that is larger than any is like one that is not there.
fn number(text: &[u8]) -> Result<u32, Wrong> {
    Ok(u32::try_from(lines_of(text)?).unwrap_or(u32::MAX))
}

fn lines_of(text: &[u8]) -> Result<u64, Wrong> {
    let text = std::str::from_utf8(text).map_err(|_| Wrong::Arguments)?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Wrong::Arguments);
    }
    Ok(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        for (line, expected) in [
            ("user ann@example.org", Ok(Command::User(b"ann@example.org".to_vec()))),
            ("PASS  two words ", Ok(Command::Pass(b" two words ".to_vec()))),
            ("PASS", Err(Wrong::Arguments)),
            ("Top 3 10", Ok(Command::Top(3, 10))),
            ("TOP 3", Err(Wrong::Arguments)),
            ("LIST", Ok(Command::List(None))),
            ("LIST 99999999999999999999999", Ok(Command::List(Some(u32::MAX)))),
            ("RETR -1", Err(Wrong::Arguments)),
            ("AUTH plain AGEAYg==", Ok(Command::Auth(Some(("PLAIN".to_owned(), Some(b"AGEAYg==".to_vec())))))),
            ("QUIT ", Ok(Command::Quit)),
            ("", Err(Wrong::Unknown)),
            ("GET / HTTP/1.1", Err(Wrong::Unknown)),
        ] {
            assert_eq!(Command::parse(line.as_bytes()), expected, "{line}");
        }
    }
}
