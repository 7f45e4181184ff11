//! `populate2006`: filling mailboxes, by one connection and by many.
//!
//! Source: Ross Boylan's timings of populating mailboxes, on the mailing list of Cyrus IMAP (info-cyrus), 2006: 540 messages went into
//! the server by one connection and by up to twenty at once, with and without fsync. The finding that outlived it: with syncs, one
//! connection gets as many messages a second as the disk does syncs, and only servers that share syncs between connections gain by
//! more of them.
//!
//! What we changed, and why:
//! - connections of 1, 2, 3, 7 and 20, each with a mailbox of its own, as there; the same with one mailbox for all, where a server has to
//!   order them;
//! - every message with a literal that the server has to ask for (what clients of 2006 sent), and the same with literals that are not
//!   waited for (RFC 7888) and with MULTIAPPEND (RFC 3502), at one connection and at twenty;
//! - the messages are the run's, the same for every server, without the header fields that mbox files keep flags in;
//! - everything that is sent was put together before, and one thread a connection does nothing but write and read: so that the
//!   server is measured. The time is from the moment when all are logged in and ready to the last answer;
//! - afterwards the messages are counted (STATUS) and their sizes added up (FETCH RFC822.SIZE): a server that lost one is marked wrong.
//!
//! Invariant: the mailboxes are new before every measurement.

mod check;
mod writers;

use super::times::{ms, quantile};
use super::{Suite, mail};
use crate::error::{Error, Result};
use crate::limits::{self, Prefill};
use crate::results::{Better, Key, LIMIT, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::usage::{Meter, Usage};
use crate::wire::Connection;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use writers::{Form, Job};

const NAME: &str = "populate2006";
const MESSAGES: usize = 540;
const QUICK_MESSAGES: usize = 40;
const CONNECTIONS: [usize; 5] = [1, 2, 3, 7, 20];
/// Where only the ends of the range are measured.
const ENDS: [usize; 2] = [1, 20];
const QUICK_CONNECTIONS: [usize; 2] = [1, 3];
/// A case that took a server longer is not repeated on it.
const REPEATED_MAX: Duration = Duration::from_secs(4);

/// The suite.
pub struct Populate2006;

/// Where the messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mailboxes {
    /// Each connection has its own.
    Separate,
    /// All connections have the same.
    One,
}

/// One measurement: a test and its number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    test: &'static str,
    connections: usize,
    mailboxes: Mailboxes,
    form: Form,
}

impl Suite for Populate2006 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "Ross Boylan, timings of mailbox population, Cyrus IMAP mailing list, 2006"
    }

    fn about(&self) -> &'static str {
        "APPEND of 540 messages by 1, 2, 3, 7 and 20 connections at once: into separate mailboxes of one user, into one mailbox, with \
         literals that the server has to ask for and without, with MULTIAPPEND, and without syncs where the server has a setting for \
         that. The limit is the same bytes written to a file, with one fdatasync a message for one connection and one for all that wait \
         for more."
    }

    fn per_size(&self) -> bool {
        false
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let count = if run.plan.quick { QUICK_MESSAGES } else { MESSAGES };
        let messages = mail::messages(&run.corpus, count)?;
        let mut slow = Slow::default();
        let began = Instant::now();
        for round in 0..run.plan.repeat {
            if !run.again(NAME, round, began)? {
                break;
            }
            for case in cases(run.plan.quick) {
                measure_all(run, case, round, &messages, &mut slow)?;
                limit(run, case, round, &messages)?;
            }
        }
        unsynced(run, &messages, &mut slow)
    }
}

fn cases(quick: bool) -> Vec<Case> {
    let separate =
        Case { test: "separate mailboxes", connections: 1, mailboxes: Mailboxes::Separate, form: Form::Asked };
    let (all, ends): (&[usize], &[usize]) =
        if quick { (&QUICK_CONNECTIONS, &QUICK_CONNECTIONS) } else { (&CONNECTIONS, &ENDS) };
    let with = |case: Case, connections: &[usize]| -> Vec<Case> {
        connections.iter().map(|connections| Case { connections: *connections, ..case }).collect()
    };
    let several = all.get(1..).unwrap_or_default();
    [
        with(separate, all),
        with(Case { test: "one mailbox", mailboxes: Mailboxes::One, ..separate }, several),
        with(Case { test: "LITERAL+", form: Form::NotAsked, ..separate }, ends),
        with(Case { test: "MULTIAPPEND", form: Form::Multi, ..separate }, ends),
    ]
    .concat()
}

