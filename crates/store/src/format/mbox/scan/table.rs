//! All messages of a file, kept up to date as the file grows.

use model::Result;
use platform::File;

use super::read::{Ended, Reader, Settled, not_an_mbox};
use super::{Message, Scanner, Step};

/// The messages of an mbox, in order, and what is needed to go on.
#[derive(Clone, Debug)]
pub struct Table {
    messages: Vec<Message>,
    /// So many of them cannot change when something is added to the file.
    settled: usize,
    /// The scanner behind these.
    scanner: Scanner,
    len: u64,
}

impl Default for Table {
    /// Of an empty file.
    fn default() -> Self {
        Table { messages: Vec::new(), settled: 0, scanner: Scanner::new(0), len: 0 }
    }
}

impl Table {
    /// Reads a whole file. `Invalid`: it is no mbox.
    pub fn read(file: &dyn File) -> Result<Table> {
        let mut table = Table::default();
        table.extend(file)?;
        Ok(table)
    }

    /// The messages, in the order of the file. The first begins where the text before it, if there is some, ends.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Octets of the file.
    pub fn file_bytes(&self) -> u64 {
        self.len
    }

    /// Up to here nothing need be read again when the file has grown.
    pub fn settled_bytes(&self) -> u64 {
        self.scanner.wants()
    }

    /// Reads what was added to the file, and from a few KiB before that on: at most what the last message needs to be complete. Says from
    /// which message on there is something new; the one before the first that is new may have been the last one, and be longer now.
    ///
    /// The caller has made sure that what was there is still the same. `Invalid`: the file has become shorter, or is no mbox; the
    /// table is as it was.
    pub fn extend(&mut self, file: &dyn File) -> Result<usize> {
        let first = self.settled;
        let mut new = Vec::new();
        let ended = Reader::resume(file, self.scanner.clone())?.for_each(&mut |message| new.push(message))?;
        if ended.step == Step::NotMbox {
            return Err(not_an_mbox());
        }
        self.messages.truncate(first);
        self.messages.append(&mut new);
        let Settled { scanner, messages } = ended.settled.unwrap_or_default();
        (self.settled, self.scanner, self.len) = (first + messages, scanner, ended.file_bytes);
        Ok(first)
    }

    pub(super) fn from_parts(messages: Vec<Message>, settled: Option<Settled>, ended: Ended) -> Table {
        let Settled { scanner, messages: settled } = settled.unwrap_or_default();
        Table { messages, settled, scanner: scanner.until(u64::MAX), len: ended.file_bytes }
    }
}
