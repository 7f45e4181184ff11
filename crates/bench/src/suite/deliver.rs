//! `deliver`: mail that a transfer agent hands over by LMTP.
//!
//! Source: ours. What is measured is what Postfix's manual (LMTP_README, "tuning") and Dovecot's (LMTP server) leave open: how many messages
//! a second a store takes that has to have each on the disk before it answers (RFC 2033 §4.2, RFC 5321 §6.1), by one connection, by
//! the twenty that Postfix opens unless told otherwise (`default_destination_concurrency_limit`), and by a hundred.
//!
//! Decisions:
//! - 540 messages, as in `populate2006`; one recipient a message, as transfer agents deliver that know no better; recipients in turn, of one account or of twenty;
//! - each message is an LMTP transaction of its own on a connection that stays; MAIL, RCPT and DATA are sent at once where PIPELINING
//!   (RFC 2920) is offered, as Postfix does;
//! - everything that is sent was put together before, and one thread a connection does nothing but write and read;
//! - afterwards the messages are counted (STATUS): a server that lost one is marked wrong;
//! - syncs a message are counted in one more pass, which is not timed: perf(1) counts the calls of fsync and fdatasync of the server's
//!   processes. Where there is no perf, there is no such figure.
//!
//! Invariant: INBOX is empty before every measurement.

mod syncs;

use super::answers::status_messages;
use super::times::{ms, quantile};
use super::{Suite, mail};
use crate::error::{Error, Result};
use crate::limits::{self, Prefill};
use crate::results::{Better, Key, LIMIT, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::server::Service;
use crate::usage::Meter;
use crate::wire::{Address, Connection, LineConnection, stuffed};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const NAME: &str = "deliver";
const MESSAGES: usize = 540;
const QUICK_MESSAGES: usize = 60;
const CONNECTIONS: [usize; 3] = [1, 20, 100];
const QUICK_CONNECTIONS: [usize; 2] = [1, 20];
const ACCOUNTS: usize = 20;

/// The suite.
pub struct Deliver;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    test: &'static str,
    accounts: usize,
    connections: usize,
}

impl Suite for Deliver {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "Mailyard: deliveries by LMTP (RFC 2033), as a transfer agent makes them"
    }

    fn about(&self) -> &'static str {
        "540 messages delivered by LMTP on 1, 20 and 100 connections that stay open, to one account and to twenty in turn, each message \
         durable before its answer. The limit is the same bytes written to a file, with one fdatasync a message for one connection and one \
         for all that wait for more."
    }

    fn per_size(&self) -> bool {
        false
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let count = if run.plan.quick { QUICK_MESSAGES } else { MESSAGES };
        let messages = mail::messages(&run.corpus, count)?;
        let began = Instant::now();
        for round in 0..run.plan.repeat {
            if !run.again(NAME, round, began)? {
                break;
            }
            for case in cases(run.plan.quick) {
                run.each(NAME, &format!("{}, {} connections", case.test, case.connections), |contestant, tools| {
                    measure(contestant, tools, case, round, &messages)
                })?;
                limit(run, case, round, &messages)?;
            }
        }
        Ok(())
    }
}

fn cases(quick: bool) -> Vec<Case> {
    let connections: &[usize] = if quick { &QUICK_CONNECTIONS } else { &CONNECTIONS };
    let all = [("one account", 1), ("20 accounts", ACCOUNTS)];
    all.into_iter()
        .flat_map(|(test, accounts)| {
            connections.iter().map(move |connections| Case { test, accounts, connections: *connections })
        })
        .collect()
}

fn key(case: Case, server: &str, measure: &str) -> Key {
    Key::new(NAME, case.test, server, measure).with("connections", case.connections)
}

fn measure(
    contestant: &mut Contestant,
    tools: &mut Tools,
    case: Case,
    round: usize,
    messages: &[Vec<u8>],
) -> Result<()> {
    let name = contestant.info.name.clone();
    let key = |measure: &str| key(case, &name, measure);
    let Some(port) = contestant.server.local().and_then(|local| local.port(Service::Lmtp)) else {
        return tools.unsupported(key("rate"), round, "it takes no deliveries by LMTP, or not on this machine");
    };
    let accounts = contestant.server.accounts(case.accounts)?;
    let users: Vec<&str> = accounts.iter().map(|account| account.user.as_str()).collect();
    empty(&accounts)?;
    let jobs = jobs(case, &users, messages);
    let clients: Vec<LineConnection> = (0..case.connections).map(|_| client(port)).collect::<Result<_>>()?;
    let Some(local) = contestant.server.local() else { return Ok(()) };
    let mut meter = Meter::start(&local.processes()?)?;
    let done = deliver(clients, &jobs)?;
    meter.look(&local.processes()?)?;
    let verdict = verdict(&accounts, messages.len())?;
    let rate = messages.len() as f64 / done.took.as_secs_f64().max(1e-9);
    tools.recorder.sample(key("rate"), round, rate, Unit::PerSecond, Better::Higher, verdict.clone())?;
    tools.recorder.sample(key("time"), round, ms(done.took), Unit::Ms, Better::Lower, verdict)?;
    for (measure, share) in [("p50", 0.5), ("p99", 0.99)] {
        let value = ms(quantile(&done.latencies, share));
        tools.recorder.sample(key(measure), round, value, Unit::Ms, Better::Lower, Verdict::Right)?;
    }
    meter.usage().record(tools.recorder, &key("time"), round)?;
    if round == 0 {
        empty(&accounts)?;
        let clients: Vec<LineConnection> = (0..case.connections).map(|_| client(port)).collect::<Result<_>>()?;
        match syncs::during(|| local.processes(), || deliver(clients, &jobs).map(drop))? {
            Some(syncs) => {
                let each = syncs as f64 / messages.len() as f64;
                tools.recorder.sample(key("syncs"), round, each, Unit::Count, Better::Lower, Verdict::Right)?;
            }
            None => tools.unsupported(key("syncs"), round, "perf(1) cannot count calls of fsync here")?,
        }
    }
    empty(&accounts)
}

