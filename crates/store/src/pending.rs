//! A change on its way to where it is durable, and what waits for that.

use std::fmt;
use std::sync::Arc;

use index::{Ticket, Wake};
use model::{Error, ErrorKind, Result};

use crate::account::Inner;
use crate::again;
use crate::edit::{Edit, Effects};
use crate::format::files::Files;

/// What one try to make a change came to, and the wait for it.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    /// `None` once it was given away.
    value: Option<T>,
    ticket: Ticket,
    /// Files that are to follow.
    files: Option<(Arc<dyn Files>, Effects)>,
}

impl<T> Begun<T> {
    pub(crate) fn new(value: T, ticket: Ticket, files: Option<(Arc<dyn Files>, Effects)>) -> Self {
        Begun { value: Some(value), ticket, files }
    }

    fn settled(value: Option<T>, files: Option<(Arc<dyn Files>, Effects)>) -> Result<T> {
        if let Some((files, effects)) = files {
            files.follow(&effects);
        }
        value.ok_or_else(|| Error::new(ErrorKind::Invalid, "asked after the end"))
    }

    fn poll(&mut self, wake: &Wake) -> Option<Result<T>> {
        let result = self.ticket.poll(wake)?;
        Some(result.and_then(|()| Self::settled(self.value.take(), self.files.take())))
    }

    pub(crate) fn wait(self) -> Result<T> {
        let Begun { value, ticket, files } = self;
        ticket.wait()?;
        Self::settled(value, files)
    }
}

/// A change as it was asked for.
type Change<T> = Box<dyn FnMut(&mut Edit<'_>) -> Result<T> + Send>;

/// How a change of an account that other nodes may write is made anew; see [`crate::again`].
pub(crate) struct Again<T> {
    account: Arc<Inner>,
    change: Change<T>,
    tries: u32,
}

impl<T> Again<T> {
    pub(crate) fn new(account: Arc<Inner>, change: Change<T>) -> Self {
        Again { account, change, tries: 1 }
    }

    /// One more try.
    fn begin(&mut self) -> Result<Begun<T>> {
        self.tries += 1;
        self.account.begin(&mut self.change)
    }
}

/// The answer of a change that is on its way to the disk. Dropping it leaves the change on its way.
#[must_use = "nothing is durable before it was polled to its end"]
pub struct Pending<T> {
    begun: Begun<T>,
    /// `None` for an account that only this node writes.
    again: Option<Again<T>>,
}

impl<T: fmt::Debug> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.begun).finish()
    }
}

impl<T> Pending<T> {
    pub(crate) fn new(begun: Begun<T>, again: Option<Again<T>>) -> Self {
        Pending { begun, again }
    }

    /// The answer, once the change is durable (or an error: nothing was done). `None` while a sync is to be waited for; `wake` is called
    /// when it is worth asking again. May itself write and sync, when nobody else does ([`crate::Store::hand_over_to`]), and wait for the
    /// right to write again, when another node has taken it.
    pub fn poll(&mut self, wake: &Wake) -> Option<Result<T>> {
        let mut result = self.begun.poll(wake)?;
        while let Some(again) = self.again.as_mut().filter(|again| again::is_due(&result, again.tries)) {
            result = match again.begin() {
                Ok(begun) => {
                    self.begun = begun;
                    self.begun.poll(wake)?
                }
                Err(error) => Err(error),
            };
        }
        Some(result)
    }

    /// The answer, when the change is durable.
    pub fn wait(self) -> Result<T> {
        let Pending { begun, mut again } = self;
        let mut result = begun.wait();
        while let Some(again) = again.as_mut().filter(|again| again::is_due(&result, again.tries)) {
            result = again.begin().and_then(Begun::wait);
        }
        result
    }
}
