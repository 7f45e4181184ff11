//! `pop3`: a client that fetches everything and deletes it at the end.
//!
//! Source: T. Sirainen, Dovecot mailing list, 2 July 2004, where the mailbox in one file was measured ("mbox vs. maildir", see `mbox2004`):
//! the client that logs in, fetches all and deletes all at logout is named there as what the lazy rewriting of mbox files is for.
//!
//! Decisions:
//! - the steps are timed by themselves: logging in, LIST and UIDL, RETR of everything, DELE of everything, QUIT; and the sum;
//! - RETR and DELE are sent many at a time where PIPELINING (RFC 2449 §6.6) is offered: what is measured is the server and not the
//!   journey; a second test sends one at a time, as most clients do;
//! - the mailbox is INBOX, filled by APPEND, of which the server is started anew before a round, with its files in the page cache;
//! - the client adds up what it got: octets of LIST and of RETR have to be the same, and INBOX is empty after.

use super::Suite;
use super::answers::status_messages;
use super::times::ms;
use crate::error::{Error, Result};
use crate::fill;
use crate::results::{Better, Key, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::server::Service;
use crate::usage::Meter;
use crate::wire::{Address, Connection, LineConnection};
use std::time::{Duration, Instant};

const NAME: &str = "pop3";
/// Commands that are sent before the first answer is read.
const AT_ONCE: usize = 100;

/// The suite.
pub struct Pop3;

impl Suite for Pop3 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "T. Sirainen, Dovecot mailing list, 2 July 2004: the POP3 client that deletes everything at logout"
    }

    fn about(&self) -> &'static str {
        "A POP3 client logs in, lists INBOX (LIST, UIDL), fetches every message, deletes every message and says QUIT: with commands sent a \
         hundred at a time (PIPELINING) and one at a time."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let began = Instant::now();
        for round in 0..run.plan.repeat {
            if !run.again(NAME, round, began)? {
                break;
            }
            for (test, at_once) in [("pipelined", AT_ONCE), ("one at a time", 1)] {
                run.each(NAME, test, |contestant, tools| measure(contestant, tools, (test, at_once), round))?;
            }
        }
        Ok(())
    }
}

fn measure(contestant: &mut Contestant, tools: &mut Tools, (test, at_once): (&str, usize), round: usize) -> Result<()> {
    let name = contestant.info.name.clone();
    let size = tools.corpus.name.clone();
    let key = |measure: &str| Key::new(NAME, test, &name, measure).size(&size).state(State::Warm);
    let Some(port) = contestant.server.local().and_then(|local| local.port(Service::Pop3)) else {
        return tools.unsupported(key("time"), round, "it speaks no POP3, or not on this machine");
    };
    let account = contestant.server.accounts(1)?.into_iter().next().ok_or_else(|| Error::new("no account"))?;
    fill_inbox(&account, tools)?;
    let Some(local) = contestant.server.local() else { return Ok(()) };
    local.stop()?;
    local.start()?;
    let mut meter = Meter::start(&local.processes()?)?;
    let done = session(port, &account, at_once)?;
    meter.look(&local.processes()?)?;
    let verdict = verdict(&account, &done, tools.corpus.messages)?;
    let sum: Duration = done.steps.iter().map(|(_, took)| *took).sum();
    tools.recorder.sample(key("time"), round, ms(sum), Unit::Ms, Better::Lower, verdict)?;
    for (step, took) in done.steps {
        tools.recorder.sample(key(step), round, ms(took), Unit::Ms, Better::Lower, Verdict::Right)?;
    }
    meter.usage().record(tools.recorder, &key("time"), round)
}

/// Puts the mail into INBOX, which is empty: the last round left it so.
fn fill_inbox(account: &Address, tools: &Tools) -> Result<()> {
    let mut connection = Connection::login(account)?;
    let (_, exists) = connection.select("INBOX")?;
    if exists > 0 {
        connection.batch(&[r"STORE 1:* +FLAGS.SILENT (\Deleted)", "EXPUNGE"])?;
    }
    connection.command("CLOSE")?;
    // INBOX has no prefix (RFC 9051 §5.1).
    let mut filling = Connection::login(&Address { prefix: String::new(), ..account.clone() })?;
    fill::fill(&mut filling, "INBOX", tools.corpus)?;
    filling.command("LOGOUT").map(drop)
}

/// What a session came to.
struct Done {
    steps: Vec<(&'static str, Duration)>,
    listed: u64,
    listed_octets: u64,
    retrieved_octets: u64,
}

fn session(port: u16, account: &Address, at_once: usize) -> Result<Done> {
    let mut steps = Vec::new();
    let mut began = Instant::now();
    let mut step = |name: &'static str| {
        steps.push((name, began.elapsed()));
        began = Instant::now();
    };
    let mut client = LineConnection::open(port, "+OK")?;
    client.send(format!("USER {}\r\n", account.user).as_bytes())?;
    client.expect("+OK")?;
    client.send(format!("PASS {}\r\n", account.password).as_bytes())?;
    client.expect("+OK")?;
    step("log in");
    client.send(b"LIST\r\n")?;
    client.expect("+OK")?;
    let mut listed: Vec<(u64, u64)> = Vec::new();
    loop {
        let line = client.line()?;
        if line == "." {
            break;
        }
        let entry =
            line.split_once(' ').and_then(|(number, size)| Some((number.parse().ok()?, size.trim().parse().ok()?)));
        listed.push(entry.ok_or_else(|| Error::new(format!("LIST: {line}")))?);
    }
    client.send(b"UIDL\r\n")?;
    client.expect("+OK")?;
    client.to_the_dot()?;
    step("list");
    let mut retrieved_octets = 0;
    for group in listed.chunks(at_once) {
        client.send(commands("RETR", group).as_bytes())?;
        for _ in group {
            client.expect("+OK")?;
            retrieved_octets += client.to_the_dot()?;
        }
    }
    step("fetch");
    for group in listed.chunks(at_once) {
        client.send(commands("DELE", group).as_bytes())?;
        for _ in group {
            client.expect("+OK")?;
        }
    }
    step("delete");
    client.send(b"QUIT\r\n")?;
    client.expect("+OK")?;
    step("quit");
    let listed_octets = listed.iter().map(|(_, size)| size).sum();
    Ok(Done { steps, listed: listed.len() as u64, listed_octets, retrieved_octets })
}

fn commands(name: &str, group: &[(u64, u64)]) -> String {
    group.iter().map(|(number, _)| format!("{name} {number}\r\n")).collect()
}

fn verdict(account: &Address, done: &Done, messages: u64) -> Result<Verdict> {
    let answer = Connection::login(account)?.command("STATUS INBOX (MESSAGES)")?;
    let left = answer.kept.iter().find_map(|line| status_messages(line)).unwrap_or_default();
    Ok(if done.listed != messages {
        Verdict::Wrong(format!("of {messages} messages {} are listed", done.listed))
    } else if left > 0 {
        Verdict::Wrong(format!("{left} messages are left"))
    } else if done.retrieved_octets < done.listed_octets {
        // Dots that were doubled make it more.
        Verdict::Wrong(format!("{} octets are listed, {} came", done.listed_octets, done.retrieved_octets))
    } else {
        Verdict::Right
    })
}
