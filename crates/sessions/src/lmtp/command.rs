//! Commands (RFC 5321 §4.1.1, RFC 2033 §4).

use super::address::{Address, is_domain, path};
use super::reply::{Reply, too_large};
use super::{DOMAIN_BYTES_MAX, ENVID_BYTES_MAX};

/// A command line, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Lhlo(String),
    Mail(Mail),
    /// The recipient, and whether parameters of RFC 3461 stand behind it.
    Rcpt(Address, bool),
    Data,
    /// Octets that follow, and whether they are the last ones (RFC 3030 §2).
    Bdat(u64, bool),
    Rset,
    Noop,
    Vrfy,
    Help,
    Quit,
    StartTls,
}

/// MAIL with its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mail {
    /// `None`: `<>`.
    pub(super) from: Option<Address>,
    /// SIZE (RFC 1870 §3).
    pub(super) size: u64,
    /// BODY=BINARYMIME (RFC 3030 §3).
    pub(super) binary: bool,
    /// SMTPUTF8 (RFC 6531 §3.4).
    pub(super) utf8: bool,
    /// ENVID (RFC 3461 §4.4), as it was sent.
    pub(super) envid: Option<String>,
    /// RET (RFC 3461 §4.3).
    pub(super) has_ret: bool,
}

fn syntax() -> Reply {
    Reply::new(501, "5.5.4", "The arguments are wrong")
}

impl Command {
    /// From a line without its end; or what to answer.
    pub(super) fn parse(line: &[u8]) -> Result<Command, Reply> {
        let line = std::str::from_utf8(line).map_err(|_| Reply::new(500, "5.5.2", "That is not UTF-8"))?;
        if line.contains(char::is_control) {
            return Err(Reply::new(500, "5.5.2", "Control characters have no place in a command"));
        }
        let line = line.trim_end_matches(' ');
        let (word, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let alone = |command: Command| if arguments.is_empty() { Ok(command) } else { Err(syntax()) };
        match word.to_ascii_uppercase().as_str() {
            "LHLO" => match arguments {
                name if name.len() <= DOMAIN_BYTES_MAX && is_domain(name) => Ok(Command::Lhlo(name.to_owned())),
                _ => Err(Reply::new(501, "5.5.4", "LHLO wants a domain or an address literal")),
            },
            // RFC 2033 §4.1.
            "HELO" | "EHLO" => Err(Reply::new(500, "5.5.1", "This is LMTP: say LHLO")),
            "MAIL" => mail(behind(arguments, "FROM:").ok_or_else(syntax)?),
            "RCPT" => rcpt(behind(arguments, "TO:").ok_or_else(syntax)?),
            "DATA" => alone(Command::Data),
            "BDAT" => bdat(arguments).ok_or_else(syntax),
            "RSET" => alone(Command::Rset),
            "NOOP" => Ok(Command::Noop),
            "VRFY" if arguments.is_empty() => Err(syntax()),
            "VRFY" => Ok(Command::Vrfy),
            "HELP" => Ok(Command::Help),
            "QUIT" => alone(Command::Quit),
            "STARTTLS" => alone(Command::StartTls),
            "EXPN" | "TURN" | "AUTH" => Err(Reply::new(502, "5.5.1", "That is not offered")),
            _ => Err(Reply::new(500, "5.5.1", "There is no such command")),
        }
    }

    /// Whether a line, which may be none, would be followed by octets of a message.
    pub(super) fn is_chunk(line: &[u8]) -> bool {
        line.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"BDAT"))
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Command::Lhlo(_) => "LHLO",
            Command::Mail(_) => "MAIL",
            Command::Rcpt(..) => "RCPT",
            Command::Data => "DATA",
            Command::Bdat(..) => "BDAT",
            Command::Rset => "RSET",
            Command::Noop => "NOOP",
            Command::Vrfy => "VRFY",
            Command::Help => "HELP",
            Command::Quit => "QUIT",
            Command::StartTls => "STARTTLS",
        }
    }
}

/// What stands behind `FROM:` or `TO:`; clients that put a space there are in use.
fn behind<'t>(arguments: &'t str, word: &str) -> Option<&'t str> {
    let (found, rest) = arguments.split_at_checked(word.len())?;
    found.eq_ignore_ascii_case(word).then(|| rest.trim_start_matches(' '))
}

/// `MAIL FROM:` Reverse-path [SP Mail-parameters]
fn mail(arguments: &str) -> Result<Command, Reply> {
    let (from, parameters) =
        path(arguments).ok_or_else(|| Reply::new(501, "5.1.7", "The address of the sender is wrong"))?;
    let mut mail = Mail { from, ..Mail::default() };
    for parameter in parameters.split(' ').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').map_or((parameter, None), |(name, value)| (name, Some(value)));
        match (name.to_ascii_uppercase().as_str(), value.map(str::to_ascii_uppercase).as_deref()) {
            ("SIZE", Some(size)) => mail.size = number(size).ok_or_else(syntax)?,
            ("BODY", Some("7BIT" | "8BITMIME")) => mail.binary = false,
            ("BODY", Some("BINARYMIME")) => mail.binary = true,
            ("SMTPUTF8", None) => mail.utf8 = true,
            // RFC 3461 §4.4: xtext, whose meaning is the sender's.
            ("ENVID", Some(_)) if mail.envid.is_none() => {
                let envid = value.filter(|value| (1..=ENVID_BYTES_MAX).contains(&value.len())).ok_or_else(syntax)?;
                mail.envid = Some(envid.to_owned());
            }
            ("RET", Some("FULL" | "HDRS")) => mail.has_ret = true,
            ("SIZE" | "BODY" | "SMTPUTF8" | "ENVID" | "RET", _) => return Err(syntax()),
            _ => return Err(unknown_parameter()),
        }
    }
    if !mail.utf8 && mail.from.as_ref().is_some_and(Address::is_international) {
        return Err(needs_utf8());
    }
    Ok(Command::Mail(mail))
}

