//! One connection at work: a command is sent, its answer looked at, the next one is sent at once; or it idles and waits for news.

use super::script::{Expected, Kind, Script, Step};
use super::stream::{Line, Stream};
use super::tally::Tally;
use crate::error::{Error, Result};
use crate::suite::answers::status_messages;
use crate::wire::{TAG, kind, numbers};
use std::time::Instant;

/// A connection and what it is there for.
pub struct Session {
    /// The connection.
    pub stream: Stream,
    /// Index of its user.
    pub user: usize,
    role: Role,
}

enum Role {
    Worker(Box<Worker>),
    /// In IDLE (RFC 9051 §6.3.13) on the mailbox that is appended to.
    Idler,
}

struct Worker {
    script: Script,
    pending: Option<(Step, Instant)>,
    found: Found,
}

/// What has come of the answer so far.
#[derive(Debug, Default)]
struct Found {
    exists: Option<u32>,
    lists: u32,
    messages: Option<u64>,
    envelopes: u32,
    literal_bytes: u64,
    hits: Vec<u32>,
}

/// What a line means for the command.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    /// The answer goes on.
    More,
    /// The server asks for the literal.
    Continue,
    /// The tagged answer: OK, or what it says instead.
    Ended(std::result::Result<(), String>),
    /// The server is about to close the connection.
    Bye(String),
}

impl Session {
    /// One that works through a script.
    pub fn worker(stream: Stream, user: usize, script: Script) -> Session {
        let worker = Worker { script, pending: None, found: Found::default() };
        Session { stream, user, role: Role::Worker(Box::new(worker)) }
    }

    /// One that has begun IDLE.
    pub fn idler(stream: Stream, user: usize) -> Session {
        Session { stream, user, role: Role::Idler }
    }

    /// Whether a command waits for its answer.
    pub fn is_busy(&self) -> bool {
        matches!(&self.role, Role::Worker(worker) if worker.pending.is_some())
    }

    /// Whether it works through a script.
    pub fn is_worker(&self) -> bool {
        matches!(self.role, Role::Worker(_))
    }

    /// Sends the next command, unless there is one that waits or nothing to do.
    pub fn begin(&mut self) -> Result<()> {
        let Role::Worker(worker) = &mut self.role else { return Ok(()) };
        if worker.pending.is_some() {
            return Ok(());
        }
        let step = worker.script.step();
        worker.found = Found::default();
        let began = Instant::now();
        self.stream.send(&step.bytes)?;
        worker.pending = Some((step, began));
        Ok(())
    }

