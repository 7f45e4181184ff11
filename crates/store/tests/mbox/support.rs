//! An account in mbox files on a simulated disk, and another program that changes the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, Keyword, MailboxId, MailboxName, SystemFlag, Uid, UidSet};
use platform::sim::SimEnv;
use platform::{Env, OpenMode};
use store::{Account, AccountFormat, FlagNames, NewMessage, Options, Store, StoreFlags, StoreMode, View};

pub const INBOX: &str = "/var/mail/ann";
pub const ROOT: &str = "/home/ann/mail";

pub struct World {
    pub sim: SimEnv,
    pub env: Env,
}

pub fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

pub fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

impl World {
    /// With an account `ann`, whose files are not there yet.
    pub fn new(seed: u64) -> Self {
        let sim = SimEnv::new(seed);
        let world = World { env: sim.env(), sim };
        let format = AccountFormat::Mbox { inbox: PathBuf::from(INBOX), root: PathBuf::from(ROOT) };
        world.store().create_account_as(&ann(), &format).unwrap();
        world
    }

    pub fn store(&self) -> Arc<Store> {
        Store::open(self.env.clone(), PathBuf::from("/data"), Options::default()).unwrap()
    }

    pub fn open(&self) -> (Arc<Store>, Arc<Account>) {
        let store = self.store();
        let account = store.account(&ann()).unwrap();
        (store, account)
    }

    /// Another program replaces what is in a file, in place.
    pub fn write(&self, path: &str, text: &str) {
        let disk = &self.env.disk;
        disk.create_dir_all_durable(platform::parent_of(Path::new(path))).unwrap();
        let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(platform::parent_of(Path::new(path))).unwrap();
        self.pass();
    }

    /// Another program delivers.
    pub fn deliver(&self, path: &str, text: &str) {
        let file = self.env.disk.open(Path::new(path), OpenMode::Create).unwrap();
        let len = file.len().unwrap();
        file.write_at(text.as_bytes(), len).unwrap();
        file.sync_data().unwrap();
        self.env.disk.sync_dir(platform::parent_of(Path::new(path))).unwrap();
        self.pass();
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(self.env.disk.read(Path::new(path)).unwrap()).unwrap()
    }

    /// So much time that a change shows in the times of a file.
    pub fn pass(&self) {
        self.env.clock.sleep(std::time::Duration::from_millis(50));
    }
}

/// A message as a file has it, with such header fields.
pub fn message(n: u32, fields: &str) -> String {
    format!("From a@b Thu Aug 22 12:36:23 2002\nSubject: {n}\n{fields}\nbody {n}\n\n")
}

/// The same as it is served.
pub fn served(n: u32) -> String {
    format!("Subject: {n}\r\n\r\nbody {n}\r\n")
}

/// A view of the mailbox as it is now.
pub fn view(account: &Account, mailbox: MailboxId) -> View {
    account.refresh(mailbox).unwrap();
    account.view(mailbox, true).unwrap()
}

/// UID, flags and text of every entry.
pub fn all(account: &Account, mailbox: MailboxId) -> Vec<(u32, String, String)> {
    let view = view(account, mailbox);
    let mut reader = account.reader();
    view.all_rows()
        .map(|entry| {
            let mut text = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut text).unwrap();
            assert_eq!(text.len(), entry.size as usize);
            let header = reader.header(entry.email_id).unwrap();
            assert!(text.starts_with(header) && header.ends_with(b"\r\n\r\n"));
            let flags: Vec<&str> = view.keywords().names(entry.flags).collect();
            (entry.uid.get(), flags.join(" "), String::from_utf8(text).unwrap())
        })
        .collect()
}

/// The UIDs and the numbers of the messages.
pub fn numbers(account: &Account, mailbox: MailboxId) -> Vec<(u32, String)> {
    let subject = |text: &str| text.lines().next().unwrap().trim_start_matches("Subject: ").to_owned();
    all(account, mailbox).into_iter().map(|(uid, _, text)| (uid, subject(&text))).collect()
}

pub fn flag_names(text: &str) -> FlagNames {
    let mut names = FlagNames::default();
    for word in text.split_whitespace() {
        match SystemFlag::parse(word) {
            Some(flag) => names.system.push(flag),
            None => names.keywords.push(Keyword::new(word).unwrap()),
        }
    }
    names
}

pub fn uids(list: &[u32]) -> UidSet {
    list.iter().copied().collect()
}

pub fn set_flags(account: &Account, mailbox: MailboxId, uid: u32, mode: StoreMode, flags: &str) {
    let request = StoreFlags { mode, flags: flag_names(flags), unchanged_since: None };
    account.store_flags(mailbox, &uids(&[uid]), &request).unwrap();
}

pub fn append(account: &Account, mailbox: MailboxId, text: &str, flags: &str) -> Uid {
    let mut writer = account.message_writer().unwrap();
    writer.write(text.as_bytes()).unwrap();
    let message = NewMessage { message: writer.finish().unwrap(), flags: flag_names(flags), internal_date: None };
    account.append(mailbox, vec![message]).unwrap().entries[0].0
}
