//! The tests that change nothing: opening, listing, headers, searches.

use super::judge::{Judgement, judge};
use super::oracle::{Oracle, Query};
use super::yardsticks::Yardsticks;
use super::{MAILBOX, NAME, account, chilled, key, opened, record};
use crate::error::{Doing, Result};
use crate::results::{Better, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::{Address, Answer, Connection};
use std::fs::File;

/// A test, and what its answer must be.
enum Test<'o> {
    Open,
    List,
    Headers,
    Search(&'o Query),
}

impl Test<'_> {
    fn name(&self) -> &str {
        match self {
            Test::Open => "open",
            Test::List => "list",
            Test::Headers => "headers",
            Test::Search(query) => &query.test,
        }
    }

    /// The command; `None` for SELECT.
    fn command(&self) -> Option<&str> {
        match self {
            Test::Open => None,
            Test::List => Some("FETCH 1:* (FLAGS UID RFC822.SIZE INTERNALDATE ENVELOPE)"),
            Test::Headers => Some("FETCH 1:* BODY.PEEK[HEADER]"),
            Test::Search(query) => Some(&query.command),
        }
    }

    /// A connection that is one command away from the test.
    fn ready(&self, address: &Address, oracle: &Oracle) -> Result<Connection> {
        match self {
            Test::Open => Connection::login(address),
            _ => opened(address, MAILBOX, oracle.messages),
        }
    }

    fn ask(&self, connection: &mut Connection) -> Result<Answer> {
        match self.command() {
            None => Ok(connection.select(MAILBOX)?.0),
            Some(command) => connection.command(command),
        }
    }

    fn verdict(&self, answer: &Answer, oracle: &Oracle) -> Verdict {
        let wanted = u64::from(oracle.messages);
        match self {
            // The number of messages was looked at when the mailbox was filled, and is with every other test.
            Test::Open => Verdict::Right,
            Test::Search(query) => judge(&query.expected, &answer.hits).verdict(),
            Test::List | Test::Headers if answer.fetches != wanted => {
                Verdict::Wrong(format!("{} of {wanted} messages", answer.fetches))
            }
            Test::Headers if answer.literal_bytes != oracle.header_bytes => {
                let more = answer.literal_bytes as i128 - oracle.header_bytes as i128;
                let why = match i128::from(oracle.state_bytes) {
                    state if state > 0 && more == -state => ": the stored Status, X-UID and the like are hidden",
                    _ => "",
                };
                Verdict::Wrong(format!("{more:+} bytes beside the {} that were stored{why}", oracle.header_bytes))
            }
            Test::List | Test::Headers => Verdict::Right,
        }
    }
}

/// Measures all of them once: cold and then warm for one server after the other.
pub(super) fn measure(run: &mut Run, oracle: &Oracle, yardsticks: &mut Yardsticks, round: usize) -> Result<()> {
    let mut tests = vec![Test::Open, Test::List, Test::Headers];
    tests.extend(oracle.queries.iter().map(Test::Search));
    for test in &tests {
        let mut found = Vec::new();
        run.each(NAME, test.name(), |contestant, tools| {
            let answer = cold_and_warm(contestant, tools, test, oracle, round)?;
            if let (0, Test::Search(query), Some(answer)) = (round, test, &answer) {
                let judgement = judge(&query.expected, &answer.hits);
                hits(tools, query, &contestant.info.name, &judgement)?;
                found.push((contestant.info.name.clone(), answer.hits.clone()));
            }
            if !matches!(test, Test::Search(_)) && !yardsticks.knows(test.name()) {
                record_answer(contestant, test, oracle, yardsticks)?;
            }
            Ok(())
        })?;
        if found.len() > 1 {
            run.recorder.note(NAME, "", compared(test.name(), &run.corpus.name, &mut found))?;
        }
        match test {
            Test::Search(query) => yardsticks.scan(run, query, round)?,
            _ => yardsticks.replay(run, test.name(), round)?,
        }
    }
    Ok(())
}

