//! How a command ends, and how one that has much to say goes on.
//!
//! Invariant: a command that was taken is answered by exactly one tagged response, which [`Done`] becomes.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use model::{Error, Result};
use store::{Account, Edit, Pending};

use super::state::Session;
use crate::Output;

/// The condition of a tagged response (RFC 9051 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It was done.
    Ok,
    /// It could not be done.
    No,
    /// It was no command, or not one for now.
    Bad,
}

/// What the tagged response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// OK, NO or BAD.
    pub condition: Condition,
    /// The response code without its brackets.
    pub code: Option<Cow<'static, str>>,
    /// For people.
    pub text: Cow<'static, str>,
    /// Whether the code is HIGHESTMODSEQ of the view, as it is once the untagged responses before it have been sent
    /// (RFC 7162 §3.2.7). Instead of `code`.
    pub highest_modseq: bool,
}

impl Done {
    fn new(condition: Condition, text: impl Into<Cow<'static, str>>) -> Self {
        Done { condition, code: None, text: text.into(), highest_modseq: false }
    }

    /// OK
    pub fn ok(text: impl Into<Cow<'static, str>>) -> Self {
        Done::new(Condition::Ok, text)
    }

    /// NO
    pub fn no(text: impl Into<Cow<'static, str>>) -> Self {
        Done::new(Condition::No, text)
    }

    /// BAD
    pub fn bad(text: impl Into<Cow<'static, str>>) -> Self {
        Done::new(Condition::Bad, text)
    }

    /// The same with a response code.
    pub fn with_code(self, code: impl Into<Cow<'static, str>>) -> Self {
        Done { code: Some(code.into()), ..self }
    }

    /// The same with the view's HIGHESTMODSEQ as its code.
    pub fn with_highest_modseq(self) -> Self {
        Done { highest_modseq: true, ..self }
    }
}

/// What starting a command came to.
pub(crate) enum Reply {
    /// It is done.
    Done(Done),
    /// It has more to say than fits: [`Running::pull`] goes on.
    Running(Box<dyn Running>),
    /// It is done, and then something happens to the connection.
    Then(Done, After),
    /// LOGOUT: BYE, this, and the end.
    Logout(Done),
}

/// What happens to the connection after a tagged OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// TLS is negotiated.
    StartTls,
    /// Everything that follows is compressed.
    Compress,
}

impl From<Done> for Reply {
    fn from(done: Done) -> Self {
        Reply::Done(done)
    }
}

/// Why a command stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The answer is known.
    Done(Done),
    /// An error that `status.rs` puts into words.
    Error(Error),
    /// An error in the middle of a literal that was announced: the client would take whatever comes next for its octets, so the
    /// connection ends without a word.
    Broken(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Error(error)
    }
}

impl From<Done> for Stop {
    fn from(done: Done) -> Self {
        Stop::Done(done)
    }
}

/// A command that produces its answer in pieces.
///
/// Invariant: one call of `pull` writes until the output is full or does another bounded piece of work, and holds no lock
/// and no large buffer between calls.
pub(crate) trait Running: Send {
    /// Goes on. `session` is the same session at every call, and nothing else runs in it meanwhile.
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop>;

    /// A line from the client, for commands that take one after `Progress::WaitForLine` (AUTHENTICATE, IDLE); without its CRLF.
    fn line(&mut self, _session: &mut Session, _line: &[u8]) -> Result<(), Stop> {
        Err(Done::bad("No line was expected").into())
    }
}

/// How far a running command came.
#[derive(Debug)]
pub(crate) enum Progress {
    /// There is more; ask again when there is room in the output.
    More,
    /// Nothing more until a line from the client, a change in the account, or the time.
    WaitForLine,
    /// Nothing more until the time, in [`crate::Now::monotonic`]; no input is read before.
    WaitUntil(Duration),
    /// Nothing more until a sync is done that the session's waker tells of; no input is read before.
    WaitForSync,
    /// That was all.
    Done(Done),
}

/// What starting a command gives.
pub(crate) type Started = Result<Reply, Stop>;

/// Changes the account, and answers when the change is durable: `answer` is given what `change` gave. No thread waits meanwhile. An error
/// of `change` is returned at once, one of the disk is the command's answer. `change` runs again when another node of a cluster came in between.
pub(crate) fn commit<T: Send + 'static>(
    account: Arc<Account>,
    change: impl FnMut(&mut Edit<'_>) -> Result<T> + Send + 'static,
    answer: impl FnOnce(&mut Session, T, &mut Output) -> Result<Done, Stop> + Send + 'static,
) -> Result<Reply> {
    let pending = account.begin(change)?;
    Ok(Reply::Running(Box::new(Committing { pending, answer: Some(answer), _account: account })))
}

/// A change on its way to the disk.
struct Committing<T, A> {
    pending: Pending<T>,
    /// `None` once it was given.
    answer: Option<A>,
    /// Kept open until then.
    _account: Arc<Account>,
}

impl<T: Send, A: FnOnce(&mut Session, T, &mut Output) -> Result<Done, Stop> + Send> Running for Committing<T, A> {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        let Some(settled) = self.pending.poll(&session.waker) else { return Ok(Progress::WaitForSync) };
        let (value, answer) = (settled?, self.answer.take());
        let answer = answer.ok_or_else(|| Error::new(model::ErrorKind::Invalid, "answered already"))?;
        answer(session, value, out).map(Progress::Done)
    }
}
