//! The text of the users file.
//!
//! ```text
//! mailyard-users 1
//! decoy-key BASE64
//! user NAME argon2id=PHC scram-sha-256=ITERATIONS:SALT:STOREDKEY:SERVERKEY
//! ```
//!
//! One user a line, sorted; lines that begin with `#` are comments and are not kept. `1` is the version: a reader refuses a file of
//! another. A word of a user's line that the reader does not know locks that user out (a later version may have put a restriction
//! there) and is reported.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use model::{AccountName, Error, ErrorKind, Result};
use platform::Random;

use super::Credentials;

const FIRST_LINE: &str = "mailyard-users 1";

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name to log in with, which is the name of the account.
    pub name: AccountName,
    /// What is stored of the password.
    pub credentials: Credentials,
}

/// What a users file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserFile {
    /// What the answers for unknown users are computed from, so that they are always the same.
    pub decoy_key: Vec<u8>,
    /// The users.
    pub users: BTreeMap<AccountName, User>,
    /// Lines that could not be read, kept as they are, each with what is wrong with it.
    pub odd_lines: Vec<(String, String)>,
}

impl UserFile {
    /// No users, and a decoy key of its own.
    pub fn new(random: &dyn Random) -> Self {
        let mut decoy_key = vec![0; 32];
        random.fill(&mut decoy_key);
        UserFile { decoy_key, users: BTreeMap::new(), odd_lines: Vec::new() }
    }

    /// Reads the text of a users file.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(Error::new(ErrorKind::Invalid, format!("the users file does not begin with {FIRST_LINE:?}")));
        }
        let mut file = UserFile { decoy_key: Vec::new(), users: BTreeMap::new(), odd_lines: Vec::new() };
        for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if let Err(wrong) = file.take_line(line) {
                file.odd_lines.push((line.to_owned(), wrong));
            }
        }
        if file.decoy_key.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the users file has no decoy-key"));
        }
        Ok(file)
    }

    fn take_line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("decoy-key") => {
                let key = words.next().and_then(|word| BASE64.decode(word).ok());
                self.decoy_key =
                    key.filter(|key| key.len() >= 16).ok_or("decoy-key has fewer than 16 octets of base64")?;
            }
            Some("user") => {
                let user = parse_user(words)?;
                if let Some(twice) = self.users.insert(user.name.clone(), user) {
                    return Err(format!("the user {} has two lines", twice.name));
                }
            }
            _ => return Err("the line begins with neither user nor decoy-key".to_owned()),
        }
        Ok(())
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\ndecoy-key {}\n", BASE64.encode(&self.decoy_key));
        for user in self.users.values() {
            let Credentials { argon2id, scram } = &user.credentials;
            let _ = writeln!(text, "user {} argon2id={argon2id} scram-sha-256={scram}", user.name);
        }
        for (line, _) in &self.odd_lines {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

fn parse_user<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<User, String> {
    let name = words.next().ok_or("the user has no name")?;
    let name = AccountName::new(name).map_err(|error| error.to_string())?;
    let (mut argon2id, mut scram) = (None, None);
    for word in words {
        match word.split_once('=') {
            Some(("argon2id", value)) if value.starts_with("$argon2id$") => argon2id = Some(value.to_owned()),
            Some(("scram-sha-256", value)) => scram = Some(value.parse()?),
            // The value may be a secret: only its name is told.
            Some((key, _)) => return Err(format!("user {name}: unknown or broken word {key}")),
            None => return Err(format!("user {name}: a word without =")),
        }
    }
    match (argon2id, scram) {
        (Some(argon2id), Some(scram)) => Ok(User { name, credentials: Credentials { argon2id, scram } }),
        _ => Err(format!("user {name}: argon2id or scram-sha-256 is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::ScramSecrets;

    pub(crate) fn user(name: &str) -> User {
        let credentials = Credentials { argon2id: "$argon2id$v=19$x".into(), scram: ScramSecrets::decoy(b"key", name) };
        User { name: AccountName::new(name).unwrap(), credentials }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = UserFile::new(&platform::real::RealRandom);
        for name in ["zoe", "ann@example.org"] {
            file.users.insert(AccountName::new(name).unwrap(), user(name));
        }
        assert_eq!(UserFile::parse(&file.to_text()).unwrap(), file);
        assert_eq!(file.to_text().lines().count(), 4);
    }

    #[test]
    fn an_odd_line_locks_out_its_user_only_and_is_kept() {
        let mut file = UserFile::new(&platform::real::RealRandom);
        file.users.insert(AccountName::new("ann").unwrap(), user("ann"));
        let odd = "user bob argon2id=$argon2id$v=19$x disabled=yes";
        let text = format!("{}# a comment\n\n{odd}\nwhat is this\n", file.to_text());
        let read = UserFile::parse(&text).unwrap();
        assert_eq!(read.users.len(), 1);
        assert_eq!(read.odd_lines.len(), 2);
        assert!(read.odd_lines.first().unwrap().1.contains("disabled"));
        assert!(read.to_text().contains(odd));
    }

    #[test]
    fn other_files_are_refused() {
        for bad in ["", "mailyard-users 2\n", "root:x:0\n", "mailyard-users 1\n"] {
            assert!(UserFile::parse(bad).is_err(), "{bad:?}");
        }
        let twice = format!("{}user a\n", UserFile::new(&platform::real::RealRandom).to_text());
        assert_eq!(UserFile::parse(&twice).unwrap().odd_lines.len(), 1);
    }

    #[test]
    fn a_file_cut_anywhere_is_read_without_panic() {
        let mut file = UserFile::new(&platform::real::RealRandom);
        file.users.insert(AccountName::new("ann").unwrap(), user("ann"));
        let text = file.to_text();
        for cut in 0..text.len() {
            let _ = UserFile::parse(text.get(..cut).unwrap_or_default());
        }
    }
}
