//! One mailbox: what is new there, what has changed, and how it comes here.

use std::collections::{BTreeMap, VecDeque};

use imap_proto::response::{Code, FetchItem, Response, StatusKind, Value};
use imap_proto::{MailboxArg, encode, read_date_time};
use model::{DateTime, Error, ErrorKind, Keyword, Result, SystemFlag, Uid, UidSet};
use store::import::{Adopted, RemoteMailbox, RemoteMessage};
use store::{Account, FlagNames};

use super::client::{Client, Failure};
use super::names::Job;
use super::{Event, Options, Sink};

/// Messages asked for with one command.
const CHUNK_MESSAGES: usize = 200;
/// Octets asked for with one command, about: so much is made durable together.
const CHUNK_BYTES: u64 = 8 << 20;
/// Commands that are on their way at a time: the server always has the next one.
const COMMANDS_AHEAD: usize = 3;

/// What is known of a message before its bytes come.
struct Coming {
    uid: Uid,
    flags: FlagNames,
    date: Option<DateTime>,
    bytes: u64,
}

/// A mailbox as EXAMINE tells it.
#[derive(Default)]
struct Selected {
    exists: u32,
    uid_validity: Option<model::UidValidity>,
    uid_next: Option<Uid>,
    modseq: u64,
}

/// Brings what is new in one mailbox.
pub fn pull(client: &mut Client, account: &Account, job: &Job, options: &Options, sink: &Sink) -> Result<(), Failure> {
    let selected = examine(client, &job.there)?;
    let Some(uid_validity) = selected.uid_validity else {
        sink.note(job, "the server gives it no UIDVALIDITY: left out");
        return Ok(());
    };
    let origin = options.remote.origin(&job.there.0);
    let mut mailbox = match account.adopt(&job.here, &job.special_use, &origin, uid_validity)? {
        Adopted::Ready(mailbox) => mailbox,
        Adopted::OtherUidValidity => {
            let what = "its UIDVALIDITY is another one than at the last import, so that old and new mail cannot be told apart: \
                        left out; import it into another --mailbox";
            sink.note(job, what);
            return Ok(());
        }
    };
    if job.subscribed {
        account.set_subscribed(&job.here, true)?;
    }
    sink.send(Event::Mailbox { keeps_uids: mailbox.keeps_uids() });
    if mailbox.done() > 0 {
        catch_up(client, account, job, &mut mailbox, &selected, options, sink)?;
    }
    bring_new(client, account, job, &mut mailbox, &selected, options, sink)?;
    mailbox.reached(account, selected.modseq)?;
    Ok(())
}

fn examine(client: &mut Client, mailbox: &MailboxArg) -> Result<Selected, Failure> {
    let mut command = b"EXAMINE ".to_vec();
    name(&mut command, mailbox);
    if client.has("CONDSTORE") || client.has("QRESYNC") {
        command.extend_from_slice(b" (CONDSTORE)");
    }
    let mut selected = Selected::default();
    client.run(&command, &mut |response| {
        match response {
            Response::Exists(count) => selected.exists = count,
            Response::Status(status) if status.kind == StatusKind::Ok => match status.code {
                Some(Code::UidValidity(uid_validity)) => selected.uid_validity = Some(uid_validity),
                Some(Code::UidNext(uid)) => selected.uid_next = Some(uid),
                Some(Code::HighestModSeq(modseq)) => selected.modseq = modseq.0,
                _ => {}
            },
            _ => {}
        }
        Ok(())
    })?;
    Ok(selected)
}