fn measure_all(run: &mut Run, case: Case, round: usize, messages: &[Vec<u8>], slow: &mut Slow) -> Result<()> {
    run.each(NAME, &format!("{}, {} connections", case.test, case.connections), |contestant, tools| {
        slow.unless(contestant, tools, case, |contestant, tools| measure(contestant, tools, case, round, messages))
    })
}

/// What took so long that it is not repeated: the spread of such times is small beside them, and some servers would take hours.
#[derive(Default)]
struct Slow {
    /// Servers with the cases.
    known: Vec<(String, Case)>,
}

impl Slow {
    /// Measures, unless it took too long before; says so.
    fn unless(
        &mut self,
        contestant: &mut Contestant,
        tools: &mut Tools,
        case: Case,
        measure: impl FnOnce(&mut Contestant, &mut Tools) -> Result<()>,
    ) -> Result<()> {
        let name = contestant.info.name.clone();
        if self.known.iter().any(|(server, slow)| *server == name && *slow == case) {
            let text = format!("what took more than {} s with all around it is measured once", REPEATED_MAX.as_secs());
            return tools.recorder.note(NAME, &name, text);
        }
        let began = Instant::now();
        measure(contestant, tools)?;
        if began.elapsed() > REPEATED_MAX {
            self.known.push((name, case));
        }
        Ok(())
    }
}

/// The tests with separate mailboxes once more, on servers that were told not to sync.
fn unsynced(run: &mut Run, messages: &[Vec<u8>], slow: &mut Slow) -> Result<()> {
    set_synced(run, false)?;
    let cases: Vec<Case> = cases(run.plan.quick).into_iter().filter(|case| case.test == "separate mailboxes").collect();
    for round in 0..run.plan.repeat {
        for case in &cases {
            let case = Case { test: "separate mailboxes, unsynced", ..*case };
            run.each(NAME, &format!("{}, {} connections", case.test, case.connections), |contestant, tools| {
                let offered = contestant.server.local().is_some_and(|local| local.set_synced(false).unwrap_or(false));
                if offered {
                    return slow.unless(contestant, tools, case, |contestant, tools| {
                        measure(contestant, tools, case, round, messages)
                    });
                }
                let why = "no setting that turns syncs off is known for this server";
                tools.unsupported(key(case, &contestant.info.name, "rate"), round, why)
            })?;
        }
    }
    set_synced(run, true)
}

/// Restarts the servers that have a setting for syncs, with that setting.
fn set_synced(run: &mut Run, synced: bool) -> Result<()> {
    run.each(NAME, if synced { "syncs again" } else { "no syncs" }, |contestant, _| {
        let Some(local) = contestant.server.local() else { return Ok(()) };
        if !local.set_synced(synced)? {
            return Ok(());
        }
        local.stop()?;
        local.start()
    })
}

/// One measurement of one server.
fn measure(
    contestant: &mut Contestant,
    tools: &mut Tools,
    case: Case,
    round: usize,
    messages: &[Vec<u8>],
) -> Result<()> {
    let name = contestant.info.name.clone();
    let key = |measure: &str| key(case, &name, measure);
    let account = contestant.server.accounts(1)?.into_iter().next().ok_or_else(|| Error::new("no account"))?;
    let mut control = Connection::login(&account)?;
    if let Some(missing) = case.form.missing(&control.capabilities()?) {
        return tools.unsupported(key("rate"), round, format!("the server does not offer {missing}"));
    }
    let mailboxes = mailboxes(case);
    for mailbox in &mailboxes {
        control.renew(mailbox)?;
    }
    let names: Vec<String> = mailboxes.iter().map(|mailbox| control.mailbox(mailbox)).collect();
    let jobs = jobs(case, &names, messages);
    let writers = writers::connect(&account, jobs)?;
    let mut meter = match contestant.server.local() {
        Some(local) => Some(Meter::start(&local.processes()?)?),
        None => None,
    };
    let client = Usage::own()?;
    let outcome = writers::run(writers);
    let client = Usage::own()? - client;
    if let (Some(meter), Some(local)) = (&mut meter, contestant.server.local()) {
        meter.look(&local.processes()?)?;
    }
    let done = match outcome {
        Ok(done) => done,
        Err(error) => {
            tools.recorder.missing(key("rate"), round, Verdict::Failed(error.to_string()))?;
            // A server that refuses one thing may do the next; one that is gone may not.
            return Connection::login(&account).map(drop);
        }
    };
    let verdict = check::verdict(&mut control, &mailboxes, messages)?;
    record(tools, &key, round, messages.len(), done.took, verdict)?;
    let latency = [("p50", 0.5), ("p99", 0.99)].map(|(measure, share)| (measure, quantile(&done.latencies, share)));
    for (measure, value) in latency.into_iter().filter(|_| case.form != Form::Multi) {
        tools.recorder.sample(key(measure), round, ms(value), Unit::Ms, Better::Lower, Verdict::Right)?;
    }
    tools.recorder.sample(key("client_cpu"), round, ms(client.cpu()), Unit::Ms, Better::Lower, Verdict::Right)?;
    if let Some(meter) = meter {
        meter.usage().record(tools.recorder, &key("time"), round)?;
    }
    drop(done.connections);
    for mailbox in &mailboxes {
        control.command(&format!("DELETE {}", control.mailbox(mailbox)))?;
    }
    Ok(())
}

