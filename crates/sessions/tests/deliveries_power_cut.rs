//! Power cuts through deliveries and QUITs, in every format: nothing that was answered 250 or +OK is lost, and a QUIT that was not answered
//! deleted everything that was marked or nothing.

#![allow(clippy::unwrap_used, reason = "tests")]

mod formats;
mod line_client;
#[allow(dead_code, reason = "what other tests share")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use formats::Format;
use line_client::{Client, NOW, WHOLE};
use mailyard_sessions::lmtp::{self, Address, Destination, LmtpSession, Place, Recipients};
use mailyard_sessions::pop3::{self, Pop3Session};
use mailyard_sessions::{Connection, lmtp::OverQuota};
use model::{AccountName, Error, ErrorKind, MailboxName};
use platform::Prng;
use platform::sim::SimEnv;
use store::{Options, Store};
use support::Everybody;

const USERS: [&str; 3] = ["ann", "bob", "cid"];
/// Histories for each format.
const HISTORIES: u64 = 1000;
const STEPS: u32 = 12;

struct Everyone;

impl Recipients for Everyone {
    fn destination(&self, address: &Address) -> model::Result<Destination> {
        match USERS.contains(&address.local()) {
            true => Ok(Destination { account: AccountName::new(address.local())?, place: Place::Inbox }),
            false => Err(Error::new(ErrorKind::NotFound, "no such user")),
        }
    }
}

fn connection() -> Connection {
    Connection { loopback: true, ..Connection::default() }
}

fn lmtp(store: &Arc<Store>) -> Client<LmtpSession> {
    let settings = lmtp::Settings { over_quota: OverQuota::Retry, ..lmtp::Settings::default() };
    let context =
        lmtp::Context { store: Arc::clone(store), recipients: Arc::new(Everyone), observer: Arc::new(()), settings };
    Client::new(LmtpSession::new(Arc::new(context), connection(), Arc::new(|| ()), NOW), WHOLE)
}

fn pop3(store: &Arc<Store>) -> Client<Pop3Session> {
    let context = pop3::Context {
        store: Arc::clone(store),
        authenticator: Arc::new(Everybody),
        observer: Arc::new(()),
        last_logins: Arc::default(),
        settings: pop3::Settings::default(),
    };
    Client::new(Pop3Session::new(Arc::new(context), connection(), Arc::new(|| ()), NOW), WHOLE)
}

fn open(sim: &SimEnv) -> model::Result<Arc<Store>> {
    let mut options = Options::default();
    // So small that tails are sealed, too.
    options.log.tail_bytes_max = 16 << 10;
    Store::open(sim.env(), "/store".into(), options)
}

