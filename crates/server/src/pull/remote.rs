//! Where mail is pulled from: `imaps://user@host` and `imap://user@host:port` (RFC 5092 §2), with the password apart.

use std::path::PathBuf;

use model::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// The port of IMAP with STARTTLS (RFC 9051 §2.1), and of IMAP inside TLS (RFC 8314 §3.2).
const PORTS: [u16; 2] = [143, 993];

/// A server and an account on it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remote {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Whether TLS begins at once; otherwise by STARTTLS.
    pub is_tls: bool,
    /// Whether the password may be sent without TLS when the server has no STARTTLS.
    pub allow_plaintext: bool,
    /// Certificates that are believed beside those of the system, PEM.
    pub ca_file: Option<PathBuf>,
    /// Who logs in.
    pub user: String,
    /// The password.
    pub password: String,
}

impl Remote {
    /// From a URL; without a password in it, `password` is left empty.
    pub fn parse(url: &str) -> Result<Remote> {
        let wrong = || Error::new(ErrorKind::Invalid, format!("{:?} is not imaps://USER@HOST[:PORT]", hidden(url)));
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "imap" => false,
            "imaps" => true,
            _ => return Err(wrong()),
        };
        let (login, place) = rest.trim_end_matches('/').rsplit_once('@').ok_or_else(wrong)?;
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (host, port) = match place.strip_prefix('[') {
            // RFC 3986 §3.2.2: an IPv6 address.
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or_else(wrong)?;
                (host, after.strip_prefix(':'))
            }
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            Some(port) => port.parse().map_err(|_| wrong())?,
            None => PORTS[usize::from(is_tls)],
        };
        let (user, password) = (decoded(user).ok_or_else(wrong)?, decoded(password).ok_or_else(wrong)?);
        if host.is_empty() || user.is_empty() || host.contains('/') {
            return Err(wrong());
        }
        Ok(Remote { host: host.to_owned(), port, is_tls, allow_plaintext: false, ca_file: None, user, password })
    }

    /// What is the same in each run: where mail came from.
    pub fn origin(&self, mailbox: &[u8]) -> String {
        format!("{}@{}:{}/{}", self.user, self.host, self.port, String::from_utf8_lossy(mailbox))
    }
}

impl std::fmt::Display for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.is_tls { "imaps" } else { "imap" };
        write!(f, "{scheme}://{}@{}:{}", self.user, self.host, self.port)
    }
}

/// Without the password.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A URL as it may be shown.
fn hidden(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (login, place))) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            format!("{scheme}://{user}@{place}")
        }
        None => url.to_owned(),
    }
}

/// RFC 3986 §2.1.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            bytes.push((digit(rest.next())? * 16 + digit(rest.next())?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parsed = |url: &str| Remote::parse(url).map(|remote| (remote.to_string(), remote.password)).ok();
        let expect = |text: &str, password: &str| Some((text.to_owned(), password.to_owned()));
        assert_eq!(parsed("imaps://ann@mail.example"), expect("imaps://ann@mail.example:993", ""));
        assert_eq!(parsed("IMAP://ann:p%40s:s@[::1]:1143/"), expect("imap://ann@::1:1143", "p@s:s"));
        assert_eq!(parsed("imap://a@b@mail.example"), expect("imap://a@b@mail.example:143", ""));
        for bad in
            ["", "ann@host", "imap://host", "http://a@b", "imap://a@", "imap://a@b:x", "imap://a%4@b", "imap://@b"]
        {
            assert_eq!(parsed(bad), None, "{bad}");
        }
        let error = Remote::parse("imap://ann:secret@host:99999").expect_err("no port");
        assert!(!error.to_string().contains("secret") && !format!("{error:?}").contains("secret"));
        let remote = Remote::parse("imap://ann:secret@host").expect("a good URL");
        assert!(!format!("{remote:?}").contains("secret"));
    }
}
