//! Marking and expunging a random share of the messages.

use super::judge::expunged_exactly;
use super::oracle::Oracle;
use super::yardsticks;
use super::{MAILBOX, NAME, account, chilled, key, opened, record};
use crate::error::{Doing, Result};
use crate::results::{State, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::{Address, Answer, Connection, sequence_sets};

/// The mailbox that loses messages: a copy of the other, made anew each time.
const COPY: &str = "bench-x";

/// The shares, in percent.
const PERCENTS: [usize; 2] = [1, 20];

/// The messages to remove, the same for every server.
struct Chosen {
    percent: usize,
    /// Sequence numbers, rising.
    numbers: Vec<u32>,
}

impl Chosen {
    fn test(&self, what: &str) -> String {
        format!("{what} {} %", self.percent)
    }
}

/// Measures both shares once, cold and warm.
pub(super) fn measure(run: &mut Run, oracle: &Oracle, round: usize) -> Result<()> {
    for percent in PERCENTS {
        for state in [State::Cold, State::Warm] {
            let count = (oracle.messages as usize * percent / 100).max(1);
            let chosen = Chosen { percent, numbers: run.random.choose(count, oracle.messages) };
            run.each(NAME, &chosen.test("expunge"), |contestant, tools| match state {
                State::Cold => cold(contestant, tools, oracle, &chosen, round),
                State::Warm => warm(contestant, tools, oracle, &chosen, round),
            })?;
            let tests = [chosen.test("mark"), chosen.test("expunge"), chosen.test("mark and expunge")];
            yardsticks::expunges(run, &tests, state, oracle.messages, &chosen.numbers, round)?;
        }
    }
    run.each(NAME, "removing", |contestant, _| Connection::login(&account(contestant)?)?.remove(COPY))
}

/// Restarts before the marking and before the expunging.
fn cold(contestant: &mut Contestant, tools: &mut Tools, oracle: &Oracle, chosen: &Chosen, round: usize) -> Result<()> {
    let address = account(contestant)?;
    let name = contestant.info.name.clone();
    if contestant.server.local().is_some() {
        copied(&address, oracle)?;
    }
    if !chilled(contestant, tools, &chosen.test("mark"), round)? {
        let key = key(tools, &chosen.test("expunge"), State::Cold, &name);
        return tools.unsupported(key, round, "only a server that the benchmark starts can be made cold");
    }
    let marked = mark(&mut opened(&address, COPY, oracle.messages)?, chosen);
    let mark_key = key(tools, &chosen.test("mark"), State::Cold, &name);
    if record(tools, mark_key, round, &address, marked, |_| Verdict::Right)?.is_none() {
        return Ok(());
    }
    chilled(contestant, tools, &chosen.test("expunge"), round)?;
    let expunged = opened(&address, COPY, oracle.messages)?.command("EXPUNGE");
    let left = left(&address)?;
    let key = key(tools, &chosen.test("expunge"), State::Cold, &name);
    record(tools, key, round, &address, expunged, |answer| verdict(answer, left, oracle, chosen)).map(drop)
}

/// Both one after the other.
fn warm(contestant: &mut Contestant, tools: &mut Tools, oracle: &Oracle, chosen: &Chosen, round: usize) -> Result<()> {
    let address = account(contestant)?;
    let name = contestant.info.name.clone();
    copied(&address, oracle)?;
    let mut connection = opened(&address, COPY, oracle.messages)?;
    let key = |tools: &Tools, what: &str| key(tools, &chosen.test(what), State::Warm, &name);
    let (mark_key, expunge_key, both_key) = (key(tools, "mark"), key(tools, "expunge"), key(tools, "mark and expunge"));
    let marked = mark(&mut connection, chosen);
    let Some(marked) = record(tools, mark_key, round, &address, marked, |_| Verdict::Right)? else { return Ok(()) };
    let expunged = connection.command("EXPUNGE");
    drop(connection);
    let left = left(&address)?;
    let judged = |answer: &Answer| verdict(answer, left, oracle, chosen);
    let Some(mut both) = record(tools, expunge_key, round, &address, expunged, judged)? else { return Ok(()) };
    both.took += marked.took;
    record(tools, both_key, round, &address, Ok(both), judged).map(drop)
}

/// Makes the copy anew.
fn copied(address: &Address, oracle: &Oracle) -> Result<()> {
    let mut connection = opened(address, MAILBOX, oracle.messages)?;
    connection.renew(COPY)?;
    let copy = format!("COPY 1:* {}", connection.mailbox(COPY));
    connection.command(&copy).doing("copying").map(drop)
}

/// One STORE, or a few sent together when the numbers do not fit one command line.
fn mark(connection: &mut Connection, chosen: &Chosen) -> Result<Answer> {
    let sets = sequence_sets(&chosen.numbers);
    let marks: Vec<String> = sets.iter().map(|set| format!("STORE {set} +FLAGS.SILENT (\\Deleted)")).collect();
    connection.batch(&marks)
}

/// How many messages the copy has now.
fn left(address: &Address) -> Result<u32> {
    Ok(Connection::login(address)?.select(COPY)?.1)
}

fn verdict(answer: &Answer, left: u32, oracle: &Oracle, chosen: &Chosen) -> Verdict {
    let wanted = oracle.messages - chosen.numbers.len() as u32;
    if left != wanted {
        return Verdict::Wrong(format!("{left} messages are left instead of {wanted}"));
    }
    if answer.expunges != chosen.numbers.len() as u64 {
        return Verdict::Wrong(format!("{} EXPUNGE responses for {} messages", answer.expunges, chosen.numbers.len()));
    }
    if !expunged_exactly(oracle.messages, &chosen.numbers, &answer.expunged) {
        return Verdict::Wrong("the EXPUNGE responses name other messages than those that were marked".into());
    }
    Verdict::Right
}
