//! The benchmark: every operation on every server in turn, beside its limit.
//!
//! Servers alternate within each repetition (A B A B), and so do the limits, so that a machine that grows slower or faster does so for
//! all of them.

mod appends;
mod reads;
pub mod report;
mod resources;
mod writes;

use crate::corpus::{self, Size};
use crate::error::{Error, Result};
use crate::limits::{self, Prefill, Replay};
use crate::mbox;
use crate::random::Random;
use crate::server::{Form, Local, Mailyard};
use crate::wire::{Address, Answer, Connection};
use crate::workload::report::{Goal, Report, Row, Samples, Unit};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The mailbox that everything happens in, beside those that APPEND makes.
const MAILBOX: &str = "bench";
/// APPEND is measured with as many messages as were used where its figures were first published.
const APPENDED: usize = 540;
/// A machine with more to do than this is no place to measure: a thread that waits for a sync waits for a processor afterwards.
const LOAD_MAX: f64 = 0.7;
/// Syncs per measurement of the limit.
const SYNCS: usize = 25;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name and size of the mailbox.
    pub size: (String, Size),
    /// Real mail to start from.
    pub from: PathBuf,
    /// For the corpus and for all choices of messages.
    pub seed: u64,
    /// How often each operation is measured.
    pub repeat: usize,
    /// The program `mailyard`, unless only other servers are measured.
    pub mailyard: Option<PathBuf>,
    /// Other servers, with names. Their mailboxes `bench` and `bench-N` are made anew.
    pub others: Vec<(String, Address)>,
    /// An existing folder on the disk that is to be measured.
    pub work: PathBuf,
}

/// A server in the benchmark.
struct Target {
    name: String,
    address: Address,
    mailyard: Option<Mailyard>,
    connection: Option<Connection>,
    exists: u32,
}

/// A running benchmark.
struct Bench<'p> {
    plan: &'p Plan,
    targets: Vec<Target>,
    random: Random,
    mbox: PathBuf,
    mail_bytes: u64,
    rows: Vec<Row>,
}

/// Runs the whole benchmark.
pub fn run(plan: &Plan) -> Result<Report> {
    let (name, size) = &plan.size;
    let busy = load().filter(|load| *load > LOAD_MAX);
    let mbox = plan.work.join(format!("{name}.mbox"));
    say(&format!("{name}: making {} messages", size.messages));
    let written = corpus::make(&plan.from, *size, plan.seed, &mbox)?;
    let mut targets = Vec::new();
    if let Some(program) = &plan.mailyard {
        let mailyard = Mailyard::create(program, &plan.work, Form::Native)?;
        let address = mailyard.address.clone();
        targets.push(Target::new("mailyard", address, Some(mailyard)));
    }
    targets.extend(plan.others.iter().map(|(name, address)| Target::new(name, address.clone(), None)));
    if targets.is_empty() {
        return Err(Error::new("no server to measure"));
    }
    let random = Random::new(plan.seed);
    let mut bench = Bench { plan, targets, random, mbox, mail_bytes: written.bytes, rows: Vec::new() };
    bench.fill()?;
    bench.disk_and_backup()?;
    bench.machine()?;
    bench.reads()?;
    bench.idle_sessions()?;
    bench.stores()?;
    bench.appends()?;
    bench.expunges()?;
    for target in &mut bench.targets {
        target.connection = None;
        if let Some(mailyard) = &mut target.mailyard {
            mailyard.stop()?;
        }
    }
    let mut title = format!("{name}: {} messages, {:.1} MB", written.messages, written.bytes as f64 / 1e6);
    if let Some(load) = busy {
        title.push_str(&format!(" (the machine was busy, load {load}: neither results nor limits are its best)"));
    }
    Ok(Report { title, servers: bench.targets.into_iter().map(|target| target.name).collect(), rows: bench.rows })
}

impl Target {
    fn new(name: &str, address: Address, mailyard: Option<Mailyard>) -> Target {
        Target { name: name.to_string(), address, mailyard, connection: None, exists: 0 }
    }

    /// The connection with the mailbox selected; opened when there is none.
    fn connection(&mut self) -> Result<&mut Connection> {
        if self.connection.is_none() {
            let mut connection = Connection::login(&self.address)?;
            self.exists = connection.select(MAILBOX)?.1;
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or_else(|| Error::new("no connection"))
    }
}

impl Bench<'_> {
    fn work(&self, file: &str) -> PathBuf {
        self.plan.work.join(file)
    }

    /// Brings the mail to every server: by `mailyard import`, or over the wire.
    fn fill(&mut self) -> Result<()> {
        let wanted = self.plan.size.1.messages;
        let mut samples = self.no_samples();
        let mut limit = Samples::default();
        let copy = self.work("copy");
        limit.push_time(limits::copy_and_sync(&self.mbox, &copy)?);
        std::fs::remove_file(&copy).map_err(|error| Error::new(error.to_string()))?;
        for (target, samples) in self.targets.iter_mut().zip(&mut samples) {
            match &mut target.mailyard {
                Some(mailyard) => {
                    say("mailyard: importing");
                    samples.push_time(mailyard.import(&self.mbox, MAILBOX)?);
                    mailyard.start()?;
                }
                None => fill_over_the_wire(target, &self.mbox, wanted)?,
            }
            target.connection()?;
            if u64::from(target.exists) != wanted {
                return Err(Error::new(format!("{}: {} messages, not {wanted}", target.name, target.exists)));
            }
        }
        self.row("import", Unit::Ms, samples, Some((limit, "copy of the mbox, synced".into())), None);
        Ok(())
    }

