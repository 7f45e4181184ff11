//! The state machine (RFC 5321 §4.1.4, RFC 2033 §4).

use std::sync::Arc;
use std::time::Duration;

use model::{AccountName, Error, ErrorKind};

use super::command::{Command, Mail, needs_utf8, unknown_parameter};
use super::delivery::{Delivery, Identity, Progress, Recipient, reply as reply_of_copy};
use super::dots::Unstuffing;
use super::incoming::{Complete, Failure, Incoming, message_bytes_max};
use super::reply::{Reply, is_ours, of_error, out_of_order, too_large};
use super::trace::Trace;
use super::{Context, LINE_BYTES_MAX};
use crate::lines::{LineProtocol, LineTooLong, Lines};
use crate::{Connection, Now, Output, Step, Waker, Work, open_account};

/// How long a session sleeps on a sync before it looks again by itself.
const SYNC_TIME_MAX: Duration = Duration::from_secs(60);

/// One LMTP connection.
pub struct LmtpSession {
    context: Arc<Context>,
    lines: Lines,
    waker: Waker,
    /// What LHLO said.
    client: Option<String>,
    transaction: Option<Transaction>,
    doing: Doing,
    /// Transactions so far.
    count: u64,
}

enum Doing {
    Greeting,
    Reading,
    /// Octets of a message come, up to a line with a dot.
    Data(Unstuffing),
    /// So many octets of a message come.
    Chunk {
        left: u64,
        last: bool,
    },
    Delivering(Box<Delivery>, Source, u64),
    /// Everybody is told the same.
    Refusing(std::vec::IntoIter<Recipient>, Reply),
    Closed,
}

/// Which command brought a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Data,
    Bdat,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Source::Data => "DATA",
            Source::Bdat => "BDAT",
        }
    }
}

/// From MAIL to the end of the message (RFC 5321 §3.3).
struct Transaction {
    mail: Mail,
    recipients: Vec<Recipient>,
    message: Option<(Incoming, Trace)>,
}

impl LmtpSession {
    /// A session that will greet. `waker` is called from other threads when a copy is durable.
    pub fn new(context: Arc<Context>, connection: Connection, waker: Waker, now: Now) -> Self {
        LmtpSession {
            lines: Lines::new(connection, now, context.settings.input_bytes_max),
            context,
            waker,
            client: None,
            transaction: None,
            doing: Doing::Greeting,
            count: 0,
        }
    }

    fn message_bytes_max(&self) -> u64 {
        message_bytes_max(self.context.store.options().message_bytes_max)
    }

