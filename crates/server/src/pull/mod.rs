//! `import --from imaps://...`: mail from any IMAP server, as often as one likes, until the users are moved.
//!
//! Several connections work at once, each on a mailbox of its own, with the next commands already sent while answers come. What a run has
//! brought is remembered with the messages (see `store::import::RemoteMailbox`): the next one brings what is new and what has
//! changed. Mailboxes that are empty here keep UIDs and UIDVALIDITY. The other server is only read (EXAMINE, BODY.PEEK).

mod client;
mod mailbox;
mod names;
mod remote;
mod tls;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};

use model::{Error, MailboxName, Result};
use serde_json::{Value, json};
use store::Account;

use self::client::{Client, Failure};
use self::names::Job;
pub use self::remote::Remote;
use crate::admin::Progress;

/// A connection that breaks is made again so often for one mailbox; each time the work goes on where it was.
const TRIES_MAX: usize = 4;

/// How to pull.
pub struct Options {
    /// From where.
    pub remote: Remote,
    /// The mailbox above all; `None`: the names are those there.
    pub above: Option<MailboxName>,
    /// One mailbox there only, by its name here.
    pub only: Vec<MailboxName>,
    /// Connections at once.
    pub connections: usize,
    /// Whether messages that are gone there are expunged here, if an earlier run has brought them.
    pub delete: bool,
    /// Larger messages are left out, octets.
    pub message_bytes_max: u64,
}

/// What the workers tell.
enum Event {
    /// A mailbox is being filled.
    Mailbox { keeps_uids: bool },
    /// So many messages are to come.
    Found(u64),
    /// So many have come, `missing` were gone in the meantime.
    Imported { messages: u64, bytes: u64, missing: u64 },
    /// So many had other flags.
    FlagsChanged(u64),
    /// So many were expunged.
    Expunged(u64),
    /// Something worth knowing; whether a message or a mailbox was left out.
    Note { text: String, skipped: bool },
    /// A mailbox is done, or has failed.
    Done(MailboxName, Result<()>),
}

/// Where workers tell it.
pub(crate) struct Sink<'a> {
    events: mpsc::Sender<Event>,
    cancelled: &'a AtomicBool,
}

impl Sink<'_> {
    fn send(&self, event: Event) {
        // Nobody listens any more once the command has ended.
        let _ = self.events.send(event);
    }

    fn note(&self, job: &Job, what: impl std::fmt::Display) {
        self.send(Event::Note { text: format!("{}: {what}", job.here), skipped: false });
    }

    fn skip(&self, job: &Job, what: impl std::fmt::Display) {
        self.send(Event::Note { text: format!("{}: skipped: {what}", job.here), skipped: true });
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// What a run did.
#[derive(Default)]
struct Report {
    messages: u64,
    bytes: u64,
    found: u64,
    flags_changed: u64,
    expunged: u64,
    skipped: u64,
    notes: u64,
    mailboxes: Vec<MailboxName>,
    keep_uids: u64,
    failed: Vec<String>,
}

/// Pulls an account; the answer is what `--json` prints. A mailbox that fails is in the answer; the others go on.
pub fn pull(account: &Account, options: &Options, progress: &mut dyn Progress) -> Result<Value> {
    let mut client = Client::login(&options.remote, options.message_bytes_max)?;
    let mut jobs = names::list(&mut client, options.above.as_ref(), &mut |note| progress.notice(note))?;
    if !options.only.is_empty() {
        if let Some(missing) = options.only.iter().find(|name| jobs.iter().all(|job| job.here != **name)) {
            return Err(Error::new(model::ErrorKind::NotFound, format!("there is no mailbox {missing} to import")));
        }
        jobs.retain(|job| options.only.contains(&job.here));
    }
    // The large ones are not known yet; INBOX is likely to be one.
    jobs.sort_by_key(|job| !job.here.is_inbox());
    let connections = options.connections.min(jobs.len()).max(1);
    let jobs = Mutex::new(VecDeque::from(jobs));
    let cancelled = AtomicBool::new(false);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let (events, receiver) = mpsc::channel();
        let mut first = Some(client);
        for _ in 0..connections {
            let sink = Sink { events: events.clone(), cancelled: &cancelled };
            let (client, jobs) = (first.take(), &jobs);
            scope.spawn(move || work(client, account, jobs, options, &sink));
        }
        drop(events);
        for event in receiver {
            report.take(event, progress);
            if progress.is_cancelled() {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    });
    report.mailboxes.sort();
    Ok(json!({
        "imported": report.messages,
        "imported_bytes": report.bytes,
        "flags_changed": report.flags_changed,
        "expunged": report.expunged,
        "skipped": report.skipped,
        "notes": report.notes,
        "mailboxes": report.mailboxes.iter().map(MailboxName::as_str).collect::<Vec<_>>(),
        "mailboxes_with_their_uids": report.keep_uids,
        "failed": report.failed,
        "stopped": cancelled.load(Ordering::Relaxed),
    }))
}

impl Report {
    fn take(&mut self, event: Event, progress: &mut dyn Progress) {
        match event {
            Event::Mailbox { keeps_uids } => self.keep_uids += u64::from(keeps_uids),
            Event::Found(count) => self.found += count,
            Event::Imported { messages, bytes, missing } => {
                self.messages += messages;
                self.bytes += bytes;
                self.found = self.found.saturating_sub(missing);
            }
            Event::FlagsChanged(count) => self.flags_changed += count,
            Event::Expunged(count) => self.expunged += count,
            Event::Note { text, skipped } => {
                self.skipped += u64::from(skipped);
                self.notes += u64::from(!skipped);
                progress.notice(text);
            }
            Event::Done(name, Ok(())) => self.mailboxes.push(name),
            Event::Done(name, Err(error)) => {
                progress.notice(format!("{name}: not finished: {error}"));
                self.failed.push(name.as_str().to_owned());
            }
        }
        progress.advanced(self.messages, self.found, "messages");
    }
}

/// Takes mailboxes until there are none left.
fn work(first: Option<Client>, account: &Account, jobs: &Mutex<VecDeque<Job>>, options: &Options, sink: &Sink<'_>) {
    let mut connection = first;
    while !sink.is_cancelled() {
        let Some(job) = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { break };
        let result = pull_one(&mut connection, account, &job, options, sink);
        sink.send(Event::Done(job.here, result));
    }
    if let Some(client) = connection {
        client.logout();
    }
}

/// One mailbox, over as many connections as it takes.
fn pull_one(
    connection: &mut Option<Client>,
    account: &Account,
    job: &Job,
    options: &Options,
    sink: &Sink<'_>,
) -> Result<()> {
    let mut tries = 0;
    loop {
        tries += 1;
        let result =
            match connection.take().map_or_else(|| Client::login(&options.remote, options.message_bytes_max), Ok) {
                Ok(client) => mailbox::pull(connection.insert(client), account, job, options, sink),
                Err(error) => Err(Failure::Lost(error)),
            };
        match result {
            Ok(()) => return Ok(()),
            Err(Failure::Lost(error)) => {
                *connection = None;
                let is_connection = error.kind() == model::ErrorKind::Io;
                if !is_connection || tries == TRIES_MAX || sink.is_cancelled() {
                    return Err(error);
                }
            }
            Err(refused) => return Err(mailbox::describe(refused)),
        }
    }
}
