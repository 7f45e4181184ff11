//! A message goes to its recipients: copies become durable side by side, replies are given in the order of the recipients.
//!
//! Invariant: no more than [`COPIES_AT_ONCE`] copies wait for the disk, so that what they hold does not grow with their number.

use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use model::{Error, ErrorKind, MailboxId, MailboxName, Result};
use sha2::{Digest, Sha256};
use store::{Account, Appended, DeliveryId, FlagNames, NewMessage, Pending, PendingMessage, Store};

use super::reply::{Reply, of_error};
use super::trace::Trace;
use super::{Destination, OverQuota, Place};
use crate::{Waker, open_account};

/// Copies that wait for the disk at the same time.
const COPIES_AT_ONCE: usize = 32;

/// Octets that are copied at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Whom a message is for.
pub(super) struct Recipient {
    /// The address, as the client wrote it.
    pub(super) address: String,
    pub(super) destination: Destination,
}

/// A message and those who have not got it yet.
pub(super) struct Delivery {
    message: Message,
    trace: Trace,
    /// What tells this delivery from others, if the client has said its id.
    identity: Option<Identity>,
    /// Who comes next.
    rest: VecDeque<Recipient>,
    /// Who is not answered yet, in order.
    begun: VecDeque<(Recipient, Copy)>,
}

enum Message {
    /// For one recipient; its fields are on top. `None` once it was given away.
    Whole(Option<PendingMessage>),
    /// For several, without the fields on top.
    Shared(PendingMessage),
}

enum Copy {
    Waiting(Pending<Option<Appended>>),
    Done(Result<()>),
}

/// How far a delivery is.
pub(super) enum Progress {
    /// The next one is answered.
    Answered(Recipient, Result<()>),
    /// A copy was begun; there is more to do.
    Busy,
    /// Nothing can be done until a copy is durable.
    Waiting,
    /// Everybody is answered.
    Over,
}

impl Delivery {
    /// Of `message`, which has its fields on top if there is one recipient only.
    pub(super) fn new(
        message: PendingMessage,
        trace: Trace,
        identity: Option<Identity>,
        recipients: Vec<Recipient>,
    ) -> Delivery {
        let message = match recipients.len() {
            1 => Message::Whole(Some(message)),
            _ => Message::Shared(message),
        };
        Delivery { message, trace, identity, rest: recipients.into(), begun: VecDeque::new() }
    }

    /// Whether several accounts are to be written.
    pub(super) fn is_to_several(&self) -> bool {
        self.rest.len() + self.begun.len() > 1
    }

    /// One piece of work. `waker` is called when, after [`Progress::Waiting`], there is something to do.
    pub(super) fn go_on(&mut self, store: &Store, waker: &Waker) -> Progress {
        let waiting = self.begun.iter().filter(|(_, copy)| matches!(copy, Copy::Waiting(_))).count();
        if waiting < COPIES_AT_ONCE
            && let Some(recipient) = self.rest.pop_front()
        {
            let copy = match self.begin(store, &recipient) {
                Ok(pending) => Copy::Waiting(pending),
                Err(error) => Copy::Done(Err(error)),
            };
            self.begun.push_back((recipient, copy));
            return Progress::Busy;
        }
        for (_, copy) in &mut self.begun {
            if let Copy::Waiting(pending) = copy
                && let Some(result) = pending.poll(waker)
            {
                *copy = Copy::Done(result.map(|_| ()));
            }
        }
        match self.begun.pop_front() {
            Some((recipient, Copy::Done(result))) => Progress::Answered(recipient, result),
            Some(first) => {
                self.begun.push_front(first);
                let waiting = self.begun.iter().filter(|(_, copy)| matches!(copy, Copy::Waiting(_))).count();
                match waiting < COPIES_AT_ONCE && !self.rest.is_empty() {
                    true => Progress::Busy,
                    false => Progress::Waiting,
                }
            }
            None => Progress::Over,
        }
    }

    fn begin(&mut self, store: &Store, recipient: &Recipient) -> Result<Pending<Option<Appended>>> {
        let account = open_account(store, &recipient.destination.account)?;
        let mailbox = mailbox(&account, &recipient.destination.place)?;
        account.before_adding(mailbox);
        let message = match &mut self.message {
            Message::Whole(message) => message
                .take()
                .ok_or_else(|| Error::new(ErrorKind::Invalid, "a message for one was given away twice"))?,
            Message::Shared(shared) => copy_of(shared, &account, &self.trace.fields(&recipient.address, false))?,
        };
        let message = NewMessage { message, flags: FlagNames::default(), internal_date: None };
        match &self.identity {
            None => account.begin(move |edit| edit.append(mailbox, slice::from_ref(&message)).map(Some)),
            Some(identity) => {
                let id = identity.of(&recipient.address);
                account.begin(move |edit| edit.deliver(mailbox, &message, id))
            }
        }
    }
}

/// What tells a delivery from others: the id that the sender gave it (RFC 3461 §4.4), who that is, and the octets. A client that repeats a
/// delivery says all of it again; one that has another message under an old id does not.
pub(super) struct Identity {
    pub(super) envid: String,
    pub(super) from: String,
    pub(super) digest: [u8; 32],
}

impl Identity {
    fn of(&self, recipient: &str) -> DeliveryId {
        let mut digest = Sha256::new();
        // No part has a NUL.
        for part in [self.envid.as_bytes(), self.from.as_bytes(), recipient.as_bytes()] {
            digest.update(part);
            digest.update([0]);
        }
        digest.update(self.digest);
        let digest: [u8; 32] = digest.finalize().into();
        DeliveryId(digest.first_chunk().copied().unwrap_or_default())
    }
}

/// The mailbox of an account.
fn mailbox(account: &Account, place: &Place) -> Result<MailboxId> {
    match place {
        Place::Inbox => account.mailbox(&MailboxName::inbox()),
        Place::Exactly(name) => account.mailbox(name),
        Place::IfThere(name) => match account.mailbox(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => account.mailbox(&MailboxName::inbox()),
            found => found,
        },
    }
}

fn copy_of(shared: &PendingMessage, account: &Arc<Account>, fields: &str) -> Result<PendingMessage> {
    let mut writer = account.message_writer()?;
    writer.write(fields.as_bytes())?;
    let mut at = 0;
    let mut piece = Vec::new();
    while at < shared.size() {
        let octets = usize::try_from(shared.size() - at).unwrap_or(usize::MAX).min(PIECE_BYTES);
        piece.resize(octets, 0);
        shared.read_at(at, &mut piece)?;
        writer.write(&piece)?;
        at += octets as u64;
    }
    writer.finish()
}

/// What to say of a copy.
pub(super) fn reply(address: &str, result: &Result<()>, over_quota: OverQuota) -> Reply {
    match result {
        Ok(()) => Reply::new(250, "2.1.5", format!("<{address}> Delivered")),
        Err(error) => of_error(error, over_quota).about(address),
    }
}
