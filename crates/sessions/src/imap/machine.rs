//! What goes on in a session: reading a command, answering it, saying what has changed, and the ends that it can come to.
//!
//! Commands are taken strictly one after the other, so pipelining (RFC 9051 §5.5) cannot make one overtake another; the next one is
//! not even read before the tagged response of the one before is in the output.

use std::sync::Arc;
use std::time::Duration;

use imap_proto::{Event, FrameError, FrameLimits, ReadError, ReadErrorKind, Reader};

use super::cmd::append::Append;
use super::cmd::{self, Follow};
use super::notify::Notices;
use super::reply::{After, Condition, Done, Progress, Reply, Running, Started, Stop};
use super::state::{Enabled, Session};
use super::updates::{Updates, Why};
use super::{Context, capability, status, write};
use crate::{ChannelBinding, Connection, Now, Output, Waker};

/// Octets of a line, and of all literals of a command, before login: enough for any SASL message.
const BEFORE_LOGIN_BYTES_MAX: usize = 16 * 1024;
/// How long a session sleeps on a sync before it looks again by itself.
const SYNC_TIME_MAX: Duration = Duration::from_secs(60);

/// See [`crate::imap::ImapSession`], which adds compression.
pub(crate) struct Machine {
    pub session: Session,
    reader: Reader,
    doing: Doing,
    /// When the connection was last where a new one is: the login must come within a time from here.
    unauthenticated_since: Duration,
    last_heard: Duration,
    heard: bool,
    bad_commands: u32,
    shutting_down: bool,
}

/// What the machine waits for.
pub(crate) enum Wait {
    /// Room in the output.
    Output,
    /// Input, a change, or the time.
    Input(Duration),
    /// TLS.
    StartTls,
    /// Compression of everything that follows.
    Compress,
    /// Nothing.
    Close,
}

enum Doing {
    Greeting,
    /// Waiting for a command, or in the middle of one.
    Reading,
    Running(Current, Box<dyn Running>),
    /// The command is done; changes are said before its tagged response (RFC 9051 §5.2).
    Updating(Current, Done, Option<Updates>, Option<After>),
    Appending(Box<Append>),
    /// Between commands, for a client that has said NOTIFY (RFC 5465).
    Telling(Notices),
    Closed,
}

/// The command that is being answered.
struct Current {
    tag: String,
    name: &'static str,
    follow: Follow,
    why: Why,
}

impl Machine {
    pub fn new(context: Arc<Context>, connection: Connection, waker: Waker, now: Now) -> Self {
        Machine {
            session: Session {
                context,
                connection,
                waker,
                now,
                enabled: Enabled::default(),
                login: None,
                selected: None,
                notify: None,
                is_broken: false,
                compressed: false,
                failed_logins: 0,
                idle: false,
            },
            reader: Reader::new(limits_before_login()),
            doing: Doing::Greeting,
            unauthenticated_since: now.monotonic,
            last_heard: now.monotonic,
            heard: false,
            bad_commands: 0,
            shutting_down: false,
        }
    }

    /// Something came from the client.
    pub fn heard(&mut self) {
        self.heard = true;
    }

    pub fn shut_down(&mut self) {
        self.shutting_down = true;
    }

    pub fn tls_started(&mut self, channel_binding: ChannelBinding) {
        self.session.connection.tls = true;
        self.session.connection.channel_binding = channel_binding;
    }

    /// Ends the connection without a word: what the other side sends cannot be understood.
    pub fn abandon(&mut self) {
        self.doing = Doing::Closed;
    }