/// The subjects in each INBOX; each message is there once.
fn subjects(store: &Store, user: &str) -> BTreeSet<u32> {
    let account = store.account(&AccountName::new(user).unwrap()).unwrap();
    let inbox = account.mailbox(&MailboxName::inbox()).unwrap();
    account.refresh(inbox).unwrap();
    let view = account.view(inbox, false).unwrap();
    let mut reader = account.reader();
    let mut subjects = BTreeSet::new();
    for entry in view.all_rows() {
        let mut bytes = Vec::new();
        reader.read(entry.email_id, 0..u64::from(entry.size), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("Subject: "), "no message of ours: {text:?}");
        let number = text.split("Subject: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        assert!(text.ends_with("\r\n\r\ntext\r\n.dot\r\n"), "{text}");
        assert!(subjects.insert(number), "{number} is there twice");
    }
    subjects
}

/// What clients were told.
#[derive(Default)]
struct Told {
    /// What must be there.
    there: BTreeMap<&'static str, BTreeSet<u32>>,
    /// What may be there: its answer was lost.
    perhaps: BTreeMap<&'static str, BTreeSet<u32>>,
    /// The delivery that was not answered, whole.
    sent: Option<(u32, Vec<&'static str>)>,
    /// What is there or gone together: a QUIT whose answer was lost.
    together: Option<(&'static str, BTreeSet<u32>)>,
}

/// One message to some users; false when the power is gone.
fn deliver(store: &Arc<Store>, number: u32, users: &[&'static str], told: &mut Told) -> bool {
    let mut client = lmtp(store);
    let recipients: String = users.iter().map(|user| format!("RCPT TO:<{user}@b.example>\r\n")).collect();
    client.ask(format!("LHLO a.example\r\nMAIL FROM:<bea@a.example> ENVID=e{number}\r\n{recipients}DATA\r\n"));
    let said = client.ask(format!("Subject: {number}\r\n\r\ntext\r\n..dot\r\n.\r\n"));
    let replies: Vec<&str> = said.lines().filter(|line| line.contains('<')).collect();
    for (at, user) in users.iter().enumerate() {
        let is_taken = replies.get(at).is_some_and(|reply| reply.starts_with("250 2.1.5"));
        let of_user = if is_taken { &mut told.there } else { &mut told.perhaps };
        of_user.entry(user).or_default().insert(number);
    }
    let is_answered = replies.len() == users.len() && replies.iter().all(|reply| reply.starts_with("250"));
    if !is_answered {
        told.sent = Some((number, users.to_vec()));
    }
    is_answered
}

/// A user empties the mailbox, or a part of it.
fn empty(store: &Arc<Store>, user: &'static str, random: &mut Prng, told: &mut Told) -> bool {
    let mut client = pop3(store);
    let said = client.ask(format!("USER {user}\r\nPASS x\r\n"));
    if !said.contains(" messages (") {
        return false;
    }
    let there: Vec<u32> = told.there.get(user).into_iter().flatten().copied().collect();
    let doomed: Vec<usize> = (0..there.len()).filter(|_| random.below(3) > 0).collect();
    for at in &doomed {
        if !client.ask(format!("RETR {0}\r\nDELE {0}\r\n", at + 1)).ends_with("+OK Marked\r\n") {
            return false;
        }
    }
    let doomed: BTreeSet<u32> = doomed.iter().map(|at| there[*at]).collect();
    let of_user = told.there.entry(user).or_default();
    of_user.retain(|number| !doomed.contains(number));
    if client.ask("QUIT\r\n").ends_with("+OK Goodbye\r\n") {
        return true;
    }
    told.together = Some((user, doomed));
    false
}

fn history(format: Format, seed: u64) {
    let mut random = Prng::new(seed);
    let machine = SimEnv::new(seed);
    let sim = machine.as_process(100);
    let store = open(&sim).unwrap();
    USERS.iter().for_each(|user| format.create(&store, &AccountName::new(user).unwrap()));
    sim.disk.crash_at(1 + random.below(120));
    let mut told = Told::default();
    for number in 0..STEPS {
        let goes_on = match random.below(4) {
            0 => empty(&store, USERS[random.index(USERS.len())], &mut random, &mut told),
            1 => store.maintain().is_ok(),
            _ => {
                let users: Vec<&str> = USERS.into_iter().filter(|_| random.below(3) > 0).collect();
                users.is_empty() || deliver(&store, number, &users, &mut told)
            }
        };
        if !goes_on {
            break;
        }
    }
    drop(store);
    sim.disk.clear_faults();
    if !sim.disk.is_off() {
        sim.disk.crash();
    }
    sim.disk.restart();
    // A dotlock that the cut left behind, torn or of a process that is gone, is stale by then.
    sim.clock.advance(Duration::from_secs(300));
    machine.host.end(100);
    let sim = machine.as_process(101);
    let store = open(&sim).unwrap();
    for user in USERS {
        let found = subjects(&store, user);
        let mut there = told.there.remove(user).unwrap_or_default();
        let perhaps = told.perhaps.remove(user).unwrap_or_default();
        if let Some((of, doomed)) = &told.together
            && *of == user
        {
            let left = found.intersection(doomed).count();
            assert!(left == 0 || left == doomed.len(), "{format:?} {seed}: a part of what was marked is gone");
            there.extend(found.intersection(doomed));
        }
        assert!(there.is_subset(&found), "{format:?} {seed}: {user} lost mail: {there:?}, found {found:?}");
        let more: BTreeSet<u32> = found.difference(&there).copied().collect();
        assert!(
            more.is_subset(&perhaps),
            "{format:?} {seed}: {user} has {found:?}, not only {there:?} and {perhaps:?}"
        );
    }
    // Who was not answered sends it again, and has it everywhere once.
    let mut again = Told::default();
    if let Some((number, users)) = &told.sent {
        assert!(deliver(&store, *number, users, &mut again), "{format:?} {seed}: the store does not go on");
    }
    USERS.iter().for_each(|user| drop(subjects(&store, user)));
}

#[test]
fn native() {
    (1..=HISTORIES).for_each(|seed| history(Format::Native, seed));
}

#[test]
fn mbox() {
    (1..=HISTORIES).for_each(|seed| history(Format::Mbox, seed));
}

#[test]
fn maildir() {
    (1..=HISTORIES).for_each(|seed| history(Format::Maildir, seed));
}