/// Expunges everything.
fn empty(accounts: &[Address]) -> Result<()> {
    for account in accounts {
        let mut connection = Connection::login(account)?;
        let (_, exists) = connection.select("INBOX")?;
        if exists > 0 {
            connection.batch(&[r"STORE 1:* +FLAGS.SILENT (\Deleted)", "EXPUNGE"])?;
        }
        connection.batch(&["CLOSE", "LOGOUT"])?;
    }
    Ok(())
}

fn verdict(accounts: &[Address], sent: usize) -> Result<Verdict> {
    let mut there = 0;
    for account in accounts {
        let answer = Connection::login(account)?.command("STATUS INBOX (MESSAGES)")?;
        there += answer.kept.iter().find_map(|line| status_messages(line)).unwrap_or_default();
    }
    Ok(match there == sent as u64 {
        true => Verdict::Right,
        false => Verdict::Wrong(format!("of {sent} messages {there} are there")),
    })
}

fn client(port: u16) -> Result<LineConnection> {
    let mut client = LineConnection::open(port, "220")?;
    client.send(b"LHLO bench.example\r\n")?;
    client.reply("250")?;
    Ok(client)
}

/// A transaction: what is sent before DATA is answered, and the message.
struct Transaction {
    envelope: Vec<u8>,
    data: Vec<u8>,
}

/// What each connection sends: the messages dealt out like cards, the accounts in turn.
fn jobs(case: Case, users: &[&str], messages: &[Vec<u8>]) -> Vec<Vec<Transaction>> {
    let mut jobs: Vec<Vec<Transaction>> = (0..case.connections).map(|_| Vec::new()).collect();
    let transactions = messages.iter().zip(users.iter().cycle()).map(|(message, user)| Transaction {
        envelope: format!("MAIL FROM:<bench@bench.example>\r\nRCPT TO:<{user}>\r\nDATA\r\n").into_bytes(),
        data: stuffed(message),
    });
    for (number, transaction) in transactions.enumerate() {
        if let Some(job) = jobs.get_mut(number % case.connections.max(1)) {
            job.push(transaction);
        }
    }
    jobs
}

struct Done {
    took: Duration,
    latencies: Vec<Duration>,
}

/// Lets all connections work at once.
fn deliver(clients: Vec<LineConnection>, jobs: &[Vec<Transaction>]) -> Result<Done> {
    let ready = Barrier::new(clients.len() + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .zip(jobs)
            .map(|(client, job)| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    work(client, job)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        let ended: Vec<Result<Vec<Duration>>> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| Error::new("a thread failed"))?).collect();
        let took = began.elapsed();
        let mut latencies = ended.into_iter().collect::<Result<Vec<_>>>()?.concat();
        latencies.sort_unstable();
        Ok(Done { took, latencies })
    })
}

fn work(mut client: LineConnection, job: &[Transaction]) -> Result<Vec<Duration>> {
    let mut latencies = Vec::with_capacity(job.len());
    for transaction in job {
        let began = Instant::now();
        client.send(&transaction.envelope)?;
        for answer in ["250", "250", "354"] {
            client.reply(answer)?;
        }
        client.send(&transaction.data)?;
        client.reply("250")?;
        latencies.push(began.elapsed());
    }
    client.send(b"QUIT\r\n")?;
    Ok(latencies)
}

fn limit(run: &mut Run, case: Case, round: usize, messages: &[Vec<u8>]) -> Result<()> {
    let path = run.work().join("deliver-limit");
    let pieces: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let took = match case.connections {
        1 => limits::single_syncs(&path, &pieces, Prefill::Yes)?,
        connections => limits::group_commit(&path, &pieces, connections, Prefill::Yes)?.0,
    };
    let rate = messages.len() as f64 / took.as_secs_f64().max(1e-9);
    run.recorder.sample(key(case, LIMIT, "rate"), round, rate, Unit::PerSecond, Better::Higher, Verdict::Right)
}

#[cfg(test)]
mod tests {
    use super::{ACCOUNTS, cases, jobs};

    #[test]
    fn every_message_goes_to_somebody_once() {
        let messages: Vec<Vec<u8>> =
            (0..97).map(|number| format!("a: {number:03}\r\n\r\nx\r\n").into_bytes()).collect();
        let names: Vec<String> = (0..ACCOUNTS).map(|number| format!("u{number}")).collect();
        for case in cases(false) {
            let users: Vec<&str> = names.iter().take(case.accounts).map(String::as_str).collect();
            let jobs = jobs(case, &users, &messages);
            assert_eq!(jobs.len(), case.connections);
            let mut all: Vec<&[u8]> = jobs.iter().flatten().map(|transaction| transaction.data.as_slice()).collect();
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), messages.len(), "{case:?}");
            let to_last = format!("RCPT TO:<{}>", users.last().expect("one at least"));
            assert!(jobs.iter().flatten().any(|sent| String::from_utf8_lossy(&sent.envelope).contains(&to_last)));
        }
    }
}
