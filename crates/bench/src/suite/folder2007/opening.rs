//! A mail reader opens the mailbox.

use super::{MAILBOX, NAME};
use crate::cold;
use crate::error::{Doing, Result};
use crate::limits::Replay;
use crate::results::{Better, Key, LIMIT, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::{Address, Connection};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

const TEST: &str = "open";
const FIRST: &str = "first open";

/// What mutt asks for when it opens a mailbox.
const LISTING: &str = "FETCH 1:* (UID FLAGS INTERNALDATE RFC822.SIZE BODY.PEEK[HEADER.FIELDS (DATE FROM SENDER SUBJECT TO CC MESSAGE-ID \
                       REFERENCES CONTENT-TYPE CONTENT-DESCRIPTION IN-REPLY-TO REPLY-TO LINES LIST-POST LIST-SUBSCRIBE \
                       LIST-UNSUBSCRIBE X-LABEL X-ORIGINAL-TO)])";

/// What opening took.
struct Opened {
    select: Duration,
    listing: Duration,
    verdict: Verdict,
}

/// The first opening of a mailbox that was just made, and one with everything cold.
pub fn first_and_cold(contestant: &mut Contestant, account: &Address, tools: &mut Tools, round: usize) -> Result<()> {
    let name = contestant.info.name.clone();
    let key = Key::new(NAME, FIRST, &name, "time").size(&tools.corpus.name);
    keep(tools, &key, round, &open(account, tools.corpus.messages)?)?;
    let key = Key::new(NAME, TEST, &name, "time").size(&tools.corpus.name).state(State::Cold);
    match Run::make_cold(contestant)? {
        Some(dropped) => {
            tools.recorder.note(NAME, &name, format!("cold: {}", dropped.explained()))?;
            keep(tools, &key, round, &open(account, tools.corpus.messages)?)
        }
        None => tools.unsupported(key, round, "a server that is not ours to restart cannot be made cold"),
    }
}

/// Opening once more.
pub fn warm(contestant: &mut Contestant, account: &Address, tools: &mut Tools, round: usize) -> Result<()> {
    let key = Key::new(NAME, TEST, &contestant.info.name, "time").size(&tools.corpus.name).state(State::Warm);
    keep(tools, &key, round, &open(account, tools.corpus.messages)?)
}

/// Keeps what the server answers in a file.
pub fn record(contestant: &Contestant, account: &Address, tools: &mut Tools) -> Result<PathBuf> {
    let path = tools.plan.work.join("folder2007-answer");
    let mut connection = Connection::login(account)?;
    connection.record(Some(File::create(&path).doing(path.display())?));
    let select = format!("SELECT {}", connection.mailbox(MAILBOX));
    connection.batch(&[select, LISTING.into()])?;
    connection.record(None);
    let text = format!("the limit of opening is the answer of {}, sent from a file", contestant.info.name);
    tools.recorder.note(NAME, LIMIT, text)?;
    Ok(path)
}

/// The same answer from a server that does nothing but send it.
pub fn limit(run: &mut Run, recording: &PathBuf, round: usize) -> Result<()> {
    let key = |state| Key::new(NAME, TEST, LIMIT, "time").size(&run.corpus.name).state(state);
    let mut replay = Replay::start(recording)?;
    cold::drop_from_cache(std::slice::from_ref(recording))?;
    for state in [State::Cold, State::Warm] {
        // Two commands were recorded together.
        let answer = replay.run(2)?;
        run.recorder.time(key(state), round, answer.took)?;
    }
    replay.stop()
}

fn open(account: &Address, messages: u64) -> Result<Opened> {
    let mut connection = Connection::login(account)?;
    let (select, exists) = connection.select(MAILBOX)?;
    let listing = connection.command(LISTING)?;
    connection.command("LOGOUT")?;
    Ok(Opened { select: select.took, listing: listing.took, verdict: judge(messages, exists.into(), listing.fetches) })
}

fn judge(messages: u64, exists: u64, listed: u64) -> Verdict {
    if (exists, listed) == (messages, messages) {
        return Verdict::Right;
    }
    Verdict::Wrong(format!("of {messages} messages {exists} were there and {listed} listed"))
}

/// Records the whole, and its two parts.
fn keep(tools: &mut Tools, key: &Key, round: usize, opened: &Opened) -> Result<()> {
    for (measure, time) in
        [("time", opened.select + opened.listing), ("time of SELECT", opened.select), ("time of FETCH", opened.listing)]
    {
        let key = Key { measure: measure.into(), ..key.clone() };
        let verdict = opened.verdict.clone();
        tools.recorder.sample(key, round, time.as_secs_f64() * 1e3, Unit::Ms, Better::Lower, verdict)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{LISTING, judge};
    use crate::results::Verdict;

    #[test]
    fn all_or_wrong() {
        assert_eq!(judge(3, 3, 3), Verdict::Right);
        for (exists, listed) in [(2, 2), (3, 2), (4, 4)] {
            assert!(matches!(judge(3, exists, listed), Verdict::Wrong(_)));
        }
    }

    #[test]
    fn the_command_fits_a_line() {
        assert!(!LISTING.contains("  ") && LISTING.len() < 1_000);
    }
}
