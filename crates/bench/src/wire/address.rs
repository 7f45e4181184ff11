//! Where a server is and who logs in: `imap://user:password@host:port`.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A server and an account on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Account name.
    pub user: String,
    /// Its password, as it is (percent-encoding undone).
    pub password: String,
    /// What the names of this account's own mailboxes begin with (RFC 2342 §5): `INBOX.` on Courier, empty on most servers. No part of
    /// the URL: the server says it.
    pub prefix: String,
}

impl FromStr for Address {
    type Err = Error;

    /// RFC 5092 §2, with the password of RFC 3986 §3.2.1 that it leaves out, since a benchmark's accounts are no secret.
    fn from_str(url: &str) -> Result<Address> {
        let wrong = || Error::new(format!("{url:?} is not imap://user:password@host:port"));
        let rest = url.strip_prefix("imap://").ok_or_else(wrong)?.trim_end_matches('/');
        let (login, place) = rest.rsplit_once('@').ok_or_else(wrong)?;
        let (user, password) = login.split_once(':').ok_or_else(wrong)?;
        let (host, port) = place.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        let decoded = |text| decoded(text).ok_or_else(wrong);
        Ok(Address { host, port, user: decoded(user)?, password: decoded(password)?, prefix: String::new() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "imap://{}@{}:{}", self.user, self.host, self.port)
    }
}

/// An argument of the command line as it may be published: the password of an address is `PASSWORD` there.
pub fn without_password(argument: &str) -> String {
    let hidden = || {
        let (before, rest) = argument.split_once("imap://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{before}imap://{user}:PASSWORD@{place}"))
    };
    hidden().unwrap_or_else(|| argument.to_string())
}

/// RFC 3986 §2.1.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{Address, without_password};

    #[test]
    fn passwords_are_not_published() {
        assert_eq!(without_password("a=imap://me:p@ss:w@host:1"), "a=imap://me:PASSWORD@host:1");
        assert_eq!(without_password("--server=a=imap://me:x@[::1]:1"), "--server=a=imap://me:PASSWORD@[::1]:1");
        assert_eq!(without_password("--out"), "--out");
    }

    #[test]
    fn urls() {
        let address: Address = "imap://me:p%40ss:w@[::1]:1143/".parse().expect("a good URL");
        let expected = Address {
            host: "::1".into(),
            port: 1143,
            user: "me".into(),
            password: "p@ss:w".into(),
            prefix: String::new(),
        };
        assert_eq!(address, expected);
        assert_eq!(address.to_string(), "imap://me@::1:1143", "the password is not shown");
        for bad in ["", "imap://host:1", "imap://a:b@host", "http://a:b@c:1", "imap://a:%4@c:1", "imap://a:b@c:99999"] {
            assert!(bad.parse::<Address>().is_err(), "{bad}");
        }
    }
}