    /// Goes on, taking from `input` what it needs.
    pub fn step(&mut self, now: Now, input: &mut &[u8], out: &mut Output) -> Wait {
        self.session.now = now;
        if std::mem::take(&mut self.heard) {
            self.last_heard = now.monotonic;
        }
        loop {
            if self.session.is_broken {
                self.doing = Doing::Closed;
            }
            if out.is_full() && !matches!(self.doing, Doing::Closed) {
                return Wait::Output;
            }
            let wait = match std::mem::replace(&mut self.doing, Doing::Reading) {
                Doing::Greeting => {
                    self.greet(out);
                    None
                }
                Doing::Reading => self.read(input, out),
                Doing::Running(current, running) => self.run(current, running, input, out),
                Doing::Updating(current, done, updates, after) => self.update(current, done, updates, after, out),
                Doing::Appending(append) => self.append(append, input, out),
                Doing::Telling(mut notices) => match notices.pull(&mut self.session, out) {
                    true => None,
                    false => {
                        self.doing = Doing::Telling(notices);
                        Some(Wait::Output)
                    }
                },
                Doing::Closed => {
                    self.doing = Doing::Closed;
                    Some(Wait::Close)
                }
            };
            if let Some(wait) = wait {
                return wait;
            }
        }
    }

    /// RFC 9051 §7.1.1; the capabilities save the client a round trip.
    fn greet(&mut self, out: &mut Output) {
        let capabilities = capability::list(&self.session);
        out.push_fmt(format_args!("* OK [CAPABILITY {capabilities}] {}\r\n", self.session.context.settings.greeting));
    }

    /// `* BYE` (RFC 9051 §7.1.5) and the end.
    fn bye(&mut self, text: &str, out: &mut Output) {
        out.push_fmt(format_args!("* BYE {text}\r\n"));
        self.doing = Doing::Closed;
    }

    /// When the client will have been silent for too long.
    fn deadline(&self) -> Duration {
        let limits = &self.session.context.settings.limits;
        if self.session.login.is_none() {
            self.unauthenticated_since.saturating_add(limits.login_time_max)
        } else if self.session.idle {
            self.last_heard.saturating_add(limits.idle_command_time_max)
        } else {
            self.last_heard.saturating_add(limits.idle_time_max)
        }
    }

    /// Nothing to do without the client: wait for it, unless its time is up or the server's.
    fn wait_for_client(&mut self, out: &mut Output) -> Option<Wait> {
        let deadline = self.deadline();
        if self.shutting_down {
            self.bye("The server is shutting down", out);
        } else if self.session.now.monotonic >= deadline {
            self.bye("Autologout: nothing was heard for too long", out);
        } else {
            return Some(Wait::Input(deadline));
        }
        None
    }

    fn read(&mut self, input: &mut &[u8], out: &mut Output) -> Option<Wait> {
        if self.shutting_down && !self.reader.is_inside() {
            return self.wait_for_client(out);
        }
        match self.reader.next(input) {
            None => return self.tell_or_wait(out),
            Some(Event::Command(command)) => {
                self.forgive_bad_commands();
                let current = Current {
                    tag: command.tag.as_str().to_owned(),
                    name: cmd::name(&command.body),
                    follow: cmd::follow(&command.body),
                    why: cmd::why(&command.body),
                };
                let started = cmd::start(&mut self.session, &current.tag, command.body, out);
                self.started(current, started, out);
            }
            Some(Event::Continue) => out.push_str("+ Go on\r\n"),
            Some(Event::AppendStart(start)) => {
                self.forgive_bad_commands();
                let (tag, name) = (start.tag.as_str().to_owned(), cmd::append::name(start.kind));
                match Append::start(&mut self.session, start, out) {
                    Ok(append) => self.doing = Doing::Appending(Box::new(append)),
                    Err(stop) => {
                        self.reader.refuse();
                        self.stopped(Current { tag, name, follow: Follow::Everything, why: Why::Passing }, stop);
                    }
                }
            }
            Some(Event::Error(error)) => self.bad(&error, out),
            // Only between an AppendStart and its end, and after `expect_line`.
            Some(Event::AppendNext(_) | Event::Chunk(_) | Event::MessageEnd | Event::AppendEnd | Event::Line(_)) => {}
        }
        None
    }

    /// The client says nothing: what it wants to hear of is said, or it is waited for.
    fn tell_or_wait(&mut self, out: &mut Output) -> Option<Wait> {
        // In the middle of a command there is time: what it does comes first.
        let may_tell = self.session.notify.is_some() && !self.reader.is_inside() && !self.shutting_down;
        if may_tell && let Some(notices) = Notices::look(&mut self.session, false) {
            self.doing = Doing::Telling(notices);
            return None;
        }
        match (self.wait_for_client(out), self.session.looks_again_at()) {
            (Some(Wait::Input(deadline)), Some(again)) => Some(Wait::Input(deadline.min(again))),
            (wait, _) => wait,
        }
    }

