//! The state machine: AUTHORIZATION, TRANSACTION, UPDATE (RFC 1939 §3).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{AccountName, Error, ErrorKind};
use store::Pending;

use super::Context;
use super::command::{Command, Wrong};
use super::maildrop::{Maildrop, Message, Sending};
use crate::imap::PlainTextLogin;
use crate::lines::{LineProtocol, LineTooLong, Lines};
use crate::sasl::{self, Exchange, Mechanism};
use crate::{Connection, Now, Output, Refusal, Step, Waker, Work, open_account};

/// Octets of a line with its end. RFC 2449 §4 has 255 for commands; names and passwords may be longer.
const LINE_BYTES_MAX: usize = 1024;
/// The same within AUTH (RFC 5034 §4: as long as a mechanism needs).
const AUTH_LINE_BYTES_MAX: usize = 12_288;
/// How long a session sleeps on a sync before it looks again by itself.
const SYNC_TIME_MAX: Duration = Duration::from_secs(60);

/// One POP3 connection.
pub struct Pop3Session {
    context: Arc<Context>,
    lines: Lines,
    waker: Waker,
    login: Option<(AccountName, Box<Maildrop>)>,
    /// What USER said.
    user: Option<Vec<u8>>,
    doing: Doing,
    began: Duration,
    failed_logins: u32,
}