/// `RCPT TO:` Forward-path [SP Rcpt-parameters]
fn rcpt(arguments: &str) -> Result<Command, Reply> {
    match path(arguments) {
        Some((Some(address), parameters)) => {
            let mut has_dsn = false;
            for parameter in parameters.split(' ').filter(|parameter| !parameter.is_empty()) {
                let name = parameter.split_once('=').map(|(name, _)| name.to_ascii_uppercase());
                // RFC 3461 §4.1, §4.2: what they say is for who reports on the delivery, which is the client (RFC 2033 §4.2).
                match name.as_deref() {
                    Some("NOTIFY" | "ORCPT") => has_dsn = true,
                    _ => return Err(unknown_parameter()),
                }
            }
            Ok(Command::Rcpt(address, has_dsn))
        }
        _ => Err(Reply::new(501, "5.1.3", "The address of the recipient is wrong")),
    }
}

/// RFC 5321 §4.1.1.11.
pub(super) fn unknown_parameter() -> Reply {
    Reply::new(555, "5.5.4", "A parameter is not known")
}

/// RFC 6531 §3.5.
pub(super) fn needs_utf8() -> Reply {
    Reply::new(553, "5.6.7", "An address of that form needs SMTPUTF8")
}

/// bdat-cmd = "BDAT" SP chunk-size [ SP end-marker ]
fn bdat(arguments: &str) -> Option<Command> {
    match arguments.split_once(' ') {
        None => Some(Command::Bdat(number(arguments)?, false)),
        Some((size, marker)) if marker.eq_ignore_ascii_case("LAST") => Some(Command::Bdat(number(size)?, true)),
        Some(_) => None,
    }
}

/// 1*20DIGIT. One that is larger than any is the largest.
fn number(text: &str) -> Option<u64> {
    let is_number = (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

impl Mail {
    /// RFC 1870 §6.1: what is announced to be too large need not be sent.
    pub(super) fn check_size(&self, message_bytes_max: u64) -> Result<(), Reply> {
        if self.size > message_bytes_max { Err(too_large()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn code(line: &str) -> Option<String> {
        let mut out = crate::Output::new(1000);
        Command::parse(line.as_bytes()).err()?.write(&mut out);
        Some(String::from_utf8_lossy(out.pending()).chars().take(9).collect())
    }

    #[test]
    fn lines() {
        let ann = path("<ann@a.example>").unwrap().0;
        let plain = Mail { from: ann.clone(), ..Mail::default() };
        for (line, expected) in [
            ("lhlo a.example", Command::Lhlo("a.example".into())),
            ("LHLO [127.0.0.1]", Command::Lhlo("[127.0.0.1]".into())),
            ("MAIL FROM:<>", Command::Mail(Mail::default())),
            ("mail from: <ann@a.example>", Command::Mail(plain.clone())),
            (
                "MAIL FROM:<ann@a.example> SIZE=7 body=binarymime SMTPUTF8 RET=hdrs ENVID=QQ314159",
                Command::Mail(Mail {
                    size: 7,
                    binary: true,
                    utf8: true,
                    envid: Some("QQ314159".into()),
                    has_ret: true,
                    ..plain
                }),
            ),
            ("RCPT TO:<ann@a.example>", Command::Rcpt(ann.clone().unwrap(), false)),
            ("RCPT TO:<ann@a.example> notify=NEVER ORCPT=rfc822;ann", Command::Rcpt(ann.unwrap(), true)),
            ("BDAT 0 last", Command::Bdat(0, true)),
            ("BDAT 99999999999999999999", Command::Bdat(u64::MAX, false)),
            ("NOOP whatever it is", Command::Noop),
            ("QUIT ", Command::Quit),
        ] {
            assert_eq!(Command::parse(line.as_bytes()), Ok(expected), "{line}");
        }
        for (line, expected) in [
            ("", "500 5.5.1"),
            ("EHLO a.example", "500 5.5.1"),
            ("LHLO", "501 5.5.4"),
            ("LHLO a b", "501 5.5.4"),
            ("LHLO a\rb", "500 5.5.2"),
            ("MAIL <ann@a.example>", "501 5.5.4"),
            ("MAIL FROM:ann@a.example", "501 5.1.7"),
            ("MAIL FROM:<ann@a.example> SIZE=x", "501 5.5.4"),
            ("MAIL FROM:<ann@a.example> RET=ALL", "501 5.5.4"),
            ("MAIL FROM:<ann@a.example> ENVID=", "501 5.5.4"),
            ("MAIL FROM:<ann@a.example> HOLDFOR=9", "555 5.5.4"),
            ("MAIL FROM:<änn@a.example>", "553 5.6.7"),
            ("RCPT TO:<>", "501 5.1.3"),
            ("RCPT TO:<ann@a.example> NEVER", "555 5.5.4"),
            ("DATA now", "501 5.5.4"),
            ("BDAT", "501 5.5.4"),
            ("BDAT 1 2", "501 5.5.4"),
            ("BDAT -1", "501 5.5.4"),
            ("AUTH PLAIN", "502 5.5.1"),
        ] {
            assert_eq!(code(line).as_deref(), Some(expected), "{line}");
        }
        assert!(Command::parse(b"NOOP \xff").is_err());
    }
}