    fn started(&mut self, current: Current, started: Started, out: &mut Output) {
        match started {
            Ok(Reply::Done(done)) => self.complete(current, done, None),
            Ok(Reply::Then(done, after)) => self.complete(current, done, Some(after)),
            Ok(Reply::Running(running)) => self.doing = Doing::Running(current, running),
            Ok(Reply::Logout(done)) => {
                write::tagged(out, &current.tag, &done, None);
                self.session.context.observer.command(&self.session.connection, current.name, true);
                self.doing = Doing::Closed;
            }
            Err(stop) => self.stopped(current, stop),
        }
    }

    fn append(&mut self, mut append: Box<Append>, input: &mut &[u8], out: &mut Output) -> Option<Wait> {
        let event = match self.reader.next(input) {
            Some(event) => event,
            None => {
                self.doing = Doing::Appending(append);
                return self.wait_for_client(out);
            }
        };
        let outcome = match event {
            Event::Chunk(octets) => append.chunk(octets),
            Event::MessageEnd => append.message_end(),
            Event::AppendNext(message) => append.message(&self.session, &message, out),
            Event::AppendEnd => {
                let (tag, name, why) = (append.tag.as_str().to_owned(), append.name(), append.why());
                let current = Current { tag, name, follow: Follow::Everything, why };
                self.started(current, append.end(), out);
                return None;
            }
            Event::Error(error) => {
                self.bad(&error, out);
                return None;
            }
            Event::Command(_) | Event::Line(_) | Event::Continue | Event::AppendStart(_) => Ok(()),
        };
        match outcome {
            Ok(()) => self.doing = Doing::Appending(append),
            Err(stop) => {
                self.reader.refuse();
                let (tag, name) = (append.tag.as_str().to_owned(), append.name());
                self.stopped(Current { tag, name, follow: Follow::Everything, why: Why::Passing }, stop);
            }
        }
        None
    }

    fn run(
        &mut self,
        current: Current,
        mut running: Box<dyn Running>,
        input: &mut &[u8],
        out: &mut Output,
    ) -> Option<Wait> {
        match running.pull(&mut self.session, out) {
            Ok(Progress::More) => {
                self.doing = Doing::Running(current, running);
                Some(Wait::Output)
            }
            Ok(Progress::WaitUntil(time)) => {
                self.doing = Doing::Running(current, running);
                if self.shutting_down { self.wait_for_client(out) } else { Some(Wait::Input(time)) }
            }
            Ok(Progress::WaitForSync) => {
                // Also when the server stops: what is done is answered.
                self.doing = Doing::Running(current, running);
                Some(Wait::Input(self.session.now.monotonic.saturating_add(SYNC_TIME_MAX)))
            }
            Ok(Progress::Done(done)) => {
                self.complete(current, done, None);
                None
            }
            Ok(Progress::WaitForLine) => {
                self.reader.expect_line();
                let line = match self.reader.next(input) {
                    Some(Event::Line(line)) => running.line(&mut self.session, &line),
                    Some(Event::Error(error)) => Err(Done::bad(explain(&error)).into()),
                    Some(_) => Ok(()),
                    None => {
                        self.doing = Doing::Running(current, running);
                        return self.wait_for_client(out);
                    }
                };
                match line {
                    Ok(()) => self.doing = Doing::Running(current, running),
                    Err(stop) => self.stopped(current, stop),
                }
                None
            }
            Err(stop) => {
                self.stopped(current, stop);
                None
            }
        }
    }

    /// The answer of a command that stopped early.
    fn stopped(&mut self, current: Current, stop: Stop) {
        let done = match stop {
            Stop::Done(done) => done,
            Stop::Error(error) => {
                if status::is_ours(error.kind()) {
                    self.session.context.observer.error(&self.session.connection, current.name, &error);
                }
                status::answer(&error)
            }
            Stop::Broken(error) => {
                self.session.context.observer.error(&self.session.connection, current.name, &error);
                self.doing = Doing::Closed;
                return;
            }
        };
        self.complete(current, done, None);
    }

