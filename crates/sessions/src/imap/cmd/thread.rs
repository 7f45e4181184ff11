//! THREAD and UID THREAD (RFC 5256 §3).

use imap_proto::command::{self, ThreadAlgorithm};
use imap_proto::encode;
use store::order::{Algorithm, Thread, Token, Tokens};

use super::search::answer::number;
use super::search::question::{asks_for_modseq, known, question};
use super::search::{Patience, warning, write_warning};
use crate::Output;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, command: &command::Thread, out: &mut Output) -> Started {
    let account = session.account()?;
    session.selected()?;
    if asks_for_modseq(&command.key) {
        // RFC 7162 §3.1: a CONDSTORE enabling command; the answer is as ever (§3.1.9).
        session.enable_condstore(out);
    }
    let now = session.now;
    let selected = session.selected()?;
    let charset = Some(command.charset.as_str());
    known(charset)?;
    let question = question(&command.key, charset, &selected.view, &selected.saved)?;
    let search = store::search::Search::new(selected.view.clone(), account.reader(), question, now.unix_seconds);
    Ok(Reply::Running(Box::new(ThreadRun {
        state: State::Searching(Box::new(search)),
        uid: command.uid,
        algorithm: match command.algorithm {
            ThreadAlgorithm::OrderedSubject => Algorithm::OrderedSubject,
            ThreadAlgorithm::References => Algorithm::References,
            ThreadAlgorithm::Refs => Algorithm::Refs,
        },
        damage: None,
        patience: Patience::new(now.monotonic),
    })))
}

/// A THREAD that is under way.
struct ThreadRun {
    state: State,
    uid: bool,
    algorithm: Algorithm,
    /// What is said behind the threads when damaged messages were met.
    damage: Option<Done>,
    patience: Patience,
}

enum State {
    Searching(Box<store::search::Search>),
    Threading(Box<Thread>),
    Answering(Box<Answer>),
}

/// A THREAD response that is being written.
struct Answer {
    tokens: Tokens,
    any_written: bool,
    after_message: bool,
}

impl Running for ThreadRun {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        match &mut self.state {
            State::Searching(search) => {
                let Some((seqs, _)) = search.step()? else { return Ok(self.patience.more(session, out)) };
                self.damage = search.damage().map(|error| warning(session, "THREAD", error));
                let reader = session.account()?.reader();
                let view = session.selected()?.view.clone();
                self.state = State::Threading(Box::new(Thread::new(view, reader, self.algorithm, &seqs)));
                Ok(Progress::More)
            }
            State::Threading(thread) => {
                let Some(threads) = thread.step()? else { return Ok(self.patience.more(session, out)) };
                if self.damage.is_none() {
                    self.damage = thread.damage().map(|error| warning(session, "THREAD", error));
                }
                out.push(b"* THREAD");
                let tokens = threads.into_iter();
                self.state = State::Answering(Box::new(Answer { tokens, any_written: false, after_message: false }));
                Ok(Progress::More)
            }
            State::Answering(answer) => {
                if !answer.pull(session, self.uid, out)? {
                    return Ok(Progress::More);
                }
                out.push(b"\r\n");
                write_warning(self.damage.take(), out);
                Ok(Progress::Done(Done::ok("Threaded")))
            }
        }
    }
}

impl Answer {
    /// Writes until the output is full; true when all is said (RFC 5256 §5 thread-data).
    fn pull(&mut self, session: &mut Session, uid: bool, out: &mut Output) -> Result<bool, Stop> {
        let view = &session.selected()?.view;
        while !out.is_full() {
            let Some(token) = self.tokens.next() else { return Ok(true) };
            let bytes = out.bytes_mut();
            match token {
                Token::Open if self.after_message || !self.any_written => bytes.extend_from_slice(b" ("),
                Token::Open => bytes.push(b'('),
                Token::Message(seq) => {
                    if self.after_message {
                        bytes.push(b' ');
                    }
                    encode::number(bytes, u64::from(number(view, seq, uid)));
                }
                Token::Close => bytes.push(b')'),
            }
            self.any_written = true;
            self.after_message = matches!(token, Token::Message(_));
        }
        Ok(false)
    }
}
