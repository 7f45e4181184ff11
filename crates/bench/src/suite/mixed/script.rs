//! What a connection asks for, one command after the other: chosen by a seed, so that every server is asked the same.

use super::place::{INBOX, Mailbox, Pool};
use crate::random::Random;
use crate::wire::TAG;
use std::sync::Arc;

/// Kinds of commands; each has its own rates and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// SELECT of another mailbox.
    Select,
    /// LIST of all mailboxes.
    List,
    /// STATUS of a mailbox that is not selected.
    Status,
    /// What a client's list of messages shows: flags, date, size and envelope of some messages.
    Listing,
    /// One whole message.
    Body,
    /// SEARCH over several header fields.
    Search,
    /// A flag set or removed.
    Store,
    /// A message added to the mailbox that is watched.
    Append,
}

impl Kind {
    /// All, with how often each is chosen, of a hundred.
    pub const ALL: [(Kind, usize); 8] = [
        (Kind::Select, 5),
        (Kind::List, 3),
        (Kind::Status, 7),
        (Kind::Listing, 20),
        (Kind::Body, 25),
        (Kind::Search, 15),
        (Kind::Store, 15),
        (Kind::Append, 10),
    ];

    /// The name of its test.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Select => "SELECT",
            Kind::List => "LIST",
            Kind::Status => "STATUS",
            Kind::Listing => "FETCH of a listing",
            Kind::Body => "FETCH of a message",
            Kind::Search => "SEARCH of header fields",
            Kind::Store => "STORE",
            Kind::Append => "APPEND",
        }
    }
}

/// What has to be in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing more than OK.
    Nothing,
    /// EXISTS with this number.
    Exists(u32),
    /// At least so many LIST responses.
    Lists(u32),
    /// STATUS with this MESSAGES.
    Messages(u64),
    /// So many FETCH responses with an envelope.
    Envelopes(u32),
    /// Literals of this length together.
    LiteralBytes(u64),
    /// SEARCH with these numbers.
    Hits(Arc<[u32]>),
}

/// A command.
pub struct Step {
    /// For the figures.
    pub kind: Kind,
    /// Sent at once.
    pub bytes: Vec<u8>,
    /// Sent when the server asks for the literal.
    pub after_continuation: Vec<u8>,
    /// The right answer.
    pub expected: Expected,
}

/// The work of one connection, without end.
pub struct Script {
    random: Random,
    pool: Arc<Pool>,
    mailboxes: Arc<Vec<Mailbox>>,
    /// What names begin with on this server.
    prefix: String,
    /// Whether literals need not be asked for (RFC 7888).
    literal_plus: bool,
    /// Index of the mailbox that is selected.
    selected: usize,
    first: bool,
}

/// Messages in a listing, at most: a screen.
const LISTING: usize = 50;

impl Script {
    /// For one connection, with a seed of its own.
    pub fn new(
        random: Random,
        pool: Arc<Pool>,
        mailboxes: Arc<Vec<Mailbox>>,
        prefix: String,
        literal_plus: bool,
    ) -> Script {
        Script { random, pool, mailboxes, prefix, literal_plus, selected: 0, first: true }
    }

    /// The next command. The first one selects.
    pub fn step(&mut self) -> Step {
        let kind = if std::mem::take(&mut self.first) { Kind::Select } else { self.kind() };
        let pool = Arc::clone(&self.pool);
        let mailboxes = Arc::clone(&self.mailboxes);
        let other = self.random.below(mailboxes.len());
        if kind == Kind::Select {
            self.selected = other;
        }
        let (Some(selected), Some(other)) = (mailboxes.get(self.selected), mailboxes.get(other)) else {
            return simple(Kind::List, "LIST \"\" \"*\"", Expected::Nothing);
        };
        let size = selected.messages.len();
        // Message numbers stay what they are: nobody expunges.
        let number = self.random.below(size) + 1;
        match kind {
            Kind::Select => simple(kind, &format!("SELECT {}", self.name(&other.name)), Expected::Exists(size as u32)),
            Kind::List => {
                let all = mailboxes.len() as u32 + 1;
                simple(kind, &format!("LIST \"\" \"{}bench-*\"", self.prefix), Expected::Lists(all))
            }
            Kind::Status => {
                let command = format!("STATUS {} (MESSAGES UNSEEN UIDNEXT)", self.name(&other.name));
                simple(kind, &command, Expected::Messages(other.messages.len() as u64))
            }
            Kind::Listing => {
                let last = (number + LISTING - 1).min(size);
                let command = format!("FETCH {number}:{last} (UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)");
                simple(kind, &command, Expected::Envelopes((last + 1 - number) as u32))
            }
            Kind::Body => {
                let bytes = pool.messages.get(selected.messages.start + number - 1).map_or(0, Vec::len);
                simple(kind, &format!("FETCH {number} (BODY.PEEK[])"), Expected::LiteralBytes(bytes as u64))
            }
            Kind::Search => match selected.questions.get(self.random.below(selected.questions.len())) {
                Some(question) => {
                    simple(kind, &format!("SEARCH {}", question.keys), Expected::Hits(Arc::clone(&question.hits)))
                }
                None => simple(kind, "SEARCH ALL", Expected::Hits((1..=size as u32).collect())),
            },
            Kind::Store => {
                let sign = if self.random.below(2) == 0 { '+' } else { '-' };
                let flag = ["\\Seen", "\\Flagged", "\\Answered"].get(self.random.below(3)).copied().unwrap_or_default();
                simple(kind, &format!("STORE {number} {sign}FLAGS ({flag})"), Expected::Nothing)
            }
            Kind::Append => self.append(&pool),
        }
    }

