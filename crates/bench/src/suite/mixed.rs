//! `mixed`: many users, many connections, everything at once.
//!
//! Source: none; this is what the published comparisons left open. They measured one client and one operation at a time, and a mail
//! server spends its days with hundreds of clients that do different things, most of them on few mailboxes, some only waiting.
//!
//! What is done: 40 users with four filled mailboxes each and one that is appended to; five connections a user. One of them idles on
//! the mailbox that is appended to and has to be told of every message. The four others do, in an order that a seed decides and that is
//! the same for every server: fetching whole messages (25 %), listings of up to fifty messages (20 %), searches over two or three header
//! fields (15 %), setting and removing flags (15 %), appending (10 %), STATUS (7 %), SELECT (5 %), LIST (3 %). A connection sends its
//! next command as soon as the last is answered, for a fixed time after a tenth of that to get under way.
//!
//! What counts as right: the numbers of EXISTS, STATUS and LIST, every envelope of a listing, the length of every message, the hits of
//! every search (worked out from the header fields of the messages), and an EXISTS for every message within the time. A server that
//! answers otherwise has its figures marked as wrong; refused commands are counted.
//!
//! What to keep in mind: without time to think, all connections always wait for the server, so latencies are those of a server at its
//! limit, and rate and latency say nearly the same. The client's own processor time is recorded (`client_cpu`): what it took, the
//! server on the same machine did not have.
//!
//! Invariant: every round begins with the same messages and flags.

mod figures;
mod fill;
mod load;
mod place;
mod script;
mod session;
mod stream;
mod tally;

use super::{Suite, mail};
use crate::error::{Error, Result};
use crate::random::{Random, hash};
use crate::results::Key;
use crate::run::{Contestant, Run, Tools};
use crate::usage::{self, Meter, Usage};
use crate::wire::{Address, Connection};
use figures::Figures;
use load::Load;
use place::{INBOX, Mailbox, Pool};
use script::Script;
use session::Session;
use std::sync::Arc;
use std::time::Duration;
use stream::Stream;
use tally::{Counting, Tally};

const NAME: &str = "mixed";

/// The suite.
pub struct Mixed;

/// How much is done.
struct Extent {
    users: usize,
    /// Of each user; the first idles.
    connections: usize,
    /// Messages in each of a user's mailboxes.
    sizes: &'static [usize],
    /// Messages that mailboxes are filled from.
    pool: usize,
    time: Duration,
    /// For answers and news that are late.
    grace: Duration,
}

const FULL: Extent = Extent {
    users: 40,
    connections: 5,
    sizes: &[150, 40, 20, 10],
    pool: 2_000,
    time: Duration::from_secs(10),
    grace: Duration::from_secs(30),
};
const QUICK: Extent = Extent {
    users: 4,
    connections: 2,
    sizes: &[20, 8, 5, 3],
    pool: 60,
    time: Duration::from_secs(2),
    grace: Duration::from_secs(30),
};

/// The work for one server.
struct Job {
    /// Of distinct users.
    accounts: Vec<Address>,
    /// Of each account.
    mailboxes: Vec<Arc<Vec<Mailbox>>>,
}

impl Suite for Mixed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "none: what the published comparisons left open"
    }

    fn about(&self) -> &'static str {
        "40 users with 200 connections: one of each user's five idles and has to be told of new messages, the others fetch, list, search \
         header fields, set flags, append, look at other mailboxes, in an order that is the same for every server, each as fast as it \
         is answered. Commands a second, the median and the slowest hundredth of each kind, and what the server took of processor, memory \
         and disk."
    }

    fn per_size(&self) -> bool {
        false
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let extent = if run.plan.quick { QUICK } else { FULL };
        let count = extent.pool.min(usize::try_from(run.corpus.messages).unwrap_or(usize::MAX));
        let pool = Arc::new(Pool::new(mail::messages(&run.corpus, count)?));
        if pool.messages.is_empty() {
            return Err(Error::new("no message of the corpus has header fields that can be searched"));
        }
        let mut jobs: Vec<(String, Job)> = Vec::new();
        run.each(NAME, "filling", |contestant, tools| {
            jobs.push((contestant.info.name.clone(), fill(contestant, tools, &extent, &pool)?));
            Ok(())
        })?;
        for round in 0..run.plan.repeat {
            run.each(NAME, "working", |contestant, tools| {
                let job = jobs.iter().find(|(name, _)| *name == contestant.info.name);
                let (_, job) = job.ok_or_else(|| Error::new("its mailboxes were not filled"))?;
                measure(contestant, tools, &extent, job, &pool, round)
            })?;
        }
        run.each(NAME, "removing", |contestant, _| {
            let Some((_, job)) = jobs.iter().find(|(name, _)| *name == contestant.info.name) else { return Ok(()) };
            job.each(fill::remove)
        })
    }
}

