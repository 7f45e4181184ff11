//! The tests that change nothing: opening, listing, headers, searches, sorting, threading.

use super::judge::{Judgement, judge, sorted, threaded};
use super::oracle::{Oracle, Query};
use super::yardsticks::Yardsticks;
use super::{MAILBOX, NAME, account, chilled, key, opened, record};
use crate::error::{Doing, Result};
use crate::results::{Better, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::{Address, Answer, Connection, all_numbers};
use std::collections::HashSet;
use std::fs::File;

/// A test, and what its answer must be.
enum Test<'o> {
    Open,
    List,
    Headers,
    Search(&'o Query),
    Sort,
    Thread,
}

impl Test<'_> {
    fn name(&self) -> &str {
        match self {
            Test::Open => "open",
            Test::List => "list",
            Test::Headers => "headers",
            Test::Search(query) => &query.test,
            Test::Sort => "sort by date",
            Test::Thread => "thread",
        }
    }

    /// What a server must announce.
    fn needs(&self) -> Option<&str> {
        match self {
            Test::Sort => Some("SORT"),
            Test::Thread => Some("THREAD=REFERENCES"),
            _ => None,
        }
    }

    /// The command; `None` for SELECT.
    fn command(&self) -> Option<&str> {
        match self {
            Test::Open => None,
            Test::List => Some("FETCH 1:* (FLAGS UID RFC822.SIZE INTERNALDATE ENVELOPE)"),
            Test::Headers => Some("FETCH 1:* BODY.PEEK[HEADER]"),
            Test::Search(query) => Some(&query.command),
            Test::Sort => Some("SORT (REVERSE DATE) UTF-8 ALL"),
            Test::Thread => Some("THREAD REFERENCES UTF-8 ALL"),
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
            Test::Sort => sorted(&oracle.dates, &answer.hits),
            Test::Thread => threaded(oracle.dates.len(), &answer.hits),
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
    tests.extend([Test::Sort, Test::Thread]);
    for test in &tests {
        let mut found = Vec::new();
        let mut texts = Vec::new();
        run.each(NAME, test.name(), |contestant, tools| {
            let answer = cold_and_warm(contestant, tools, test, oracle, round)?;
            if let (0, Test::Search(query), Some(answer)) = (round, test, &answer) {
                let judgement = judge(&query.expected, &answer.hits);
                hits(tools, query, &contestant.info.name, &judgement)?;
                found.push((contestant.info.name.clone(), answer.hits.clone()));
            }
            if let (0, Test::Sort | Test::Thread, Some(answer)) = (round, test, answer) {
                texts.push((contestant.info.name.clone(), arrangement(answer)));
            }
            if !matches!(test, Test::Search(_)) && !yardsticks.knows(test.name()) {
                record_answer(contestant, test, oracle, yardsticks)?;
            }
            Ok(())
        })?;
        if found.len() > 1 {
            run.recorder.note(NAME, "", compared(test.name(), &run.corpus.name, &mut found))?;
        }
        if texts.len() > 1 {
            run.recorder.note(NAME, "", arranged(test.name(), &run.corpus.name, &texts))?;
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
    if let Some(missing) = missing(&address, test)? {
        for state in [State::Cold, State::Warm] {
            tools.unsupported(key(tools, test.name(), state, &name), round, format!("{missing} is not announced"))?;
        }
        return Ok(None);
    }
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

/// What the test needs and the server does not announce.
fn missing<'t>(address: &Address, test: &'t Test) -> Result<Option<&'t str>> {
    let Some(needed) = test.needs() else { return Ok(None) };
    Ok((!Connection::login(address)?.capabilities()?.has(needed)).then_some(needed))
}

/// Keeps a server's answer, asked for once more and not measured, to be replayed as the limit; a wrong one is not kept.
fn record_answer(contestant: &mut Contestant, test: &Test, oracle: &Oracle, yardsticks: &mut Yardsticks) -> Result<()> {
    let address = account(contestant)?;
    if missing(&address, test)?.is_some() {
        return Ok(());
    }
    let mut connection = test.ready(&address, oracle)?;
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

/// The order that a server gave, or its threads: each as the messages in it, whatever hangs on what.
fn arrangement(answer: Answer) -> Vec<Vec<u32>> {
    if answer.threads.is_empty() {
        return answer.hits.into_iter().map(|number| vec![number]).collect();
    }
    let (mut threads, mut depth) = (Vec::new(), 0);
    let mut start = 0;
    for (at, byte) in answer.threads.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && *byte == b')' {
            let mut members: Vec<u32> = all_numbers(answer.threads.get(start..at).unwrap_or_default()).collect();
            members.sort_unstable();
            threads.push(members);
            start = at;
        }
    }
    threads.sort_unstable();
    threads
}

/// Which servers gave the same order, or the same threads.
fn arranged(test: &str, size: &str, answers: &[(String, Vec<Vec<u32>>)]) -> String {
    let mut groups: Vec<(&[Vec<u32>], Vec<&str>)> = Vec::new();
    for (name, answer) in answers {
        match groups.iter_mut().find(|(known, _)| known == answer) {
            Some((_, names)) => names.push(name),
            None => groups.push((answer, vec![name])),
        }
    }
    let first = groups.first().map(|(answer, _)| *answer).unwrap_or_default();
    let differing = |answer: &[Vec<u32>]| {
        let known: HashSet<&Vec<u32>> = first.iter().collect();
        answer.iter().filter(|group| !known.contains(group)).count()
    };
    let shown: Vec<String> = groups
        .iter()
        .map(|(answer, names)| {
            let names = names.join(", ");
            match (test, differing(answer)) {
                ("thread", 0) => format!("{names}: {} threads", answer.len()),
                ("thread", other) => format!("{names}: {} threads, {other} of them otherwise", answer.len()),
                _ => names,
            }
        })
        .collect();
    format!("{test} ({size}), the same from those between two semicolons: {}", shown.join("; "))
}

#[cfg(test)]
mod tests {
    use super::{Answer, arranged, arrangement, compared};

    #[test]
    fn threads_and_orders_are_compared() {
        let of = |threads: &str| arrangement(Answer { threads: threads.into(), ..Answer::default() });
        assert_eq!(of("(3)(1 (5)(2 4))"), [vec![1, 2, 4, 5], vec![3]]);
        assert_eq!(arrangement(Answer { hits: vec![3, 1], ..Answer::default() }), [[3], [1]]);
        let answers = [("a", "(1 2)(3)"), ("b", "(3)(2 1)"), ("c", "(1)(2)(3)")];
        let answers = answers.map(|(name, threads)| (name.to_string(), of(threads)));
        let said = "thread (s), the same from those between two semicolons: a, b: 2 threads; c: 3 threads, 2 of them otherwise";
        assert_eq!(arranged("thread", "s", &answers), said);
        let orders = [("a", vec![3, 1]), ("b", vec![1, 3])];
        let orders = orders.map(|(name, hits)| (name.to_string(), arrangement(Answer { hits, ..Answer::default() })));
        assert_eq!(arranged("sort", "s", &orders), "sort (s), the same from those between two semicolons: a; b");
    }

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