/// Both states; gives the warm answer, unless the command failed.
fn cold_and_warm(
    contestant: &mut Contestant,
    tools: &mut Tools,
    test: &Test,
    oracle: &Oracle,
    round: usize,
) -> Result<Option<Answer>> {
    let address = account(contestant)?;
    let name = contestant.info.name.clone();
    let cold = chilled(contestant, tools, test.name(), round)?;
    let mut connection = test.ready(&address, oracle)?;
    let before = test.ask(&mut connection);
    if cold {
        let key = key(tools, test.name(), State::Cold, &name);
        if record(tools, key, round, &address, before, |answer| test.verdict(answer, oracle))?.is_none() {
            connection = test.ready(&address, oracle)?;
        }
    } else if before.is_err() {
        connection = test.ready(&address, oracle)?;
    }
    if matches!(test, Test::Open) {
        drop(connection);
        connection = test.ready(&address, oracle)?;
    }
    let warm = test.ask(&mut connection);
    let key = key(tools, test.name(), State::Warm, &name);
    record(tools, key, round, &address, warm, |answer| test.verdict(answer, oracle))
}

/// Keeps a server's answer, asked for once more and not measured, to be replayed as the limit; a wrong one is not kept.
fn record_answer(contestant: &mut Contestant, test: &Test, oracle: &Oracle, yardsticks: &mut Yardsticks) -> Result<()> {
    let mut connection = test.ready(&account(contestant)?, oracle)?;
    let path = yardsticks.path(test.name());
    connection.record(Some(File::create(&path).doing(path.display())?));
    if test.ask(&mut connection).is_ok_and(|answer| test.verdict(&answer, oracle) == Verdict::Right) {
        yardsticks.keep(test.name());
    }
    Ok(())
}

/// How much a search found.
fn hits(tools: &mut Tools, query: &Query, server: &str, judgement: &Judgement) -> Result<()> {
    let mut key = key(tools, &query.test, State::Warm, server);
    key.measure = "hits".into();
    tools.recorder.sample(key, 0, judgement.hits as f64, Unit::Count, Better::Higher, judgement.verdict())?;
    let text = format!(
        "{} ({}): {} hits; {} of the {} that must be found are missing, {} of the {} that may be found are there, {} are wrong",
        query.command,
        tools.corpus.name,
        judgement.hits,
        judgement.missing,
        judgement.must,
        judgement.given,
        judgement.may,
        judgement.extra,
    );
    tools.recorder.note(NAME, server, text)
}

/// Which servers gave the same hits.
fn compared(test: &str, size: &str, found: &mut [(String, Vec<u32>)]) -> String {
    for (_, hits) in &mut *found {
        hits.sort_unstable();
    }
    let mut groups: Vec<(&[u32], Vec<&str>)> = Vec::new();
    for (name, hits) in &*found {
        match groups.iter_mut().find(|(known, _)| known == hits) {
            Some((_, names)) => names.push(name),
            None => groups.push((hits, vec![name])),
        }
    }
    let shown: Vec<String> =
        groups.iter().map(|(hits, names)| format!("{} with {} hits", names.join(", "), hits.len())).collect();
    match shown.as_slice() {
        [_] => format!("{test} ({size}): all servers found the same: {}", shown.concat()),
        _ => format!("{test} ({size}): servers found different messages: {}", shown.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::compared;

    #[test]
    fn servers_are_grouped_by_what_they_found() {
        let mut same = [("a".to_string(), vec![1, 2]), ("b".to_string(), vec![2, 1])];
        assert_eq!(compared("t", "s", &mut same), "t (s): all servers found the same: a, b with 2 hits");
        let mut differ = [("a".to_string(), vec![1]), ("b".to_string(), vec![2]), ("c".to_string(), vec![1])];
        assert_eq!(
            compared("t", "s", &mut differ),
            "t (s): servers found different messages: a, c with 1 hits; b with 1 hits"
        );
    }
}
