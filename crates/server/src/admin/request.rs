//! What an administrator can ask for, as data: the command line makes it, the control socket carries it as one line of JSON.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use store::backup::Identities;

use crate::pull::Remote;
use crate::users::{Credentials, ScramSecrets};

/// A command. Paths are absolute, since the server's working directory is another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Adds a user and its account.
    UserAdd {
        /// Its name.
        user: String,
        /// What is stored of its password.
        password: Password,
        /// Where its mail is to live.
        #[serde(default)]
        mail: NewMail,
    },
    /// Gives a user another password.
    UserPasswd {
        /// Its name.
        user: String,
        /// What is stored of its password.
        password: Password,
    },
    /// Removes a user.
    UserRemove {
        /// Its name.
        user: String,
        /// Whether the account goes too, for good.
        delete_mail: bool,
    },
    /// Lists the users.
    UserList,
    /// Shows what a user's account holds and may hold, and gives it limits of its own.
    UserQuota {
        /// Its name.
        user: String,
        /// Of its octets.
        storage: Option<QuotaLimit>,
        /// Of its messages.
        messages: Option<QuotaLimit>,
    },
    /// Brings mail in.
    Import {
        /// Whose account.
        user: String,
        /// The mailbox, for a single mbox file or Maildir; the parent of all, for a tree. None: named after the files.
        mailbox: Option<String>,
        /// mbox files, Maildirs and directories of them.
        paths: Vec<PathBuf>,
    },
    /// Brings mail from another server.
    Pull {
        /// Whose account.
        user: String,
        /// The mailbox above all.
        mailbox: Option<String>,
        /// Where it comes from.
        remote: Remote,
        /// These mailboxes only, by their names here; all, when there is none.
        only: Vec<String>,
        /// Connections at once.
        connections: u8,
        /// Whether what is gone there goes here.
        delete: bool,
    },
    /// Writes mail out.
    Export {
        /// Whose account.
        user: String,
        /// One mailbox only.
        mailbox: Option<String>,
        /// What is written.
        format: Format,
        /// The directory to write into.
        to: PathBuf,
    },
    /// Brings expunged messages back.
    Restore {
        /// Whose account.
        user: String,
        /// Which mailbox.
        mailbox: String,
        /// Those that were expunged since; Unix seconds.
        since_unix_seconds: i64,
    },
    /// Moves an account into another format.
    Convert {
        /// Whose account.
        user: String,
        /// Where its mail is to live; nothing to go on with what was begun.
        #[serde(default)]
        to: NewMail,
        /// Gives up the old store.
        #[serde(default)]
        finish: bool,
        /// Goes back to the old store.
        #[serde(default)]
        roll_back: bool,
    },
    /// Adds a snapshot to a directory of backups.
    Backup {
        /// One account only.
        user: Option<String>,
        /// The directory of backups; made when it is not there.
        to: PathBuf,
        /// To whom it is encrypted, public keys of age; to nobody when there are none.
        #[serde(default)]
        recipients: Vec<String>,
    },
    /// Brings a snapshot back.
    RestoreBackup {
        /// Whose snapshot.
        user: String,
        /// The directory of backups.
        from: PathBuf,
        /// The snapshot of this name.
        snapshot: Option<String>,
        /// The newest snapshot made at this time or before, Unix seconds. Without both: the newest one.
        at_unix_seconds: Option<i64>,
        /// One mailbox of it only.
        mailbox: Option<String>,
        /// The mailbox that gets its messages.
        into: Option<String>,
        /// The account that gets them.
        as_user: Option<String>,
        /// Messages that these terms name only.
        #[serde(default)]
        query: Option<String>,
        /// What opens it when it is encrypted.
        #[serde(default)]
        identities: Option<SecretKeys>,
    },
    /// Verifies every record and checksum.
    Check {
        /// One account only.
        user: Option<String>,
        /// Builds the index anew.
        repair: bool,
    },
    /// Looks for messages.
    Search {
        /// Whose account.
        user: String,
        /// One mailbox only.
        mailbox: Option<String>,
        /// Terms, as the command line explains them, or search keys of IMAP.
        query: String,
        /// It is search keys of IMAP.
        imap: bool,
        /// Scans as well, and compares.
        verify: bool,
    },
    /// Accounts in numbers.
    Stats {
        /// One account only.
        user: Option<String>,
    },
}