    fn kind(&mut self) -> Kind {
        let mut chosen = self.random.below(Kind::ALL.iter().map(|(_, often)| often).sum());
        for (kind, often) in Kind::ALL {
            match chosen.checked_sub(often) {
                Some(rest) => chosen = rest,
                None => return kind,
            }
        }
        Kind::Status
    }

    fn append(&mut self, pool: &Pool) -> Step {
        let message = pool.messages.get(self.random.below(pool.messages.len())).map(Vec::as_slice).unwrap_or_default();
        let plus = if self.literal_plus { "+" } else { "" };
        let head = format!("{TAG} APPEND {} {{{}{plus}}}\r\n", self.name(INBOX), message.len()).into_bytes();
        let tail = [message, &b"\r\n"[..]].concat();
        let (bytes, after_continuation) =
            if self.literal_plus { ([head, tail].concat(), Vec::new()) } else { (head, tail) };
        Step { kind: Kind::Append, bytes, after_continuation, expected: Expected::Nothing }
    }

    /// Names of ours need no escapes; a server's prefix might.
    fn name(&self, mailbox: &str) -> String {
        format!("\"{}{mailbox}\"", self.prefix.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn simple(kind: Kind, command: &str, expected: Expected) -> Step {
    Step { kind, bytes: format!("{TAG} {command}\r\n").into_bytes(), after_continuation: Vec::new(), expected }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Script, Step};
    use crate::random::Random;
    use crate::suite::mixed::place::Pool;
    use std::sync::Arc;

    fn script(seed: u64, literal_plus: bool) -> Script {
        let messages =
            (0..40).map(|n| format!("From: a{n}@b.example\r\nSubject: word{n}\r\n\r\nbody\r\n").into_bytes());
        let pool = Arc::new(Pool::new(messages.collect()));
        let mailboxes = Arc::new(pool.mailboxes(&[20, 5, 2], 0, &mut Random::new(1)));
        Script::new(Random::new(seed), pool, mailboxes, "INBOX.".into(), literal_plus)
    }

    fn take(mut script: Script, count: usize) -> Vec<Step> {
        (0..count).map(|_| script.step()).collect()
    }

    #[test]
    fn the_same_for_every_server() {
        let sent = |seed| take(script(seed, true), 200).into_iter().map(|step| step.bytes).collect::<Vec<_>>();
        assert_eq!(sent(1), sent(1));
        assert_ne!(sent(1), sent(2));
    }

    #[test]
    fn all_kinds_as_often_as_said() {
        assert_eq!(Kind::ALL.iter().map(|(_, often)| often).sum::<usize>(), 100);
        let steps = take(script(3, true), 20_000);
        assert_eq!(steps.first().map(|step| step.kind), Some(Kind::Select));
        for (kind, often) in Kind::ALL {
            let share = steps.iter().filter(|step| step.kind == kind).count() as f64 / 200.0;
            assert!((share - often as f64).abs() < 1.5, "{kind:?}: {share} of 100, not {often}");
        }
        assert!(steps.iter().all(|step| step.bytes.starts_with(b"B ") && step.bytes.ends_with(b"\r\n")));
    }

    #[test]
    fn a_server_without_literal_plus_is_waited_for() {
        let append =
            |plus| take(script(1, plus), 200).into_iter().find(|step| step.kind == Kind::Append).expect("some");
        let (one, two) = (append(true), append(false));
        assert!(one.after_continuation.is_empty() && !two.after_continuation.is_empty());
        assert!(two.bytes.ends_with(b"}\r\n") && two.bytes.starts_with(b"B APPEND \"INBOX.bench-in\" {"));
    }
}
