//! `lisa2003`: N. Elprin, B. Parno, "An Analysis of Database-Driven Mail Servers", LISA 2003, pp. 15-22.
//!
//! They compared a server on mbox files (UW), one on Maildirs (Courier), one with a database of headers (Cyrus) and a relational
//! database, with mailboxes of three sizes (here `small`, `medium`, `large`), each operation three times: retrieving all headers,
//! searching subject and body for a word ("happy", "free"), searching From, searching Date, and expunging a random 1 % and 20 %.
//!
//! What is the same: the operations, the sizes, the words, three runs. What we decide or change, and why:
//! - searching "subject and body" is taken as `SEARCH OR SUBJECT w BODY w`; not as `TEXT`, which would search all other header fields as well;
//! - From is searched for the address that sends most in this mail; Date for the middle tenth of the mail, once as written
//!   (`SENTSINCE`, `SENTBEFORE`) and once by the internal date (`SINCE`, `BEFORE`), since servers store only one of the two beforehand;
//! - every server has the same messages in the same order with the same internal dates; how they got there is no test and differs (see
//!   [`crate::fill::prepare`]), a note says how, and some sizes and dates are looked at afterwards;
//! - EXPUNGE needs `\Deleted` first: both are measured, apart ("mark", "expunge") and, warm, together ("mark and expunge"), since the two
//!   readings of "expunge" differ for servers that write one of them lazily. Each is done to a copy of the mailbox (COPY, not measured), so
//!   that every repetition begins with the same messages;
//! - more tests: opening the mailbox, listing it as clients do (flags, UID, size, date and envelope of all messages), searching for a rare
//!   word, for two letters, for a phrase, and for answers of whoever answers most without a word (FROM, SUBJECT and NOT BODY), sorting
//!   by date, newest first, and threading;
//! - a server with a full-text index that does not make itself has it made before (`squatter`, `doveadm index`), and what servers do in the
//!   background after they were filled is waited for: notes say how long that took;
//! - cold: the server is stopped, its files are dropped from the page cache as far as the machine permits, it is started again;
//!   logging in and, but for "open", SELECT come before the clock. Warm: the same command again. Expunges warm: directly after the copy;
//! - every answer is checked: see [`oracle`] and [`judge`]. A wrong one keeps its time and is marked.

mod expunges;
mod judge;
mod oracle;
mod reads;
mod yardsticks;

use super::Suite;
use crate::cold::Dropped;
use crate::error::{Doing, Error, Result};
use crate::fill::{STILL, check, prepare, settle};
use crate::results::{Better, Key, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::{Address, Answer, Connection};
use oracle::Oracle;
use std::time::{Duration, Instant};
use yardsticks::Yardsticks;

const NAME: &str = "lisa2003";
/// Never changed once it is filled.
const MAILBOX: &str = "bench";

/// The suite.
pub struct Lisa2003;

impl Suite for Lisa2003 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> &'static str {
        "N. Elprin, B. Parno: An Analysis of Database-Driven Mail Servers. LISA 2003, pp. 15-22"
    }

    fn about(&self) -> &'static str {
        "Opening a mailbox, listing it, retrieving all headers, searching subject and body for words, two letters and a phrase, \
         searching From, Date and several keys at once, sorting by date, threading, and expunging a random 1 % and 20 % of the \
         messages; each cold (server restarted, its files dropped from the page cache as far as \
         the machine permits) and warm (the same again). Search results are held against a brute-force search of the mail."
    }

    fn per_size(&self) -> bool {
        true
    }

    fn run(&self, run: &mut Run) -> Result<()> {
        let oracle = Oracle::read(&run.corpus.path)?;
        let still = if run.plan.quick { Duration::from_millis(500) } else { STILL };
        run.each(NAME, "filling", |contestant, tools| filled(contestant, tools, &oracle, still))?;
        let mut yardsticks = Yardsticks::new(run, &oracle)?;
        let began = Instant::now();
        let mut round = 0;
        while round < rounds(run) && run.again(NAME, round, began)? {
            reads::measure(run, &oracle, &mut yardsticks, round)?;
            expunges::measure(run, &oracle, round)?;
            round += 1;
        }
        run.each(NAME, "removing", |contestant, _| {
            let address = account(contestant)?;
            Connection::login(&address)?.remove(MAILBOX)
        })
    }
}