/// Where the mail of a new account is to live. What is not said is what the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMail {
    /// In what.
    pub format: Option<AccountForm>,
    /// The mbox file of INBOX.
    pub inbox: Option<PathBuf>,
    /// The directory of the other mailboxes' mbox files, or the Maildir of INBOX.
    pub mail_root: Option<PathBuf>,
    /// How mailboxes are named in a Maildir.
    #[serde(default)]
    pub layout: Option<LayoutForm>,
}

/// A limit of an account's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaLimit {
    /// What the configuration says.
    Default,
    /// None.
    None,
    /// So many messages, or octets.
    Limit(u64),
}

/// In what the messages of an account live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AccountForm {
    /// Mailyard's own store.
    Native,
    /// mbox files that other programs may use as well.
    Mbox,
    /// The database that the configuration names.
    Sql,
    /// A tree of Maildirs that other programs may use as well.
    Maildir,
}

/// How the names of mailboxes become names of directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
pub enum LayoutForm {
    /// `a/b` is `.a.b`
    #[serde(rename = "maildir++")]
    #[value(name = "maildir++")]
    MaildirPlusPlus,
    /// `a/b` is `a/b`
    #[serde(rename = "fs")]
    #[value(name = "fs")]
    Fs,
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// An mbox file a mailbox.
    Mbox,
    /// A Maildir a mailbox.
    Maildir,
}

/// The text of a file of identities: secret keys of age, for one restore only.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretKeys(String);

impl SecretKeys {
    /// For a request.
    pub fn new(text: String) -> Self {
        SecretKeys(text)
    }

    /// For the backup.
    pub fn into_identities(self) -> model::Result<Identities> {
        Identities::parse(self.0.as_bytes())
    }
}

/// Without the secrets.
impl std::fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKeys")
    }
}

/// A password as it is stored: hashed by the command line, so that it crosses no socket.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Password {
    argon2id: String,
    scram_sha_256: String,
}

impl Password {
    /// For a request.
    pub fn new(credentials: &Credentials) -> Self {
        Password { argon2id: credentials.argon2id.clone(), scram_sha_256: credentials.scram.to_string() }
    }

    /// For the users file.
    pub fn into_credentials(self) -> Result<Credentials, &'static str> {
        let scram: ScramSecrets = self.scram_sha_256.parse()?;
        if !self.argon2id.starts_with("$argon2id$") || self.argon2id.contains(char::is_whitespace) {
            return Err("the password is no argon2id hash");
        }
        Ok(Credentials { argon2id: self.argon2id, scram })
    }
}

/// Without the secrets.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_and_comes_back() {
        let request = Request::Export {
            user: "ann".into(),
            mailbox: Some("a\nb".into()),
            format: Format::Maildir,
            to: "/tmp/x".into(),
        };
        let line = serde_json::to_string(&request).unwrap();
        assert!(!line.contains('\n') && line.contains("\"command\":\"export\""), "{line}");
        assert_eq!(format!("{:?}", serde_json::from_str::<Request>(&line).unwrap()), format!("{request:?}"));
    }

    #[test]
    fn a_password_with_blanks_cannot_break_the_users_file() {
        let scram = ScramSecrets::decoy(b"", "").to_string();
        for bad in ["", "$argon2i$x", "$argon2id$x\nuser root"] {
            let password = Password { argon2id: bad.into(), scram_sha_256: scram.clone() };
            assert!(password.into_credentials().is_err());
        }
    }
}