    /// The machine's syncs, for the reader: no server is involved.
    fn machine(&mut self) -> Result<()> {
        let block = vec![b'x'; 4096];
        let pieces: Vec<&[u8]> = (0..SYNCS).map(|_| block.as_slice()).collect();
        for (name, prefill) in [("growing", Prefill::No), ("prefilled", Prefill::Yes)] {
            let mut limit = Samples::default();
            for _ in 0..self.plan.repeat {
                limit.push_time(limits::single_syncs(&self.work("sync"), &pieces, prefill)? / SYNCS as u32);
            }
            let what = format!("write and fdatasync of 4 KiB, {name} file");
            self.row("(this machine)", Unit::Ms, self.no_samples(), Some((limit, what)), None);
        }
        Ok(())
    }

    /// One sync of a small write to a prefilled file, now.
    fn sync_time(&self) -> Result<Duration> {
        let block = vec![b'x'; 4096];
        let pieces: Vec<&[u8]> = (0..SYNCS).map(|_| block.as_slice()).collect();
        Ok(limits::single_syncs(&self.work("sync"), &pieces, Prefill::Yes)? / SYNCS as u32)
    }

    /// The first messages of the mbox, to append again.
    fn messages(&self, count: usize) -> Result<Vec<Vec<u8>>> {
        let mut messages = Vec::new();
        mbox::each_message(&self.mbox, |message| {
            messages.push(message);
            Ok(messages.len() < count)
        })?;
        Ok(messages)
    }

    fn no_samples(&self) -> Vec<Samples> {
        vec![Samples::default(); self.targets.len()]
    }

    fn row(
        &mut self,
        name: &str,
        unit: Unit,
        results: Vec<Samples>,
        limit: Option<(Samples, String)>,
        goal: Option<Goal>,
    ) {
        // Some rows are about processes of our own, and there may be none.
        if limit.is_none() && results.iter().all(Samples::is_empty) {
            return;
        }
        self.rows.push(Row { name: name.to_string(), unit, results, limit, goal });
    }

    /// Measures one operation `repeat` times on every server, and the replay of the first server's answer as many times, plus `syncs`
    /// syncs. A first round that does not count records the answer and warms everything.
    ///
    /// `operation` gets the server and the number of the round, rounds counted from 0 for the one that does not count; its answer must
    /// hold `commands(round)` tagged responses.
    fn against_replay(
        &mut self,
        name: &str,
        syncs: u32,
        goal: Option<Goal>,
        rounds: usize,
        mut operation: impl FnMut(&mut Target, &mut Random, usize) -> Result<Answer>,
    ) -> Result<()> {
        say(name);
        let recording = self.work("recording");
        let mut results = self.no_samples();
        let mut limit = Samples::default();
        let mut commands = 1;
        for number in 0..self.targets.len() {
            let random = &mut self.random;
            let Some(target) = self.targets.get_mut(number) else { continue };
            target.reset_peak()?;
            if number == 0 {
                let file = File::create(&recording).map_err(|error| Error::new(format!("recording: {error}")))?;
                target.connection()?.record(Some(file));
            }
            let answer = operation(target, random, 0)?;
            if number == 0 {
                target.connection()?.record(None);
                commands = answer.tagged;
            }
        }
        let mut replay = Replay::start(&recording)?;
        for round in 1..=rounds {
            for (target, samples) in self.targets.iter_mut().zip(&mut results) {
                samples.push_time(operation(target, &mut self.random, round)?.took);
            }
            let mut least = replay.run(commands)?.took;
            if syncs > 0 {
                least += self.sync_time()? * syncs;
            }
            limit.push_time(least);
        }
        replay.stop()?;
        let what = match syncs {
            0 => "the same answer from a file".to_string(),
            1 => "1 sync + the same answer from a file".to_string(),
            _ => format!("{syncs} syncs + the same answer from a file"),
        };
        self.row(name, Unit::Ms, results, Some((limit, what)), goal);
        self.peak_row(name)
    }
}

/// Makes the mailbox anew and fills it with the messages of an mbox, some hundred in each APPEND.
fn fill_over_the_wire(target: &mut Target, mbox: &Path, wanted: u64) -> Result<()> {
    const BATCH: usize = 200;
    let address = &target.address;
    let mut connection = Connection::login(address)?;
    // Not there, unless an earlier run left it.
    let _ = connection.command(&format!("DELETE {MAILBOX}"));
    connection.command(&format!("CREATE {MAILBOX}"))?;
    say(&format!("{address}: appending {wanted} messages"));
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let mut send = |batch: &mut Vec<Vec<u8>>| {
        let messages: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        connection.append(MAILBOX, &messages)?;
        batch.clear();
        Ok(())
    };
    mbox::each_message(mbox, |message| {
        batch.push(message);
        if batch.len() == BATCH {
            send(&mut batch)?;
        }
        Ok(true)
    })?;
    if !batch.is_empty() {
        send(&mut batch)?;
    }
    Ok(())
}

/// The load average of the last minute (proc(5)).
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Progress, for whoever waits.
fn say(what: &str) {
    eprintln!("  {what}");
}
