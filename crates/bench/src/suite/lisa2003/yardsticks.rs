//! The physical limit of each test, measured in the same rounds as the servers.
//!
//! - opening, listing, headers: the same answer, read from a file and sent over loopback;
//! - searches: the mail (or, for header fields, the headers) read once from a file and scanned for the word;
//! - marking and expunging: one sync of four bytes a message, and the answer over loopback.
//!
//! Cold means that the file was dropped from the page cache before. A server with an index can be below the limit of a search, and one
//! that does not sync can be below that of an expunge: the limit is of the work that the test names, done plainly.

use super::oracle::{Oracle, Query};
use super::{NAME, rounds};
use crate::cold;
use crate::error::{Doing, Result};
use crate::limits::{Prefill, Replay, single_syncs};
use crate::results::{Better, Key, LIMIT, State, Unit, Verdict};
use crate::run::Run;
use crate::wire::TAG;
use memchr::memmem::Finder;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Read at once by a scan.
const CHUNK_BYTES: usize = 256 << 10;

/// The files that are read.
pub(super) struct Yardsticks {
    folder: PathBuf,
    /// Tests whose answer was recorded.
    recorded: BTreeSet<String>,
}

impl Yardsticks {
    pub(super) fn new(run: &Run, oracle: &Oracle) -> Result<Yardsticks> {
        let folder = run.work().join(NAME);
        std::fs::create_dir_all(&folder).doing(folder.display())?;
        let headers = folder.join("headers");
        std::fs::write(&headers, &oracle.headers).doing(headers.display())?;
        Ok(Yardsticks { folder, recorded: BTreeSet::new() })
    }

    pub(super) fn knows(&self, test: &str) -> bool {
        self.recorded.contains(test)
    }

    /// Where the answer to a test is recorded.
    pub(super) fn path(&self, test: &str) -> PathBuf {
        self.folder.join(format!("answer-{test}"))
    }

    /// The answer is there and right.
    pub(super) fn keep(&mut self, test: &str) {
        self.recorded.insert(test.into());
    }

    /// Sends the recorded answer; nothing when no server gave a right one.
    pub(super) fn replay(&self, run: &mut Run, test: &str, round: usize) -> Result<()> {
        if !self.knows(test) {
            return Ok(());
        }
        let path = self.path(test);
        let mut replay = Replay::start(&path)?;
        cold::drop_from_cache(std::slice::from_ref(&path))?;
        let cold = replay.run(1)?.took;
        let warm = replay.run(1)?.took;
        replay.stop()?;
        record(run, test, State::Cold, round, cold)?;
        record(run, test, State::Warm, round, warm)
    }

    /// Scans the mail.
    pub(super) fn scan(&self, run: &mut Run, query: &Query, round: usize) -> Result<()> {
        let path = if query.in_headers { self.folder.join("headers") } else { run.corpus.path.clone() };
        cold::drop_from_cache(std::slice::from_ref(&path))?;
        let cold = scan(&path, &query.needle)?.1;
        let warm = scan(&path, &query.needle)?.1;
        record(run, &query.test, State::Cold, round, cold)?;
        record(run, &query.test, State::Warm, round, warm)
    }
}

/// The limits of `tests`: marking, expunging, both.
pub(super) fn expunges(
    run: &mut Run,
    tests: &[String; 3],
    state: State,
    messages: u32,
    chosen: &[u32],
    round: usize,
) -> Result<()> {
    debug_assert!(round < rounds(run), "a limit for every round");
    let folder = run.work().join(NAME);
    let synced = folder.join("synced");
    let bytes: Vec<u8> = chosen.iter().flat_map(|number| number.to_le_bytes()).collect();
    let sync = || single_syncs(&synced, &[bytes.as_slice()], Prefill::Yes);
    let [mark, expunge, both] = tests;
    let marked = sync()? + answered(&folder.join("answer-mark"), &done())?;
    let expunged = sync()? + answered(&folder.join("answer-expunge"), &expunge_answer(messages, chosen))?;
    record(run, mark, state, round, marked)?;
    record(run, expunge, state, round, expunged)?;
    if state == State::Warm {
        record(run, both, state, round, marked + expunged)?;
    }
    Ok(())
}

fn done() -> Vec<u8> {
    format!("{TAG} OK done\r\n").into_bytes()
}

/// The shortest answer to EXPUNGE that says everything.
fn expunge_answer(messages: u32, chosen: &[u32]) -> Vec<u8> {
    let mut answer = Vec::new();
    for (gone, number) in chosen.iter().enumerate() {
        answer.extend_from_slice(format!("* {} EXPUNGE\r\n", number - gone as u32).as_bytes());
    }
    answer.extend_from_slice(format!("* {} EXISTS\r\n", messages - chosen.len() as u32).as_bytes());
    answer.extend_from_slice(&done());
    answer
}

fn answered(path: &Path, answer: &[u8]) -> Result<Duration> {
    File::create(path).and_then(|mut file| file.write_all(answer)).doing(path.display())?;
    let mut replay = Replay::start(path)?;
    let took = replay.run(1)?.took;
    replay.stop()?;
    Ok(took)
}

fn record(run: &mut Run, test: &str, state: State, round: usize, time: Duration) -> Result<()> {
    let key = Key::new(NAME, test, LIMIT, "time").size(&run.corpus.name).state(state);
    run.recorder.sample(key, round, time.as_secs_f64() * 1e3, Unit::Ms, Better::Lower, Verdict::Right)
}

/// Reads a file once and counts a word in it, as it is written.
fn scan(path: &Path, word: &[u8]) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let finder = Finder::new(word);
    let mut file = File::open(path).doing(path.display())?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let (mut found, mut kept) = (0, 0);
    loop {
        let count = file.read(chunk.get_mut(kept..).unwrap_or_default()).doing(path.display())?;
        if count == 0 {
            return Ok((found, began.elapsed()));
        }
        let filled = kept + count;
        found += finder.find_iter(chunk.get(..filled).unwrap_or_default()).count() as u64;
        // A word may lie across two reads.
        kept = filled.min(word.len().saturating_sub(1));
        chunk.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_BYTES, expunge_answer, scan};

    #[test]
    fn words_across_reads_are_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mail");
        let mut text = vec![b'x'; CHUNK_BYTES * 3];
        for at in [0, 100, CHUNK_BYTES - 2, CHUNK_BYTES * 2 - 7, CHUNK_BYTES * 3 - 5] {
            text[at..at + 5].copy_from_slice(b"happy");
        }
        std::fs::write(&path, text).expect("written");
        assert_eq!(scan(&path, b"happy").expect("read").0, 5);
    }

    #[test]
    fn answers() {
        let answer = String::from_utf8(expunge_answer(5, &[2, 3, 5])).expect("text");
        assert_eq!(answer, "* 2 EXPUNGE\r\n* 2 EXPUNGE\r\n* 3 EXPUNGE\r\n* 2 EXISTS\r\nB OK done\r\n");
    }
}