    /// Looks at everything that was received; a worker goes on with its next command when `go_on`.
    pub fn look(&mut self, now: Instant, go_on: bool, tally: &mut Tally) -> Result<()> {
        while let Some(line) = self.stream.line() {
            let worker = match &mut self.role {
                Role::Idler => {
                    if let Some(exists) = exists(&line) {
                        tally.seen(self.user, exists, now);
                    }
                    continue;
                }
                Role::Worker(worker) => worker,
            };
            match worker.found.look(&line) {
                Meaning::More => {}
                Meaning::Bye(text) => return Err(Error::new(text)),
                Meaning::Continue => {
                    if let Some((step, _)) = &worker.pending {
                        self.stream.send(&step.after_continuation)?;
                    }
                }
                Meaning::Ended(status) => {
                    let Some((step, began)) = worker.pending.take() else {
                        return Err(Error::new("a tagged answer without a command"));
                    };
                    let outcome = match status {
                        Ok(()) => {
                            if step.kind == Kind::Append {
                                tally.appended(self.user, now);
                            }
                            worker.found.compare(&step.expected)
                        }
                        Err(text) => {
                            tally.failed(step.kind, &text);
                            None
                        }
                    };
                    if let Some(why) = outcome {
                        let command = String::from_utf8_lossy(&step.bytes);
                        tally.wrong(step.kind, &format!("{:.120}: {why}", command.trim_end()));
                    }
                    tally.answered(step.kind, now.saturating_duration_since(began));
                    if go_on {
                        self.begin()?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Found {
    fn look(&mut self, line: &Line) -> Meaning {
        self.literal_bytes += line.literal;
        if !line.begins {
            return Meaning::More;
        }
        let bytes = line.bytes;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned();
        if let Some(status) = bytes.strip_prefix(TAG.as_bytes()).and_then(|rest| rest.strip_prefix(b" ")) {
            return Meaning::Ended(if status.starts_with(b"OK") { Ok(()) } else { Err(text(status)) });
        }
        if bytes.starts_with(b"+") {
            return Meaning::Continue;
        }
        match kind(bytes) {
            b'F' if memchr::memmem::find(bytes, b"ENVELOPE").is_some() => self.envelopes += 1,
            b'E' => self.exists = exists(line).or(self.exists),
            0 if bytes.starts_with(b"* SEARCH") => self.hits.extend(numbers(bytes)),
            0 if bytes.starts_with(b"* LIST ") => self.lists += 1,
            0 if bytes.starts_with(b"* STATUS ") => self.messages = status_messages(&text(bytes)),
            0 if bytes.starts_with(b"* BYE") => return Meaning::Bye(text(bytes)),
            _ => {}
        }
        Meaning::More
    }

    /// What is wrong with the answer, if anything.
    fn compare(&self, expected: &Expected) -> Option<String> {
        let right = match expected {
            Expected::Nothing => true,
            Expected::Exists(count) => self.exists == Some(*count),
            Expected::Lists(count) => self.lists >= *count,
            Expected::Messages(count) => self.messages == Some(*count),
            Expected::Envelopes(count) => self.envelopes == *count,
            Expected::LiteralBytes(count) => self.literal_bytes == *count,
            Expected::Hits(hits) => self.hits == **hits,
        };
        (!right).then(|| format!("{expected:?} would be right, the answer has {self:?}"))
    }
}

/// The number in an EXISTS response (RFC 9051 §7.4.1).
fn exists(line: &Line) -> Option<u32> {
    let is_exists = line.begins && line.bytes.trim_ascii_end().ends_with(b" EXISTS");
    numbers(line.bytes).next().filter(|_| is_exists)
}

#[cfg(test)]
mod tests {
    use super::{Expected, Found, Meaning};
    use crate::suite::mixed::stream::Line;

    fn found(lines: &[&str]) -> (Found, Meaning) {
        let mut found = Found::default();
        let mut meaning = Meaning::More;
        for line in lines {
            meaning = found.look(&Line { bytes: line.as_bytes(), begins: true, literal: 0 });
        }
        (found, meaning)
    }

    #[test]
    fn answers_are_compared() {
        let (answer, meaning) = found(&[
            "* 3 EXISTS\r\n",
            "* SEARCH 2 3\r\n",
            "* LIST () \".\" a\r\n",
            "* STATUS a (MESSAGES 5)\r\n",
            "* 1 FETCH (FLAGS () ENVELOPE (NIL))\r\n",
            "* 1 FETCH (FLAGS ())\r\n",
            "B OK done\r\n",
        ]);
        assert_eq!(meaning, Meaning::Ended(Ok(())));
        let right = [
            Expected::Nothing,
            Expected::Exists(3),
            Expected::Hits([2, 3].into()),
            Expected::Lists(1),
            Expected::Messages(5),
            Expected::Envelopes(1),
            Expected::LiteralBytes(0),
        ];
        for expected in right {
            assert_eq!(answer.compare(&expected), None);
        }
        for expected in [Expected::Exists(2), Expected::Hits([2].into()), Expected::Lists(2), Expected::LiteralBytes(1)]
        {
            assert!(answer.compare(&expected).is_some_and(|why| why.contains("would be right")), "{expected:?}");
        }
    }

    #[test]
    fn ends_and_requests() {
        assert_eq!(found(&["B NO not now\r\n"]).1, Meaning::Ended(Err("NO not now".into())));
        assert_eq!(found(&["+ go on\r\n"]).1, Meaning::Continue);
        assert_eq!(found(&["* BYE\r\n"]).1, Meaning::Bye("* BYE".into()));
    }
}