impl Job {
    fn each(&self, action: impl Fn(&Address, &[Mailbox]) -> Result<()>) -> Result<()> {
        self.accounts.iter().zip(&self.mailboxes).try_for_each(|(account, mailboxes)| action(account, mailboxes))
    }
}

/// Fills a server's mailboxes; without syncs where that can be had, since filling is not measured.
fn fill(contestant: &mut Contestant, tools: &Tools, extent: &Extent, pool: &Pool) -> Result<Job> {
    let mut accounts: Vec<Address> = Vec::new();
    for account in contestant.server.accounts(extent.users)? {
        // A server with fewer accounts gives the same ones again.
        if !accounts.iter().any(|known| known.user == account.user) {
            accounts.push(account);
        }
    }
    let mut random = Random::new(tools.plan.seed);
    let mailboxes = (0..accounts.len()).map(|user| Arc::new(pool.mailboxes(extent.sizes, user, &mut random)));
    let job = Job { mailboxes: mailboxes.collect(), accounts };
    let unsynced = set_synced(contestant, false)?;
    let filled = fill::fill(&job.accounts, &job.mailboxes.iter().map(|own| own.as_slice()).collect::<Vec<_>>(), pool);
    if unsynced {
        set_synced(contestant, true)?;
    }
    filled.map(|()| job)
}

/// Restarts the server with its setting for syncs changed, if it has one; says whether it has.
fn set_synced(contestant: &mut Contestant, synced: bool) -> Result<bool> {
    let Some(local) = contestant.server.local() else { return Ok(false) };
    if !local.set_synced(synced)? {
        return Ok(false);
    }
    local.stop()?;
    local.start()?;
    Ok(true)
}

/// One round on one server.
fn measure(
    contestant: &mut Contestant,
    tools: &mut Tools,
    extent: &Extent,
    job: &Job,
    pool: &Arc<Pool>,
    round: usize,
) -> Result<()> {
    job.each(fill::reset)?;
    let (sessions, tally) = connect(tools.plan.seed, extent, job, pool)?;
    let connections = sessions.len();
    let mut load = Load::new(sessions, tally)?;
    load.work(extent.time / 10, Counting::No)?;
    let mut meter = processes(contestant)?.map(|ids| Meter::start(&ids)).transpose()?;
    let client = Usage::own()?;
    load.work(extent.time, Counting::Yes)?;
    let client = Usage::own()? - client;
    let mut memory = None;
    if let (Some(meter), Some(ids)) = (&mut meter, processes(contestant)?) {
        meter.look(&ids)?;
        memory = Some(usage::memory(&ids)?);
    }
    load.finish(extent.grace)?;
    let unanswered = load.busy();
    let figures = Figures {
        tally: load.tally,
        unanswered,
        time: extent.time,
        server: meter.map(|meter| meter.usage()),
        memory,
        client,
    };
    let key = |test: &str, measure: &str| {
        Key::new(NAME, test, &contestant.info.name, measure)
            .with("users", job.accounts.len())
            .with("connections", connections)
    };
    figures.record(tools.recorder, &key, round)
}

fn processes(contestant: &mut Contestant) -> Result<Option<Vec<u32>>> {
    contestant.server.local().map(|local| local.processes()).transpose()
}

/// All connections of all users, logged in; the idling ones idle.
fn connect(seed: u64, extent: &Extent, job: &Job, pool: &Arc<Pool>) -> Result<(Vec<Session>, Tally)> {
    let mut sessions = Vec::new();
    let mut before = Vec::new();
    for (user, (account, mailboxes)) in job.accounts.iter().zip(&job.mailboxes).enumerate() {
        let mut idler = Connection::login(account)?;
        let offered = idler.capabilities()?;
        if !offered.has("IDLE") {
            return Err(Error::new("the server does not offer IDLE"));
        }
        before.push(idler.select(INBOX)?.1);
        idler.idle()?;
        sessions.push(Session::idler(Stream::new(idler)?, user));
        for number in 1..extent.connections {
            let stream = Stream::new(Connection::login(account)?)?;
            let random = Random::new(hash(seed, format!("{user} {number}").as_bytes()));
            let prefix = account.prefix.clone();
            let script = Script::new(random, Arc::clone(pool), Arc::clone(mailboxes), prefix, offered.has("LITERAL+"));
            sessions.push(Session::worker(stream, user, script));
        }
    }
    Ok((sessions, Tally::new(&before)))
}