    /// Nothing to do without the client (RFC 5321 §3.8: 421).
    fn wait_for_client(&mut self, out: &mut Output) -> Option<Step> {
        let deadline = self.lines.last_heard.saturating_add(self.context.settings.idle_time_max);
        // A message that is coming in is still taken.
        if self.lines.is_shutting_down && matches!(self.doing, Doing::Reading) {
            Reply::new(421, "4.3.2", "The server is shutting down").write(out);
        } else if self.lines.now.monotonic >= deadline {
            Reply::new(421, "4.4.2", "Nothing was heard for too long").write(out);
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
                out.push_fmt(format_args!("220 {} LMTP Mailyard\r\n", self.context.settings.hostname));
                None
            }
            Doing::Closed => {
                self.doing = Doing::Closed;
                Some(Step::Close)
            }
            Doing::Reading => {
                let Some(line) = self.lines.line(LINE_BYTES_MAX) else { return self.wait_for_client(out) };
                self.take_line(line, out)
            }
            Doing::Data(mut dots) => {
                let mut message = self.transaction.as_mut().and_then(|transaction| transaction.message.as_mut());
                let (used, is_over) = dots.push(self.lines.pending(), |bytes| {
                    if let Some((incoming, _)) = &mut message {
                        incoming.write(bytes);
                    }
                });
                self.lines.consume(used);
                if is_over {
                    self.deliver(Source::Data);
                    return None;
                }
                self.doing = Doing::Data(dots);
                self.wait_for_client(out)
            }
            Doing::Chunk { left, last } => {
                let received = self.lines.pending();
                let octets = usize::try_from(left).unwrap_or(usize::MAX).min(received.len());
                if let Some((incoming, _)) = self.transaction.as_mut().and_then(|all| all.message.as_mut()) {
                    incoming.write(received.get(..octets).unwrap_or_default());
                }
                self.lines.consume(octets);
                let left = left.saturating_sub(octets as u64);
                if left == 0 {
                    self.chunk_is_over(last, out);
                    return None;
                }
                self.doing = Doing::Chunk { left, last };
                self.wait_for_client(out)
            }
            Doing::Delivering(mut delivery, source, octets) => {
                let step = match delivery.go_on(&self.context.store, &self.waker) {
                    Progress::Over => {
                        // However long it took, the client was not silent.
                        self.lines.last_heard = self.lines.now.monotonic;
                        return None;
                    }
                    Progress::Answered(recipient, result) => {
                        self.answered(&recipient, &result, source, octets, out);
                        None
                    }
                    Progress::Waiting => {
                        Some(Step::NeedInput { deadline: Some(self.lines.now.monotonic.saturating_add(SYNC_TIME_MAX)) })
                    }
                    // Large copies take time; others get their turn between them.
                    Progress::Busy => (octets > LARGE_BYTES).then_some(Step::Output),
                };
                self.doing = Doing::Delivering(delivery, source, octets);
                step
            }
            Doing::Refusing(mut recipients, reply) => {
                if let Some(recipient) = recipients.next() {
                    reply.about(&recipient.address).write(out);
                    self.doing = Doing::Refusing(recipients, reply);
                }
                None
            }
        }
    }

    fn take_line(&mut self, line: Result<Vec<u8>, LineTooLong>, out: &mut Output) -> Option<Step> {
        let is_chunk = line.as_ref().is_ok_and(|line| Command::is_chunk(line));
        let parsed = match line {
            Ok(line) => Command::parse(&line),
            Err(LineTooLong) => Err(Reply::new(500, "5.5.2", "The line is too long (limit line_bytes_max)")),
        };
        let command = match parsed {
            Ok(command) => command,
            Err(reply) => {
                reply.write(out);
                self.context.observer.command(&self.lines.connection, "BAD", false);
                self.lines.bad_commands = self.lines.bad_commands.saturating_add(1);
                // Where the message behind such a BDAT ends is not known.
                if is_chunk || self.lines.bad_commands >= self.context.settings.bad_commands_max {
                    self.doing = Doing::Closed;
                }
                return None;
            }
        };
        self.lines.bad_commands = 0;
        let name = command.name();
        if matches!(command, Command::StartTls) && self.can_start_tls() {
            return Some(self.start_tls(out));
        }
        let reply = self.run(command, out)?;
        self.context.observer.command(&self.lines.connection, name, reply.is_positive());
        reply.write(out);
        None
    }

    /// `None`: it was answered, or goes on.
    fn run(&mut self, command: Command, out: &mut Output) -> Option<Reply> {
        let ok = |text: &'static str| Some(Reply::new(250, "2.0.0", text));
        // RFC 3030 §2: between chunks nothing comes but chunks and what ends the transaction or does nothing.
        let is_receiving = self.transaction.as_ref().is_some_and(|transaction| transaction.message.is_some());
        match command {
            Command::Lhlo(client) => {
                self.transaction = None;
                self.client = Some(client);
                self.extensions(out);
                None
            }
            Command::Noop => ok("Nothing"),
            Command::Rset => {
                self.transaction = None;
                ok("Reset")
            }
            Command::Quit => {
                self.doing = Doing::Closed;
                Some(Reply::new(221, "2.0.0", "Goodbye"))
            }
            Command::Help => {
                Some(Reply::new(214, "2.0.0", "LHLO MAIL RCPT DATA BDAT RSET NOOP VRFY HELP QUIT STARTTLS"))
            }
            // RFC 5321 §3.5.3: who is here is said at RCPT only.
            Command::Vrfy => Some(Reply::new(252, "2.5.2", "Send mail, and see")),
            Command::StartTls => Some(Reply::new(502, "5.5.1", "TLS is not offered here")),
            Command::Bdat(octets, last) => {
                self.begin_chunk(octets, last);
                None
            }
            _ if self.client.is_none() => Some(out_of_order("Say LHLO first")),
            _ if is_receiving => Some(out_of_order("A message is coming in by BDAT")),
            Command::Mail(mail) => Some(self.mail(mail).unwrap_or_else(|reply| reply)),
            Command::Rcpt(_, true) if !self.context.settings.offers_dsn => Some(unknown_parameter()),
            Command::Rcpt(address, _) => Some(self.rcpt(&address).unwrap_or_else(|reply| reply)),
            Command::Data => match self.begin_data() {
                Ok(()) => {
                    // RFC 2034 §4: no status code with a 3yz.
                    out.push_str("354 Send it; end with <CRLF>.<CRLF>\r\n");
                    self.doing = Doing::Data(Unstuffing::default());
                    None
                }
                Err(reply) => Some(reply),
            },
        }
    }

    /// The answer to LHLO (RFC 5321 §4.1.1.1).
    fn extensions(&self, out: &mut Output) {
        out.push_fmt(format_args!("250-{}\r\n", self.context.settings.hostname));
        out.push_str("250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-CHUNKING\r\n250-BINARYMIME\r\n");
        if self.can_start_tls() {
            out.push_str("250-STARTTLS\r\n");
        }
        if self.context.settings.offers_dsn {
            out.push_str("250-DSN\r\n");
        }
        out.push_str("250-ENHANCEDSTATUSCODES\r\n");
        out.push_fmt(format_args!("250 SIZE {}\r\n", self.message_bytes_max()));
        self.context.observer.command(&self.lines.connection, "LHLO", true);
    }

    fn can_start_tls(&self) -> bool {
        self.lines.connection.starttls_available && !self.lines.connection.tls
    }

    /// RFC 3207 §4.
    fn start_tls(&mut self, out: &mut Output) -> Step {
        Reply::new(220, "2.0.0", "Begin TLS").write(out);
        self.context.observer.command(&self.lines.connection, "STARTTLS", true);
        // RFC 3207 §4.2: what was said before is forgotten.
        self.client = None;
        self.transaction = None;
        self.lines.begin_tls()
    }

    fn mail(&mut self, mail: Mail) -> Result<Reply, Reply> {
        if self.transaction.is_some() {
            return Err(out_of_order("A transaction is under way"));
        }
        mail.check_size(self.message_bytes_max())?;
        // An id is taken from whoever says one; the rest is for those who were offered it.
        if mail.has_ret && !self.context.settings.offers_dsn {
            return Err(unknown_parameter());
        }
        self.transaction = Some(Transaction { mail, recipients: Vec::new(), message: None });
        Ok(Reply::new(250, "2.1.0", "Sender taken"))
    }

    fn rcpt(&mut self, address: &super::Address) -> Result<Reply, Reply> {
        let Some(transaction) = &mut self.transaction else { return Err(out_of_order("MAIL comes first")) };
        if address.is_international() && !transaction.mail.utf8 {
            return Err(needs_utf8());
        }
        if transaction.recipients.len() >= self.context.settings.recipients_max {
            // RFC 5321 §4.5.3.1.10: the client sends the rest in another transaction.
            return Err(Reply::new(452, "4.5.3", "Too many recipients (limit recipients_max)"));
        }
        match self.context.recipients.destination(address) {
            Ok(destination) => {
                transaction.recipients.push(Recipient { address: address.as_str().to_owned(), destination });
                Ok(Reply::new(250, "2.1.5", "Recipient taken"))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Reply::new(550, "5.1.1", "There is no such user here").about(address.as_str()))
            }
            Err(error) => Err(self.explain("RCPT", &error).about(address.as_str())),
        }
    }

    fn begin_data(&mut self) -> Result<(), Reply> {
        match &self.transaction {
            // RFC 2033 §4.2.
            Some(Transaction { recipients, .. }) if recipients.is_empty() => {
                return Err(out_of_order("There is no recipient"));
            }
            None => return Err(out_of_order("MAIL comes first")),
            // RFC 3030 §3.
            Some(transaction) if transaction.mail.binary => return Err(out_of_order("BODY=BINARYMIME wants BDAT")),
            Some(_) => {}
        }
        self.begin_message();
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        match transaction.message.take_if(|(incoming, _)| incoming.failure().is_some()) {
            Some((incoming, _)) => {
                Err(incoming.finish().err().map_or_else(too_large, |failure| self.told(failure, "DATA")))
            }
            None => Ok(()),
        }
    }

    /// Makes room for the message in the spool of the first account that can be opened.
    fn begin_message(&mut self) {
        let message_bytes_max = self.message_bytes_max();
        let LmtpSession { context, transaction, lines, client, count, .. } = self;
        let Some(transaction) = transaction else { return };
        *count = count.saturating_add(1);
        let Transaction { mail, recipients, message } = transaction;
        let from = mail.from.as_ref().map_or("", |address| address.as_str());
        let client = client.as_deref().unwrap_or_default();
        let trace =
            Trace::new(&lines.connection, lines.now, client, &context.settings.hostname, from, mail.utf8, *count);
        let fields = match recipients.as_slice() {
            [only] => trace.fields(&only.address, true),
            _ => String::new(),
        };
        let mut incoming = Err(Error::new(ErrorKind::Invalid, "a message for nobody"));
        for recipient in recipients.iter() {
            let account = open_account(&context.store, &recipient.destination.account);
            incoming =
                account.and_then(|account| Incoming::new(&account, &fields, message_bytes_max, mail.envid.is_some()));
            if incoming.is_ok() {
                break;
            }
        }
        *message = Some((incoming.unwrap_or_else(Incoming::failed), trace));
    }

    /// BDAT: its octets come, whatever the answer will be.
    fn begin_chunk(&mut self, octets: u64, last: bool) {
        self.doing = Doing::Chunk { left: octets, last };
        let wants_message =
            self.transaction.as_ref().is_some_and(|all| all.message.is_none() && !all.recipients.is_empty());
        if wants_message {
            self.begin_message();
        }
    }

    fn chunk_is_over(&mut self, last: bool, out: &mut Output) {
        // RFC 2033 §4.3: a reply for each recipient, and none when there is none.
        if last && self.transaction.is_some() {
            self.deliver(Source::Bdat);
            return;
        }
        let message = self.transaction.as_ref().and_then(|transaction| transaction.message.as_ref());
        let reply = match message {
            Some((incoming, _)) => incoming.failure().cloned().unwrap_or(Reply::new(250, "2.0.0", "Taken")),
            None => out_of_order("There is no recipient"),
        };
        self.context.observer.command(&self.lines.connection, "BDAT", reply.is_positive());
        reply.write(out);
    }

    /// The message is complete, and the transaction over.
    fn deliver(&mut self, source: Source) {
        let Some(Transaction { mail, recipients, message }) = self.transaction.take() else { return };
        // Without a message there was no recipient, and nobody is told anything.
        let Some((incoming, trace)) = message else { return };
        match incoming.finish() {
            Ok(Complete { message, digest }) => {
                let octets = message.size();
                let from = mail.from.map_or_else(String::new, |address| address.as_str().to_owned());
                let identity = mail.envid.zip(digest).map(|(envid, digest)| Identity { envid, from, digest });
                let delivery = Delivery::new(message, trace, identity, recipients);
                self.doing = Doing::Delivering(Box::new(delivery), source, octets);
            }
            Err(failure) => {
                for _ in &recipients {
                    self.context.observer.command(&self.lines.connection, source.name(), false);
                }
                let reply = self.told(failure, source.name());
                self.doing = Doing::Refusing(recipients.into_iter(), reply);
            }
        }
    }

    /// What the client hears of a message that cannot be taken; the log hears the rest.
    fn told(&self, failure: Failure, doing: &'static str) -> Reply {
        if let Some(error) = &failure.error {
            self.explain(doing, error);
        }
        failure.reply
    }

    fn answered(
        &mut self,
        recipient: &Recipient,
        result: &Result<(), Error>,
        source: Source,
        octets: u64,
        out: &mut Output,
    ) {
        match result {
            Ok(()) => self.context.observer.delivery(&self.lines.connection, &recipient.destination.account, octets),
            Err(error) => drop(self.explain(source.name(), error)),
        }
        self.context.observer.command(&self.lines.connection, source.name(), result.is_ok());
        reply_of_copy(&recipient.address, result, self.context.settings.over_quota).write(out);
    }

    /// An error in words. The details are for the log.
    fn explain(&self, doing: &'static str, error: &Error) -> Reply {
        if is_ours(error) {
            self.context.observer.error(&self.lines.connection, doing, error);
        }
        of_error(error, self.context.settings.over_quota)
    }
}

/// A message over so many octets is copied to one account a step.
const LARGE_BYTES: u64 = 256 << 10;

impl LineProtocol for LmtpSession {
    fn lines(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn go_on(&mut self, out: &mut Output) -> Option<Step> {
        self.work_on(out)
    }

    fn is_closed(&self) -> bool {
        matches!(self.doing, Doing::Closed)
    }

    /// Nobody logs in.
    fn account(&self) -> Option<&AccountName> {
        None
    }

    fn work(&self) -> Work {
        let recipients = match &self.doing {
            Doing::Delivering(delivery, ..) if delivery.is_to_several() => 2,
            Doing::Data(_) | Doing::Chunk { last: true, .. } => {
                self.transaction.as_ref().map_or(0, |transaction| transaction.recipients.len())
            }
            _ => 0,
        };
        if recipients > 1 { Work::SeveralAccounts } else { Work::Ordinary }
    }
}
