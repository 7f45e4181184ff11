//! Kinds of values that only the section `[mbox]` has: lists of locks, moments of writing back, paths with the user's name in them.

use std::path::PathBuf;

use store::format::mbox::lock::Method;
use toml::de::DeValue;

use super::setting::{Setting, names_from_toml, names_to_toml};

/// Ways of locking, in the order in which they are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locks(pub Vec<Method>);

/// As [`Locks`], of which there is at least one: nobody may write an mbox that he has not locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteLocks(pub Vec<Method>);

const METHODS: [Method; 3] = [Method::Fcntl, Method::Dotlock, Method::Flock];

impl Setting for Locks {
    fn kind() -> String {
        format!("list of {}", names_to_toml(METHODS.iter().map(|method| method.name())))
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        names_from_toml(value, &Self::kind(), &METHODS.map(|method| (method.name(), method))).map(Locks)
    }
    fn to_toml(&self) -> String {
        names_to_toml(self.0.iter().map(|method| method.name()))
    }
}

impl Setting for WriteLocks {
    fn kind() -> String {
        Locks::kind()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        match Locks::from_toml(value)?.0 {
            none if none.is_empty() => Err("writing needs a lock: name one at least".to_owned()),
            methods => Ok(WriteLocks(methods)),
        }
    }
    fn to_toml(&self) -> String {
        Locks(self.0.clone()).to_toml()
    }
}

/// When UIDs, flags and keywords are written into the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteBackAt {
    /// When a client says CHECK.
    pub check: bool,
    /// When a client closes the mailbox.
    pub close: bool,
    /// When a client logs out or is gone.
    pub logout: bool,
    /// When nothing has changed for a while.
    pub idle: bool,
}

impl WriteBackAt {
    /// At all of them.
    pub const ALL: Self = WriteBackAt { check: true, close: true, logout: true, idle: true };

    fn moments(self) -> [(&'static str, bool); 4] {
        [("check", self.check), ("close", self.close), ("logout", self.logout), ("idle", self.idle)]
    }
}

/// The value that stands for no moment at all.
const NEVER: &str = "never";

impl Setting for WriteBackAt {
    fn kind() -> String {
        let names = WriteBackAt::ALL.moments().map(|(name, _)| name);
        format!("list of {}, or \"{NEVER}\"", names_to_toml(names.into_iter()))
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        if value.as_str() == Some(NEVER) {
            return Ok(WriteBackAt::default());
        }
        let names = WriteBackAt::ALL.moments().map(|(name, _)| (name, name));
        let named = names_from_toml(value, &Self::kind(), &names)?;
        let has = |name| named.contains(&name);
        Ok(WriteBackAt { check: has("check"), close: has("close"), logout: has("logout"), idle: has("idle") })
    }
    fn to_toml(&self) -> String {
        if *self == WriteBackAt::default() {
            return format!("\"{NEVER}\"");
        }
        names_to_toml(self.moments().into_iter().filter(|(_, is)| *is).map(|(name, _)| name))
    }
}

/// A path for each user: `%u` in it is the user's name. Absolute, since no directory is the working directory of all users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPath(pub String);

impl UserPath {
    /// The path of a user.
    pub fn of(&self, user: &str) -> PathBuf {
        PathBuf::from(self.0.replace("%u", user))
    }
}

impl Setting for UserPath {
    fn kind() -> String {
        "absolute path with %u".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| format!("expected {}, found {}", Self::kind(), value.type_str()))?;
        if !text.starts_with('/') {
            return Err(format!("{text:?} is no absolute path"));
        }
        if !text.contains("%u") {
            return Err(format!("{text:?} has no %u: all users would share it"));
        }
        Ok(UserPath(text.to_owned()))
    }
    fn to_toml(&self) -> String {
        toml::Value::from(self.0.as_str()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn complaint(text: &str) -> String {
        let error = parse(&format!("[mbox]\n{text}\n"), "test").expect_err(text);
        error.complaints.first().expect("one at least").1.clone()
    }

    #[test]
    fn locks_are_named_in_order() {
        let config = parse("[mbox]\nwrite_locks = [\"flock\", \"dotlock\"]\nread_locks = []\n", "test").unwrap();
        assert_eq!(config.mbox.write_locks, WriteLocks(vec![Method::Flock, Method::Dotlock]));
        assert_eq!(config.mbox.read_locks, Locks(Vec::new()));
        assert_eq!(complaint("write_locks = []"), "mbox.write_locks: writing needs a lock: name one at least");
        assert_eq!(
            complaint("read_locks = [\"lockf\"]"),
            "mbox.read_locks: \"lockf\" is none of \"fcntl\", \"dotlock\", \"flock\""
        );
        assert_eq!(complaint("read_locks = [\"fcntl\", \"fcntl\"]"), "mbox.read_locks: \"fcntl\" stands there twice");
        assert!(complaint("read_locks = \"fcntl\"").contains("expected list of"));
        assert!(complaint("read_locks = [1]").contains("expected list of"));
    }

    #[test]
    fn moments_of_writing_back() {
        for (text, moments) in [
            ("[\"close\", \"check\"]", WriteBackAt { check: true, close: true, ..WriteBackAt::default() }),
            ("\"never\"", WriteBackAt::default()),
            ("[]", WriteBackAt::default()),
            ("[\"check\", \"close\", \"logout\", \"idle\"]", WriteBackAt::ALL),
        ] {
            let config = parse(&format!("[mbox]\nwrite_back = {text}\n"), "test").unwrap();
            assert_eq!(config.mbox.write_back, moments, "{text}");
        }
        assert_eq!(WriteBackAt::default().to_toml(), "\"never\"");
        assert!(complaint("write_back = [\"never\"]").contains("is none of"));
        assert!(complaint("write_back = \"always\"").contains("or \"never\""));
    }

    #[test]
    fn paths_have_the_user_in_them() {
        let config = parse("[mbox]\ninbox = \"/srv/%u/in\"\n", "test").unwrap();
        assert_eq!(config.mbox.inbox.of("ann"), PathBuf::from("/srv/ann/in"));
        assert!(complaint("inbox = \"mail/%u\"").contains("no absolute path"));
        assert!(complaint("root = \"/srv/mail\"").contains("all users would share it"));
        assert!(complaint("root = 1").contains("expected absolute path"));
    }
}