/// RFC 9051 §9 mailbox, as the server itself has written it.
fn name(out: &mut Vec<u8>, mailbox: &MailboxArg) {
    out.push(b'"');
    for byte in &mailbox.0 {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// Flags that have changed since the last run, and what is gone.
fn catch_up(
    client: &mut Client,
    account: &Account,
    job: &Job,
    mailbox: &mut RemoteMailbox,
    selected: &Selected,
    options: &Options,
    sink: &Sink,
) -> Result<(), Failure> {
    if !mailbox.knows_pairs() {
        sink.note(job, "it had too many gaps to remember which message is which: only what is new comes");
        return Ok(());
    }
    let knows_changes = mailbox.modseq() > 0 && selected.modseq > 0;
    if selected.exists > 0 && !(knows_changes && selected.modseq == mailbox.modseq()) {
        let since = match knows_changes {
            true => format!(" (CHANGEDSINCE {})", mailbox.modseq()),
            false => String::new(),
        };
        let command = format!("UID FETCH 1:{} (FLAGS){since}", mailbox.done());
        let mut changed = Vec::new();
        client.run(command.as_bytes(), &mut |response| {
            if let Response::Fetch { items, .. } = response
                && let Some(coming) = coming(&items, &mut |_| {})
            {
                changed.push((coming.uid, coming.flags));
            }
            Ok(())
        })?;
        sink.send(Event::FlagsChanged(mailbox.set_flags(account, changed)?));
    }
    if options.delete {
        let mut present = UidSet::new();
        if selected.exists > 0 {
            let command = format!("UID SEARCH UID 1:{}", mailbox.done());
            client.run(command.as_bytes(), &mut |response| {
                if let Response::Search { numbers, .. } = response {
                    numbers.into_iter().for_each(|number| present.insert(number));
                }
                Ok(())
            })?;
        }
        sink.send(Event::Expunged(mailbox.expunge_all_but(account, &present)?));
    }
    Ok(())
}

fn bring_new(
    client: &mut Client,
    account: &Account,
    job: &Job,
    mailbox: &mut RemoteMailbox,
    selected: &Selected,
    options: &Options,
    sink: &Sink,
) -> Result<(), Failure> {
    let done = mailbox.done();
    if selected.exists == 0
        || selected.uid_next.is_some_and(|next| next.get() <= done.saturating_add(1))
        || done == u32::MAX
    {
        return Ok(());
    }
    let mut new: BTreeMap<Uid, Coming> = BTreeMap::new();
    let command = format!("UID FETCH {}:* (FLAGS INTERNALDATE RFC822.SIZE)", done + 1);
    client.run(command.as_bytes(), &mut |response| {
        if let Response::Fetch { items, .. } = response {
            let found = coming(&items, &mut |what| sink.note(job, what));
            // RFC 9051 §6.4.8: `n:*` names the last message even when its UID is lower.
            if let Some(found) = found.filter(|found| found.uid.get() > done) {
                new.insert(found.uid, found);
            }
        }
        Ok(())
    })?;
    sink.send(Event::Found(new.len() as u64));
    let mut chunks = Chunks { new: new.into_values().collect(), bytes_max: options.message_bytes_max };
    let mut on_the_way: VecDeque<Ordered> = VecDeque::new();
    loop {
        while on_the_way.len() < COMMANDS_AHEAD
            && let Some(chunk) = chunks.next(&mut |message| {
                let what = format!(
                    "UID {}: larger than the {} octets of message_bytes_max",
                    message.uid, options.message_bytes_max
                );
                sink.skip(job, what);
            })
        {
            let tag = client.send(&fetch(chunk.iter().map(|message| message.uid)))?;
            on_the_way.push_back(Ordered { tag, chunk, messages: Vec::new() });
        }
        let Some(tag) = on_the_way.front().map(|first| first.tag.clone()) else { return Ok(()) };
        let result = client.finish(&tag, &mut |response| take(account, on_the_way.make_contiguous(), response));
        let Some(mut ordered) = on_the_way.pop_front() else { return Ok(()) };
        if let Err(Failure::Refused(text)) = result {
            // Some servers refuse all because of one that is damaged: what is left is asked for one by one, when nothing else is on its way.
            while let Some(tag) = on_the_way.front().map(|next| next.tag.clone()) {
                let end = client.finish(&tag, &mut |response| take(account, on_the_way.make_contiguous(), response));
                if let Err(Failure::Lost(error)) = end {
                    return Err(error.into());
                }
                let next = on_the_way.pop_front();
                next.into_iter().for_each(|next| ordered.join(next));
            }
            one_by_one(client, account, &mut ordered, &text, job, sink)?;
        } else {
            result?;
        }
        ordered.store(account, mailbox, job, sink)?;
        if sink.is_cancelled() {
            return Ok(());
        }
    }
}

fn one_by_one(
    client: &mut Client,
    account: &Account,
    ordered: &mut Ordered,
    why: &str,
    job: &Job,
    sink: &Sink,
) -> Result<(), Failure> {
    for message in std::mem::take(&mut ordered.chunk) {
        let uid = message.uid;
        ordered.chunk = vec![message];
        let one = std::slice::from_mut(ordered);
        match client.run(&fetch([uid].into_iter()), &mut |response| take(account, one, response)) {
            // Or it was expunged meanwhile.
            Ok(_) => {}
            Err(Failure::Refused(_)) => sink.skip(job, format!("UID {uid}: the other server refuses it: {why}")),
            Err(lost) => return Err(lost),
        }
    }
    ordered.chunk.clear();
    Ok(())
}

fn fetch(uids: impl Iterator<Item = Uid>) -> Vec<u8> {
    let mut command = b"UID FETCH ".to_vec();
    let set: UidSet = uids.collect();
    encode::num_set(&mut command, &set);
    command.extend_from_slice(b" (BODY.PEEK[])");
    command
}

/// Cuts what is new into commands.
struct Chunks {
    new: VecDeque<Coming>,
    bytes_max: u64,
}

impl Chunks {
    fn next(&mut self, too_large: &mut dyn FnMut(&Coming)) -> Option<Vec<Coming>> {
        let (mut chunk, mut bytes) = (Vec::new(), 0u64);
        while chunk.len() < CHUNK_MESSAGES && bytes < CHUNK_BYTES {
            let Some(message) = self.new.pop_front() else { break };
            if message.bytes > self.bytes_max {
                too_large(&message);
                continue;
            }
            bytes = bytes.saturating_add(message.bytes);
            chunk.push(message);
        }
        (!chunk.is_empty()).then_some(chunk)
    }
}

/// The messages that one command asks for.
struct Ordered {
    tag: String,
    /// What has not come yet.
    chunk: Vec<Coming>,
    messages: Vec<RemoteMessage>,
}

/// Takes a message of any command that is on its way: a server may begin with one before it has ended another (RFC 9051 §5.5).
fn take(account: &Account, on_the_way: &mut [Ordered], response: Response) -> Result<()> {
    let Response::Fetch { items, .. } = response else { return Ok(()) };
    let item = |name: &str| items.iter().find(|item| item.name == name);
    let uid = item("UID").and_then(|item| item.value.number()).and_then(|uid| Uid::new(u32::try_from(uid).ok()?));
    let (Some(uid), Some(body)) = (uid, item("BODY").and_then(|item| item.value.octets())) else { return Ok(()) };
    for ordered in on_the_way {
        let Some(at) = ordered.chunk.iter().position(|coming| coming.uid == uid) else { continue };
        let coming = ordered.chunk.remove(at);
        let mut writer = account.message_writer()?;
        writer.write(body)?;
        let message = writer.finish()?;
        let internal_date = coming.date.unwrap_or(DateTime::utc(0));
        ordered.messages.push(RemoteMessage { uid, message, flags: coming.flags, internal_date, save_date: None });
        break;
    }
    Ok(())
}

impl Ordered {
    /// What another command has brought and has not, too.
    fn join(&mut self, mut other: Ordered) {
        self.chunk.append(&mut other.chunk);
        self.messages.append(&mut other.messages);
    }

    /// Makes durable what has come. What has not was expunged meanwhile.
    fn store(mut self, account: &Account, mailbox: &mut RemoteMailbox, job: &Job, sink: &Sink) -> Result<(), Failure> {
        self.messages.sort_unstable_by_key(|message| message.uid);
        let bytes: u64 = self.messages.iter().map(|message| message.message.size()).sum();
        let (count, missing) = (self.messages.len() as u64, self.chunk.len() as u64);
        let done = self.chunk.iter().map(|coming| coming.uid.get()).max().unwrap_or(0);
        let added = mailbox.add(account, self.messages, done)?;
        for uid in added.lost_keywords {
            sink.note(
                job,
                format!("UID {uid} lost a keyword: a mailbox has {} at most", model::limits::KEYWORDS_PER_MAILBOX_MAX),
            );
        }
        if added.other_uids > 0 {
            sink.note(job, format!("{} messages have other UIDs here: theirs were taken", added.other_uids));
        }
        sink.send(Event::Imported { messages: count, bytes, missing });
        Ok(())
    }
}

/// What FETCH says of a message; `None` without a UID. What cannot be kept is told to `note`.
fn coming(items: &[FetchItem], note: &mut dyn FnMut(String)) -> Option<Coming> {
    let item = |name: &str| items.iter().find(|item| item.name == name).map(|item| &item.value);
    let uid = item("UID").and_then(Value::number).and_then(|uid| Uid::new(u32::try_from(uid).ok()?))?;
    let mut flags = FlagNames::default();
    for value in item("FLAGS").and_then(Value::list).unwrap_or_default() {
        let Value::Atom(name) = value else { continue };
        if let Some(flag) = SystemFlag::parse(name) {
            flags.system.push(flag);
        } else if name.starts_with('\\') {
            // \Recent is nobody's to set (RFC 3501 §2.3.2).
            if !name.eq_ignore_ascii_case("\\Recent") {
                note(format!("UID {uid}: the flag {name} is not known here"));
            }
        } else {
            match Keyword::new(name) {
                Ok(keyword) => flags.keywords.push(keyword),
                Err(error) => note(format!("UID {uid}: a keyword is not kept: {error}")),
            }
        }
    }
    let date = item("INTERNALDATE").and_then(Value::octets).and_then(read_date_time);
    let bytes = item("RFC822.SIZE").and_then(Value::number).unwrap_or(0);
    Some(Coming { uid, flags, date, bytes })
}

/// For a mailbox that could not be examined.
pub fn describe(failure: Failure) -> Error {
    match failure {
        Failure::Refused(text) => Error::new(ErrorKind::NotPermitted, format!("the other server refuses: {text}")),
        Failure::Lost(error) => error,
    }
}