/// Fills the mailbox; a mailbox that then has another number of messages is no use for anything else.
fn filled(contestant: &mut Contestant, tools: &mut Tools, oracle: &Oracle, still: Duration) -> Result<()> {
    let address = account(contestant)?;
    let how = prepare(contestant.server.as_mut(), &address, MAILBOX, tools.corpus)?;
    let name = contestant.info.name.as_str();
    tools.recorder.note(NAME, name, format!("the mailbox: {how}"))?;
    if let Some(local) = contestant.server.local() {
        let began = Instant::now();
        if let Some(tool) = local.index(&address, MAILBOX).doing("making the full-text index")? {
            let took = began.elapsed().as_secs_f64();
            tools.recorder.note(NAME, name, format!("the full-text index was made by {tool} in {took:.1} s"))?;
        }
        let took = settle(local, still)?.as_secs_f64();
        tools.recorder.note(NAME, name, format!("it wrote for the last time {took:.1} s later"))?;
    }
    if let Some(wrong) = check(&mut Connection::login(&address)?, MAILBOX, tools.corpus)? {
        tools.recorder.note(NAME, name, format!("the mailbox, once it was filled: {wrong}"))?;
    }
    let (_, exists) = Connection::login(&address)?.select(MAILBOX)?;
    if exists != oracle.messages {
        return Err(Error::new(format!("{exists} messages are there after {} were appended", oracle.messages)));
    }
    Ok(())
}

fn account(contestant: &mut Contestant) -> Result<Address> {
    contestant.server.accounts(1)?.into_iter().next().ok_or_else(|| Error::new("no account"))
}

/// The rounds of every test.
fn rounds(run: &Run) -> usize {
    if run.plan.quick { 1 } else { run.plan.repeat }
}

/// Restarts a server with cold files. False, with a record that says so, when it is only an address.
fn chilled(contestant: &mut Contestant, tools: &mut Tools, test: &str, round: usize) -> Result<bool> {
    let name = contestant.info.name.clone();
    match Run::make_cold(contestant)? {
        Some(dropped) => {
            let kind = match dropped {
                Dropped::Everything => "the server restarted, ",
                Dropped::Contents => "the server restarted, but only the ",
            };
            tools.recorder.note(NAME, &name, format!("cold: {kind}{}", dropped.explained()))?;
            Ok(true)
        }
        None => {
            let key = key(tools, test, State::Cold, &name);
            tools.unsupported(key, round, "only a server that the benchmark starts can be made cold")?;
            Ok(false)
        }
    }
}

fn key(tools: &Tools, test: &str, state: State, server: &str) -> Key {
    Key::new(NAME, test, server, "time").size(&tools.corpus.name).state(state)
}

/// Logs in and opens a mailbox, which must have so many messages.
fn opened(address: &Address, mailbox: &str, messages: u32) -> Result<Connection> {
    let mut connection = Connection::login(address)?;
    let (_, exists) = connection.select(mailbox)?;
    if exists != messages {
        return Err(Error::new(format!("{mailbox} has {exists} messages instead of {messages}")));
    }
    Ok(connection)
}

/// Records an answer with its verdict. A refused command is a record and no error, as long as the server still lets one log in.
fn record(
    tools: &mut Tools,
    key: Key,
    round: usize,
    address: &Address,
    answer: Result<Answer>,
    verdict: impl FnOnce(&Answer) -> Verdict,
) -> Result<Option<Answer>> {
    match answer {
        Ok(answer) => {
            let verdict = verdict(&answer);
            let time = answer.took.as_secs_f64() * 1e3;
            tools.recorder.sample(key, round, time, Unit::Ms, Better::Lower, verdict)?;
            Ok(Some(answer))
        }
        Err(error) => {
            tools.recorder.missing(key, round, Verdict::Failed(error.to_string()))?;
            Connection::login(address).doing(error).map(|_| None)
        }
    }
}