enum Doing {
    Greeting,
    Reading,
    Sending(Sending, &'static str),
    Authenticating(&'static str, Box<dyn Mechanism>),
    /// A refusal that is kept back until the time.
    HeldBack(Duration, String),
    Committing(Pending<()>),
    Closed,
}

/// How a command ends at once.
type Answer = Result<String, String>;

impl Pop3Session {
    /// A session that will greet. `waker` is called from other threads when a change is durable.
    pub fn new(context: Arc<Context>, connection: Connection, waker: Waker, now: Now) -> Self {
        Pop3Session {
            lines: Lines::new(connection, now, context.settings.limits.input_bytes_max),
            context,
            waker,
            login: None,
            user: None,
            doing: Doing::Greeting,
            began: now.monotonic,
            failed_logins: 0,
        }
    }

    fn plain_text_allowed(&self) -> bool {
        self.context.settings.plain_text_login == PlainTextLogin::Always || self.lines.connection.is_secure()
    }

    fn can_start_tls(&self) -> bool {
        self.lines.connection.starttls_available && !self.lines.connection.tls && self.login.is_none()
    }

    fn mechanisms(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.plain_text_allowed() {
            names.extend(["PLAIN", "LOGIN"]);
        }
        names.push("SCRAM-SHA-256");
        if self.has_binding() {
            names.push("SCRAM-SHA-256-PLUS");
        }
        names
    }

    fn has_binding(&self) -> bool {
        let binding = &self.lines.connection.channel_binding;
        self.lines.connection.tls && (binding.tls_exporter.is_some() || binding.tls_server_end_point.is_some())
    }

    /// The next line without its end.
    fn line(&mut self) -> Option<Result<Vec<u8>, LineTooLong>> {
        let max = if matches!(self.doing, Doing::Authenticating(..)) { AUTH_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
        self.lines.line(max)
    }

    fn deadline(&self) -> Duration {
        let limits = &self.context.settings.limits;
        match self.login {
            None => self.began.saturating_add(limits.login_time_max),
            Some(_) => self.lines.last_heard.saturating_add(limits.idle_time_max),
        }
    }

    /// Nothing to do without the client. Whoever is silent for too long is let go, and nothing is deleted (RFC 1939 §3).
    fn wait_for_client(&mut self, out: &mut Output) -> Option<Step> {
        let deadline = self.deadline();
        if self.lines.is_shutting_down {
            out.push_str("-ERR [SYS/TEMP] The server is shutting down\r\n");
        } else if self.lines.now.monotonic >= deadline {
            out.push_str("-ERR [SYS/TEMP] Autologout: nothing was heard for too long\r\n");
        } else {
            return Some(Step::NeedInput { deadline: Some(deadline) });
        }
        self.doing = Doing::Closed;
        None
    }

    /// One piece of work; `Some`: it is the driver's turn.
    fn work_on(&mut self, out: &mut Output) -> Option<Step> {
        match std::mem::replace(&mut self.doing, Doing::Reading) {
            Doing::Greeting => {
                out.push_fmt(format_args!("+OK {}\r\n", self.context.settings.greeting));
                None
            }
            Doing::Closed => {
                self.doing = Doing::Closed;
                Some(Step::Close)
            }
            Doing::Reading => {
                let Some(line) = self.line() else { return self.wait_for_client(out) };
                self.take_line(line, out)
            }
            Doing::Authenticating(name, mechanism) => {
                self.doing = Doing::Authenticating(name, mechanism);
                let Some(line) = self.line() else { return self.wait_for_client(out) };
                let Doing::Authenticating(name, mechanism) = std::mem::replace(&mut self.doing, Doing::Reading) else {
                    return None;
                };
                self.respond(name, mechanism, line, out);
                None
            }
            Doing::HeldBack(until, _) if self.lines.now.monotonic < until => {
                let Doing::HeldBack(until, text) = std::mem::replace(&mut self.doing, Doing::Reading) else {
                    return None;
                };
                self.doing = Doing::HeldBack(until, text);
                Some(Step::NeedInput { deadline: Some(until) })
            }
            Doing::HeldBack(_, text) => {
                out.push_fmt(format_args!("-ERR {text}\r\n"));
                if self.failed_logins >= self.context.settings.limits.failed_logins_max {
                    self.doing = Doing::Closed;
                }
                None
            }
            Doing::Sending(mut sending, name) => {
                let Some((_, maildrop)) = &mut self.login else { return None };
                match sending.pull(maildrop, out) {
                    Ok(true) => {
                        if let (Sending::Message(message), "RETR") = (&sending, name) {
                            maildrop.retrieved(message.entry.seq.get());
                        }
                        self.context.observer.command(&self.lines.connection, name, true);
                        None
                    }
                    Ok(false) => {
                        self.doing = Doing::Sending(sending, name);
                        Some(Step::Output)
                    }
                    Err(error) => {
                        // In the middle of a message there is no way to say so.
                        self.context.observer.error(&self.lines.connection, name, &error);
                        self.doing = Doing::Closed;
                        None
                    }
                }
            }
            Doing::Committing(mut pending) => match pending.poll(&self.waker) {
                None => {
                    self.doing = Doing::Committing(pending);
                    Some(Step::NeedInput { deadline: Some(self.lines.now.monotonic.saturating_add(SYNC_TIME_MAX)) })
                }
                Some(result) => {
                    self.goodbye(result, out);
                    None
                }
            },
        }
    }

    fn take_line(&mut self, line: Result<Vec<u8>, LineTooLong>, out: &mut Output) -> Option<Step> {
        let limits = &self.context.settings.limits;
        let command = line.map_err(|LineTooLong| "The line is too long (limit line_bytes_max)").and_then(|line| {
            Command::parse(&line).map_err(|wrong| match wrong {
                Wrong::Unknown => "There is no such command",
                Wrong::Arguments => "The arguments are wrong",
            })
        });
        let command = match command {
            Ok(command) => command,
            Err(text) => {
                self.lines.bad_commands = self.lines.bad_commands.saturating_add(1);
                let most = match self.login {
                    Some(_) => limits.bad_commands_max,
                    None => limits.bad_commands_before_login_max,
                };
                self.context.observer.command(&self.lines.connection, "BAD", false);
                out.push_fmt(format_args!("-ERR {text}\r\n"));
                if self.lines.bad_commands >= most {
                    self.doing = Doing::Closed;
                }
                return None;
            }
        };
        if self.login.is_some() {
            self.lines.bad_commands = 0;
        }
        let name = command.name();
        if matches!(command, Command::Stls) && self.can_start_tls() {
            out.push_str("+OK Begin TLS\r\n");
            self.context.observer.command(&self.lines.connection, name, true);
            self.user = None;
            return Some(self.lines.begin_tls());
        }
        let answer = self.run(command, out);
        if let Some(answer) = answer {
            self.context.observer.command(&self.lines.connection, name, answer.is_ok());
            match answer {
                Ok(text) => out.push_fmt(format_args!("+OK {text}\r\n")),
                Err(text) => out.push_fmt(format_args!("-ERR {text}\r\n")),
            }
        }
        None
    }

    /// `None`: it was answered, or goes on.
    fn run(&mut self, command: Command, out: &mut Output) -> Option<Answer> {
        let answer = match command {
            Command::Capa => {
                self.capabilities(out);
                return None;
            }
            Command::Quit => return self.quit(),
            command if self.login.is_none() => return self.authorize(command, out),
            command => self.transact(command, out)?,
        };
        Some(answer)
    }

    /// RFC 2449 §5.
    fn capabilities(&self, out: &mut Output) {
        let settings = &self.context.settings;
        // RFC 6856 §2: names and passwords may be UTF-8, too.
        out.push_str("+OK\r\nTOP\r\nUIDL\r\nPIPELINING\r\nRESP-CODES\r\nAUTH-RESP-CODE\r\nUTF8 USER\r\n");
        out.push_str(if settings.keep_retrieved { "EXPIRE NEVER\r\n" } else { "EXPIRE 0\r\n" });
        if !settings.login_delay.is_zero() {
            out.push_fmt(format_args!("LOGIN-DELAY {}\r\n", settings.login_delay.as_secs()));
        }
        if self.login.is_none() {
            if self.plain_text_allowed() {
                out.push_str("USER\r\n");
            }
            out.push_fmt(format_args!("SASL {}\r\n", self.mechanisms().join(" ")));
            if self.can_start_tls() {
                out.push_str("STLS\r\n");
            }
        }
        out.push_str("IMPLEMENTATION Mailyard\r\n.\r\n");
        self.context.observer.command(&self.lines.connection, "CAPA", true);
    }

    fn authorize(&mut self, command: Command, out: &mut Output) -> Option<Answer> {
        Some(match command {
            Command::User(_) | Command::Pass(_) if !self.plain_text_allowed() => {
                Err("[AUTH] A password must not cross this connection; use STLS".to_owned())
            }
            Command::User(user) => {
                self.user = Some(user);
                Ok("Now the password".to_owned())
            }
            Command::Pass(password) => {
                let Some(user) = self.user.take() else { return Some(Err("USER comes first".to_owned())) };
                let outcome = self.with_exchange(|exchange| sasl::verify_password(exchange, &user, &password));
                return self.conclude(outcome, "USER");
            }
            Command::Auth(None) => {
                // Not in RFC 5034; clients ask so what there is.
                out.push_fmt(format_args!("+OK\r\n{}\r\n.\r\n", self.mechanisms().join("\r\n")));
                return None;
            }
            Command::Auth(Some((name, initial))) => {
                if !self.mechanisms().contains(&name.as_str()) {
                    return Some(Err(if sasl::sends_password(&name) && !self.plain_text_allowed() {
                        "[AUTH] A password must not cross this connection; use STLS".to_owned()
                    } else {
                        "That mechanism is not there".to_owned()
                    }));
                }
                let (name, mechanism) = sasl::mechanism(&name)?;
                let initial = match initial.as_deref() {
                    None => None,
                    // RFC 5034 §4: `=` is an empty initial response.
                    Some(b"=") => Some(Vec::new()),
                    Some(text) => match STANDARD.decode(text) {
                        Ok(octets) => Some(octets),
                        Err(_) => return Some(Err("That is not base64".to_owned())),
                    },
                };
                return self.exchange(name, mechanism, initial.as_deref(), out);
            }
            Command::Utf8 => Ok("UTF-8 it is".to_owned()),
            Command::Stls => Err("TLS is on already, or there is none".to_owned()),
            _ => Err("Log in first".to_owned()),
        })
    }

    fn with_exchange<T>(&self, act: impl FnOnce(&mut Exchange<'_>) -> T) -> T {
        let random = &self.context.store.env().random;
        act(&mut Exchange {
            authenticator: self.context.authenticator.as_ref(),
            connection: &self.lines.connection,
            random: &mut |buffer| random.fill(buffer),
        })
    }

    fn exchange(
        &mut self,
        name: &'static str,
        mut mechanism: Box<dyn Mechanism>,
        response: Option<&[u8]>,
        out: &mut Output,
    ) -> Option<Answer> {
        match self.with_exchange(|exchange| mechanism.step(response, exchange)) {
            sasl::Step::Challenge(octets) => {
                out.push_fmt(format_args!("+ {}\r\n", STANDARD.encode(octets)));
                self.doing = Doing::Authenticating(name, mechanism);
                None
            }
            sasl::Step::Malformed(why) => Some(Err(why.to_owned())),
            sasl::Step::Done(outcome) => self.conclude(outcome, name),
        }
    }

    /// A line within AUTH.
    fn respond(
        &mut self,
        name: &'static str,
        mechanism: Box<dyn Mechanism>,
        line: Result<Vec<u8>, LineTooLong>,
        out: &mut Output,
    ) {
        let answer = match line.as_deref() {
            Err(LineTooLong) => Some(Err("The line is too long (limit line_bytes_max)".to_owned())),
            // RFC 5034 §4: the client gives up.
            Ok(b"*") => Some(Err("Given up".to_owned())),
            Ok(text) => match STANDARD.decode(text) {
                Ok(octets) => self.exchange(name, mechanism, Some(&octets), out),
                Err(_) => Some(Err("That is not base64".to_owned())),
            },
        };
        match answer {
            Some(Ok(text)) => out.push_fmt(format_args!("+OK {text}\r\n")),
            Some(Err(text)) => out.push_fmt(format_args!("-ERR {text}\r\n")),
            None => {}
        }
    }

    /// Opens the maildrop, or keeps the refusal back for as long as it asks for.
    fn conclude(&mut self, outcome: Result<AccountName, Refusal>, mechanism: &'static str) -> Option<Answer> {
        let name = match outcome {
            Ok(name) => name,
            Err(Refusal { error, wait }) => {
                self.failed_logins = self.failed_logins.saturating_add(1);
                self.context.observer.error(&self.lines.connection, mechanism, &error);
                // RFC 3206 §4: AUTH is about the credentials, SYS about us.
                let text = match error.kind() {
                    ErrorKind::AuthenticationFailed => "[AUTH] Wrong user or password".to_owned(),
                    _ => self.explain(mechanism, &error),
                };
                self.doing = Doing::HeldBack(self.lines.now.monotonic.saturating_add(wait), text);
                return None;
            }
        };
        let (logins, delay) = (&self.context.last_logins, self.context.settings.login_delay);
        if !logins.admit(&name, self.lines.now.monotonic, delay) {
            // RFC 2449 §8.1.1
            return Some(Err("[LOGIN-DELAY] Too soon after the last time".to_owned()));
        }
        let opened = open_account(&self.context.store, &name).and_then(Maildrop::open);
        Some(match opened {
            Ok(maildrop) => {
                let (count, octets) = maildrop.count();
                self.context.observer.login(&self.lines.connection, &name, mechanism);
                self.login = Some((name, Box::new(maildrop)));
                self.lines.last_heard = self.lines.now.monotonic;
                Ok(format!("{count} messages ({octets} octets)"))
            }
            Err(error) => Err(self.explain(mechanism, &error)),
        })
    }

    fn transact(&mut self, command: Command, out: &mut Output) -> Option<Answer> {
        let (_, maildrop) = self.login.as_mut()?;
        let missing = || Err("There is no such message".to_owned());
        let format = &self.context.settings.uidl_format;
        Some(match command {
            Command::Stat => {
                let (count, octets) = maildrop.count();
                Ok(format!("{count} {octets}"))
            }
            Command::List(Some(number)) => match maildrop.entry(number) {
                Some(entry) => Ok(format!("{number} {}", entry.size)),
                None => missing(),
            },
            Command::Uidl(Some(number)) => match maildrop.entry(number) {
                Some(entry) => Ok(format!("{number} {}", maildrop.name(&entry, format))),
                None => missing(),
            },
            Command::List(None) => {
                out.push_str("+OK\r\n");
                self.doing = Doing::Sending(Sending::List { next: 1, names: None }, "LIST");
                return None;
            }
            Command::Uidl(None) => {
                out.push_str("+OK\r\n");
                let names = Some(format.clone());
                self.doing = Doing::Sending(Sending::List { next: 1, names }, "UIDL");
                return None;
            }
            Command::Retr(number) => return self.send(number, None, "RETR", out),
            Command::Top(number, lines) => return self.send(number, Some(lines), "TOP", out),
            Command::Dele(number) => match maildrop.entry(number) {
                Some(_) => {
                    maildrop.delete(number);
                    Ok("Marked".to_owned())
                }
                None => missing(),
            },
            Command::Noop => Ok("Nothing".to_owned()),
            Command::Rset => {
                maildrop.reset();
                let (count, octets) = maildrop.count();
                Ok(format!("{count} messages ({octets} octets)"))
            }
            _ => Err("Not after the login".to_owned()),
        })
    }

    fn send(&mut self, number: u32, lines: Option<u64>, name: &'static str, out: &mut Output) -> Option<Answer> {
        let (_, maildrop) = self.login.as_mut()?;
        let Some(entry) = maildrop.entry(number) else { return Some(Err("There is no such message".to_owned())) };
        match Message::new(maildrop, entry, lines) {
            Ok(message) => {
                match lines {
                    None => out.push_fmt(format_args!("+OK {} octets\r\n", entry.size)),
                    Some(_) => out.push_str("+OK\r\n"),
                }
                self.doing = Doing::Sending(Sending::Message(message), name);
                None
            }
            Err(error) => Some(Err(self.explain(name, &error))),
        }
    }

    /// RFC 1939 §6: the UPDATE state.
    fn quit(&mut self) -> Option<Answer> {
        let finished = match &self.login {
            None => Ok(None),
            Some((_, maildrop)) => maildrop.finish(&self.context.settings),
        };
        match finished {
            Ok(Some(pending)) => {
                self.doing = Doing::Committing(pending);
                None
            }
            Ok(None) => {
                self.doing = Doing::Closed;
                Some(Ok("Goodbye".to_owned()))
            }
            Err(error) => {
                self.doing = Doing::Closed;
                Some(Err(self.explain("QUIT", &error)))
            }
        }
    }

    fn goodbye(&mut self, result: Result<(), Error>, out: &mut Output) {
        self.context.observer.command(&self.lines.connection, "QUIT", result.is_ok());
        match result {
            Ok(()) => out.push_str("+OK Goodbye\r\n"),
            Err(error) => {
                let text = self.explain("QUIT", &error);
                out.push_fmt(format_args!("-ERR {text}; nothing was deleted\r\n"));
            }
        }
        self.doing = Doing::Closed;
    }

    /// An error in words, with its response code (RFC 2449 §8.1.1, RFC 3206). The details are for the log.
    fn explain(&self, doing: &'static str, error: &Error) -> String {
        let (is_ours, text) = match error.kind() {
            ErrorKind::InUse => (false, "[IN-USE] Something else is using the mail"),
            ErrorKind::Expunged => (false, "The message was expunged meanwhile"),
            ErrorKind::Corrupt => (true, "[SYS/PERM] What is stored is damaged; the administrator can see where"),
            ErrorKind::DiskFull => (true, "[SYS/TEMP] The server's storage is full"),
            ErrorKind::ReadOnlyAfterFailure | ErrorKind::TakenOver | ErrorKind::Io => {
                (true, "[SYS/TEMP] The server's storage failed")
            }
            _ => (true, "[SYS/TEMP] That cannot be done now"),
        };
        if is_ours {
            self.context.observer.error(&self.lines.connection, doing, error);
        }
        text.to_owned()
    }
}

impl LineProtocol for Pop3Session {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn go_on(&mut self, out: &mut Output) -> Option<Step> {
        self.work_on(out)
    }

    fn is_closed(&self) -> bool {
        matches!(self.doing, Doing::Closed)
    }

    fn account(&self) -> Option<&AccountName> {
        self.login.as_ref().map(|(name, _)| name)
    }

    fn work(&self) -> Work {
        if self.login.is_some() { Work::Ordinary } else { Work::Login }
    }
}