/// The same bytes written to a file, durable as often as the messages have to be.
fn limit(run: &mut Run, case: Case, round: usize, messages: &[Vec<u8>]) -> Result<()> {
    let path: PathBuf = run.work().join("populate-limit");
    let took = durable(&path, case, messages)?;
    let key = |measure: &str| key(case, LIMIT, measure);
    let mut tools = Tools { plan: run.plan, corpus: &run.corpus, recorder: &mut run.recorder };
    record(&mut tools, &key, round, messages.len(), took, Verdict::Right)
}

fn durable(path: &Path, case: Case, messages: &[Vec<u8>]) -> Result<Duration> {
    if case.form == Form::Multi {
        // Each command is durable as a whole.
        let pieces: Vec<Vec<u8>> = split(messages, case.connections).into_iter().map(|part| part.concat()).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        return Ok(limits::group_commit(path, &pieces, case.connections, Prefill::Yes)?.0);
    }
    let pieces: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    if case.connections == 1 {
        return limits::single_syncs(path, &pieces, Prefill::Yes);
    }
    Ok(limits::group_commit(path, &pieces, case.connections, Prefill::Yes)?.0)
}

fn record(
    tools: &mut Tools,
    key: &dyn Fn(&str) -> Key,
    round: usize,
    messages: usize,
    took: Duration,
    verdict: Verdict,
) -> Result<()> {
    let rate = messages as f64 / took.as_secs_f64().max(1e-9);
    tools.recorder.sample(key("rate"), round, rate, Unit::PerSecond, Better::Higher, verdict.clone())?;
    tools.recorder.sample(key("time"), round, ms(took), Unit::Ms, Better::Lower, verdict)
}

fn key(case: Case, server: &str, measure: &str) -> Key {
    Key::new(NAME, case.test, server, measure).with("connections", case.connections)
}

fn mailboxes(case: Case) -> Vec<String> {
    let count = if case.mailboxes == Mailboxes::One { 1 } else { case.connections };
    (1..=count).map(|number| format!("bench-{number}")).collect()
}

/// The messages dealt out like cards; the first connections may have one more.
fn split(messages: &[Vec<u8>], connections: usize) -> Vec<Vec<&[u8]>> {
    let part = |number| messages.iter().skip(number).step_by(connections.max(1)).map(Vec::as_slice).collect();
    (0..connections).map(part).collect()
}

fn jobs(case: Case, mailboxes: &[String], messages: &[Vec<u8>]) -> Vec<Job> {
    let parts = split(messages, case.connections);
    let mailbox = mailboxes.iter().cycle();
    parts.iter().zip(mailbox).map(|(part, mailbox)| Job::new(case.form, mailbox, part)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Form, Mailboxes, cases, jobs, mailboxes, split};

    #[test]
    fn every_message_is_sent_once() {
        let messages: Vec<Vec<u8>> = (0..540).map(|number| format!("m{number:03}").into_bytes()).collect();
        for case in cases(false) {
            let parts = split(&messages, case.connections);
            let mut all: Vec<&[u8]> = parts.concat();
            all.sort_unstable();
            assert_eq!(all.len(), 540, "{case:?}");
            all.dedup();
            assert_eq!(all.len(), 540, "{case:?}");
            let mailboxes = mailboxes(case);
            assert_eq!(mailboxes.len(), if case.mailboxes == Mailboxes::One { 1 } else { case.connections });
            assert_eq!(jobs(case, &mailboxes, &messages).len(), case.connections);
        }
    }

    #[test]
    fn the_published_numbers_of_connections() {
        let cases = cases(false);
        let of = |test| -> Vec<usize> { cases.iter().filter(|c| c.test == test).map(|c| c.connections).collect() };
        assert_eq!(of("separate mailboxes"), [1, 2, 3, 7, 20]);
        assert_eq!(of("one mailbox"), [2, 3, 7, 20]);
        assert_eq!(of("MULTIAPPEND"), [1, 20]);
        assert!(cases.iter().filter(|case| case.form == Form::NotAsked).all(|case| case.test == "LITERAL+"));
    }
}