    /// Changes come before the tagged response.
    fn complete(&mut self, current: Current, done: Done, after: Option<After>) {
        self.session.stop_idling();
        let updates = match current.follow {
            Follow::Everything => Updates::new(&mut self.session, true, current.why),
            Follow::WithoutExpunges => Updates::new(&mut self.session, false, current.why),
            Follow::Nothing => None,
        };
        self.doing = Doing::Updating(current, done, updates, after);
    }

    fn update(
        &mut self,
        current: Current,
        done: Done,
        mut updates: Option<Updates>,
        after: Option<After>,
        out: &mut Output,
    ) -> Option<Wait> {
        if let Some(updates) = &mut updates
            && !updates.pull(&mut self.session, out)
        {
            self.doing = Doing::Updating(current, done, Some(std::mem::take(updates)), after);
            return Some(Wait::Output);
        }
        let selected = self.session.selected.as_ref().filter(|_| done.highest_modseq);
        write::tagged(out, &current.tag, &done, selected.map(|selected| selected.view.highest_modseq().0));
        let ok = done.condition == Condition::Ok;
        self.session.context.observer.command(&self.session.connection, current.name, ok);
        self.after_answer(current.name, out);
        match after {
            None => None,
            Some(After::StartTls) => Some(Wait::StartTls),
            Some(After::Compress) => {
                self.session.compressed = true;
                Some(Wait::Compress)
            }
        }
    }

    /// What a change of who is logged in changes for the reading of what follows.
    fn after_answer(&mut self, name: &'static str, out: &mut Output) {
        let limits = self.session.context.settings.limits;
        match name {
            "LOGIN" | "AUTHENTICATE" if self.session.login.is_some() => {
                self.reader.set_limits(FrameLimits::default());
                self.bad_commands = 0;
            }
            "LOGIN" | "AUTHENTICATE" if self.session.failed_logins >= limits.failed_logins_max => {
                self.bye("Too many failed logins", out);
            }
            "UNAUTHENTICATE" if self.session.login.is_none() => {
                self.reader.set_limits(limits_before_login());
                self.unauthenticated_since = self.session.now.monotonic;
            }
            _ => {}
        }
    }

    /// A command could be read. Before login that makes up for nothing.
    fn forgive_bad_commands(&mut self) {
        if self.session.login.is_some() {
            self.bad_commands = 0;
        }
    }

    /// What could not be read is answered at once (RFC 9051 §7.1.3), and not for ever.
    fn bad(&mut self, error: &ReadError, out: &mut Output) {
        let mut done = Done::bad(explain(error));
        if let ReadErrorKind::Frame(FrameError::NonSynchronisingTooLarge { message: true, .. }) = error.kind {
            done = done.with_code("TOOBIG");
        }
        write::tagged(out, error.tag.as_ref().map_or("*", |tag| tag.as_str()), &done, None);
        self.session.context.observer.command(&self.session.connection, "BAD", false);
        self.bad_commands = self.bad_commands.saturating_add(1);
        let limits = &self.session.context.settings.limits;
        let most = match self.session.login {
            Some(_) => limits.bad_commands_max,
            None => limits.bad_commands_before_login_max,
        };
        if error.is_fatal() {
            self.bye("What follows cannot be read", out);
        } else if self.bad_commands >= most {
            self.bye("Too many commands that are none", out);
        }
    }
}

fn limits_before_login() -> FrameLimits {
    FrameLimits {
        line_bytes_max: BEFORE_LOGIN_BYTES_MAX,
        literal_memory_bytes_max: BEFORE_LOGIN_BYTES_MAX,
        ..FrameLimits::default()
    }
}

/// What is wrong with a command, for people.
fn explain(error: &ReadError) -> String {
    match (&error.kind, error.limit()) {
        (_, Some(limit)) => format!("A limit was met (limit {limit})"),
        (ReadErrorKind::UnknownCommand(_), None) => "There is no such command".to_owned(),
        (ReadErrorKind::Syntax(syntax), None) => format!("Cannot be read: {syntax}"),
        (ReadErrorKind::Frame(_), None) => "Cannot be read".to_owned(),
    }
}
