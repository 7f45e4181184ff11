//! Nodes of a cluster: stores on temporary directories that share a database.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, MailboxId, MailboxName, Result};
use platform::Env;
use store::{Account, AccountFormat, FlagNames, NewMessage, Options, Store, StoreFlags, StoreMode};
use store_sql::{Database, Settings};

/// A store that serves the accounts of a database.
pub struct Node {
    pub store: Arc<Store>,
    pub database: Arc<Database>,
    pub dir: tempfile::TempDir,
}

/// Patient: on a machine that does much else every answer may take long.
pub fn settings(url: &str) -> Settings {
    Settings {
        urls: vec![url.to_owned()],
        timeout: Duration::from_secs(60),
        retry: Duration::from_secs(60),
        poll: Duration::from_millis(10),
        ..Settings::default()
    }
}

/// A database that is away is not waited for.
pub fn impatient(url: &str) -> Settings {
    Settings { retry: Duration::from_millis(200), ..settings(url) }
}

impl Node {
    pub fn new(settings: Settings) -> Node {
        Self::on(tempfile::tempdir().unwrap(), settings)
    }

    pub fn on(dir: tempfile::TempDir, settings: Settings) -> Node {
        let database = Database::new(Env::real(), settings).unwrap();
        let cluster = Arc::clone(&database) as Arc<dyn store::Cluster>;
        let store = Store::open_with(Env::real(), dir.path().to_owned(), Options::default(), Some(cluster)).unwrap();
        Node { store, database, dir }
    }

    /// The account `ann`, which is made when it is not there.
    pub fn ann(&self) -> Arc<Account> {
        let ann = AccountName::new("ann").unwrap();
        self.database.update().unwrap();
        match self.store.create_account_as(&ann, &AccountFormat::Sql) {
            Err(error) if error.kind() != model::ErrorKind::AlreadyExists => panic!("{error}"),
            _ => self.store.account(&ann).unwrap(),
        }
    }
}

pub fn inbox(account: &Account) -> MailboxId {
    account.mailbox(&MailboxName::inbox()).unwrap()
}

/// Appends a message; its UID.
pub fn append(account: &Account, mailbox: MailboxId, text: &str) -> Result<u32> {
    let mut writer = account.message_writer()?;
    writer.write(text.as_bytes())?;
    let message = NewMessage { message: writer.finish()?, flags: FlagNames::default(), internal_date: None };
    Ok(account.append(mailbox, vec![message])?.entries[0].0.get())
}

/// UID and octets of every entry, as the account says now.
pub fn contents(account: &Account, mailbox: MailboxId) -> Vec<(u32, String)> {
    account.refresh(mailbox).unwrap();
    let (view, mut reader) = (account.view(mailbox, false).unwrap(), account.reader());
    let whole = |entry: store::Entry| {
        let mut octets = Vec::new();
        reader.read(entry.email_id, 0..u64::MAX, &mut octets).unwrap();
        (entry.uid.get(), String::from_utf8(octets).unwrap())
    };
    view.all_rows().map(whole).collect()
}

pub fn add_flag(account: &Account, mailbox: MailboxId, uid: u32, flag: model::SystemFlag) -> Result<()> {
    let flags = FlagNames { system: vec![flag], keywords: Vec::new() };
    let request = StoreFlags { mode: StoreMode::Add, flags, unchanged_since: None };
    account.store_flags(mailbox, &model::UidSet::range(uid, uid), &request).map(drop)
}
