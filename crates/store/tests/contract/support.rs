//! What the contract's tests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{AccountName, Keyword, MailboxId, MailboxName, SystemFlag, Uid, UidSet};
use platform::Env;
use platform::sim::SimEnv;
use store::{Account, AccountFormat, Cluster, FlagNames, MaildirLayout, NewMessage, Options, Store, View};

/// A format under test: how a store of it is opened, and opened again.
pub struct Format {
    pub env: Env,
    pub sim: SimEnv,
    pub options: Options,
    kind: Kind,
    /// What accounts of a cluster are made in.
    cluster: Option<Arc<dyn Cluster>>,
}

/// Which format accounts are made with.
#[derive(Clone, Copy)]
enum Kind {
    Native,
    Mbox,
    Maildir(MaildirLayout),
    Cluster,
}

impl Format {
    /// Whether a mailbox's name may be as long as names can be.
    pub fn has_long_names(&self) -> bool {
        !matches!(self.kind, Kind::Maildir(MaildirLayout::MaildirPlusPlus))
    }

    pub fn open(&self) -> Arc<Store> {
        self.try_open().unwrap()
    }

    pub fn try_open(&self) -> model::Result<Arc<Store>> {
        let (env, options) = (self.env.clone(), self.options.clone());
        Store::open_with(env, PathBuf::from("/data"), options, self.cluster.clone())
    }

    /// Makes an account of this format.
    pub fn create(&self, store: &Store, name: &AccountName) -> model::Result<()> {
        let place = Path::new("/mail").join(name.as_str());
        self.env.disk.create_dir_all_durable(&place).unwrap();
        let format = match self.kind {
            Kind::Native => AccountFormat::Native,
            Kind::Mbox => AccountFormat::Mbox { inbox: place.join("inbox"), root: place.join("mail") },
            Kind::Maildir(layout) => AccountFormat::Maildir { root: place.join("Maildir"), layout },
            Kind::Cluster => AccountFormat::Sql,
        };
        store.create_account_as(name, &format)
    }

    /// Whether the truth is in files of this disk.
    pub fn is_on_disk(&self) -> bool {
        self.cluster.is_none()
    }

    /// A store with one account, and the account's INBOX.
    pub fn with_account(&self) -> (Arc<Store>, Arc<Account>, MailboxId) {
        let store = self.open();
        self.create(&store, &name("ann")).unwrap();
        let account = store.account(&name("ann")).unwrap();
        let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
        (store, account, inbox)
    }
}

/// The native format on a simulated disk, with limits so small that every path is met.
pub fn native() -> Format {
    on_simulated_disk(Kind::Native)
}

/// mbox files on a simulated disk.
pub fn mbox() -> Format {
    on_simulated_disk(Kind::Mbox)
}

/// Maildirs on a simulated disk, named as Maildir++ has it.
pub fn maildir() -> Format {
    on_simulated_disk(Kind::Maildir(MaildirLayout::MaildirPlusPlus))
}

/// Maildirs on a simulated disk, below each other.
pub fn maildir_fs() -> Format {
    on_simulated_disk(Kind::Maildir(MaildirLayout::Fs))
}

fn on_simulated_disk(kind: Kind) -> Format {
    let sim = SimEnv::new(1);
    let mut options = Options::default();
    options.log.tail_bytes_max = 64 << 10;
    options.log.spool_above_bytes = 1000;
    options.message_bytes_max = 100_000;
    Format { env: sim.env(), sim, options, kind, cluster: None }
}

/// Accounts of a cluster; what a node keeps besides is on a simulated disk.
#[allow(dead_code, reason = "for formats of other crates that play this suite")]
pub fn on_cluster(cluster: Arc<dyn Cluster>) -> Format {
    Format { cluster: Some(cluster), ..on_simulated_disk(Kind::Cluster) }
}

pub fn name(text: &str) -> AccountName {
    AccountName::new(text).unwrap()
}

pub fn mailbox(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

pub fn keyword(text: &str) -> Keyword {
    Keyword::new(text).unwrap()
}

/// `names("\\Seen $a")`
pub fn names(text: &str) -> FlagNames {
    let mut names = FlagNames::default();
    for word in text.split_whitespace() {
        match SystemFlag::parse(word) {
            Some(flag) => names.system.push(flag),
            None => names.keywords.push(keyword(word)),
        }
    }
    names
}

pub fn uids(text: &str) -> UidSet {
    let mut set = UidSet::new();
    for piece in text.split(',').filter(|piece| !piece.is_empty()) {
        let (first, last) = piece.split_once(':').unwrap_or((piece, piece));
        set.insert_range(first.parse().unwrap(), last.parse().unwrap());
    }
    set
}

pub fn uid(number: u32) -> Uid {
    Uid::new(number).unwrap()
}

pub fn new_message(account: &Account, bytes: &[u8], flags: &str) -> NewMessage {
    let mut writer = account.message_writer().unwrap();
    for piece in bytes.chunks(700) {
        writer.write(piece).unwrap();
    }
    NewMessage { message: writer.finish().unwrap(), flags: names(flags), internal_date: None }
}

pub fn append(account: &Account, mailbox: MailboxId, bytes: &[u8], flags: &str) -> Uid {
    let appended = account.append(mailbox, vec![new_message(account, bytes, flags)]).unwrap();
    appended.entries[0].0
}

/// `count` small messages.
pub fn fill(account: &Account, mailbox: MailboxId, count: u32) {
    let messages = (0..count).map(|n| new_message(account, format!("Subject: {n}\r\n\r\nbody {n}\r\n").as_bytes(), ""));
    account.append(mailbox, messages.collect()).unwrap();
}

/// The flags of an entry, by name.
pub fn flags_of(view: &View, number: u32) -> String {
    let entry = view.entry_of(uid(number)).unwrap();
    view.keywords().names(entry.flags).collect::<Vec<_>>().join(" ")
}

/// The UIDs of a view in the order of the sequence numbers.
pub fn listed(view: &View) -> Vec<u32> {
    view.all_rows().map(|entry| entry.uid.get()).collect()
}

pub fn whole(account: &Account, view: &View, number: u32) -> Vec<u8> {
    let entry = view.entry_of(uid(number)).unwrap();
    let mut bytes = Vec::new();
    account.reader().read(entry.email_id, 0..u64::MAX, &mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, u64::from(entry.size));
    bytes
}
