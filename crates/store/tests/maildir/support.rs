//! An account in Maildirs on a simulated disk, and another program that changes the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, Keyword, MailboxId, MailboxName, SystemFlag, Uid, UidSet};
use platform::sim::SimEnv;
use platform::{Env, OpenMode};
use store::{Account, AccountFormat, FlagNames, MaildirLayout, NewMessage, Options, Store, StoreFlags, StoreMode};

pub const ROOT: &str = "/home/ann/Maildir";

pub struct World {
    pub sim: SimEnv,
    pub env: Env,
    pub options: Options,
}

pub fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

pub fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

impl World {
    /// With an account `ann`.
    pub fn new(seed: u64) -> Self {
        let sim = SimEnv::new(seed);
        let world = World { env: sim.env(), sim, options: Options::default() };
        let format = AccountFormat::Maildir { root: PathBuf::from(ROOT), layout: MaildirLayout::MaildirPlusPlus };
        world.store().create_account_as(&ann(), &format).unwrap();
        world
    }

    pub fn store(&self) -> Arc<Store> {
        Store::open(self.env.clone(), PathBuf::from("/data"), self.options.clone()).unwrap()
    }

    pub fn open(&self) -> (Arc<Store>, Arc<Account>) {
        let store = self.store();
        let account = store.account(&ann()).unwrap();
        (store, account)
    }

    /// Makes a Maildir as another program does.
    pub fn make(&self, maildir: &str) {
        for subdir in ["tmp", "new", "cur"] {
            self.env.disk.create_dir_all_durable(&Path::new(ROOT).join(maildir).join(subdir)).unwrap();
        }
        self.pass();
    }

    /// Another program delivers, as it should: written in `tmp`, synced, renamed, and the directory synced.
    pub fn deliver(&self, path: &str, text: &str) {
        let (disk, to) = (&self.env.disk, Path::new(ROOT).join(path));
        let maildir = to.parent().unwrap().parent().unwrap();
        let from = maildir.join("tmp").join("delivery");
        let file = disk.open(&from, OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(text.as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
        disk.rename(&from, &to).unwrap();
        disk.sync_dir(to.parent().unwrap()).unwrap();
        self.pass();
    }

    /// Another program replaces a file that is no message.
    pub fn put(&self, path: &str, text: &str) {
        let path = Path::new(ROOT).join(path);
        self.env.disk.replace_file(&path, &path.with_extension("new"), text.as_bytes()).unwrap();
        self.pass();
    }

    /// Another program renames a file.
    pub fn rename(&self, from: &str, to: &str) {
        let root = Path::new(ROOT);
        self.env.disk.rename(&root.join(from), &root.join(to)).unwrap();
        self.pass();
    }

    pub fn remove(&self, path: &str) {
        self.env.disk.remove(&Path::new(ROOT).join(path)).unwrap();
        self.pass();
    }

    /// The files in `new` and `cur`, sorted; of names that are ours the fields and flags only.
    pub fn files(&self, maildir: &str) -> Vec<String> {
        let mut files = Vec::new();
        for subdir in ["cur", "new"] {
            let dir = Path::new(ROOT).join(maildir).join(subdir);
            for entry in self.env.disk.list(&dir).unwrap() {
                files.push(format!("{subdir}/{}", entry.name.to_str().unwrap()));
            }
        }
        files
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(self.env.disk.read(&Path::new(ROOT).join(path)).unwrap()).unwrap()
    }

    /// So much time that a change shows in the times of a directory.
    pub fn pass(&self) {
        self.env.clock.sleep(Duration::from_millis(50));
    }
}

/// A message as a file has it.
pub fn message(n: u32) -> String {
    format!("Subject: {n}\n\nbody {n}\n")
}

/// The same as it is served.
pub fn served(n: u32) -> String {
    format!("Subject: {n}\r\n\r\nbody {n}\r\n")
}

/// UID, flags and text of every entry.
pub fn all(account: &Account, mailbox: MailboxId) -> Vec<(u32, String, String)> {
    account.refresh(mailbox).unwrap();
    let view = account.view(mailbox, true).unwrap();
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

/// UID, number and flags: `1:a 2:b \Seen`.
pub fn listed(account: &Account, mailbox: MailboxId) -> Vec<String> {
    let subject = |text: &str| text.lines().next().unwrap().trim_start_matches("Subject: ").to_owned();
    let line =
        |(uid, flags, text): (u32, String, String)| format!("{uid}:{} {flags}", subject(&text)).trim_end().to_owned();
    all(account, mailbox).into_iter().map(line).collect()
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

pub fn expunge(account: &Account, mailbox: MailboxId, list: &[u32]) {
    for uid in list {
        set_flags(account, mailbox, *uid, StoreMode::Add, "\\Deleted");
    }
    account.expunge(mailbox, Some(&uids(list))).unwrap();
}
