//! Finding the entry of a message: mostly the one behind that of the message before.

use index::{Mailbox, Row, Rows};
use model::{EmailId, Uid};

/// Finds entries by their messages, each once.
pub(super) struct RowFinder<'m> {
    mailbox: &'m Mailbox,
    rows: Rows<'m>,
    /// The entry that is looked at first.
    next: Option<Row>,
    /// The last entry that was found while all came in order.
    last: Option<Uid>,
    /// All entries by message, once one was not where it was looked for; and whether it was found.
    sorted: Option<Vec<(EmailId, Uid, bool)>>,
}

impl<'m> RowFinder<'m> {
    pub(super) fn new(mailbox: &'m Mailbox) -> Self {
        let mut rows = mailbox.all_rows();
        let next = rows.next().map(|(_, row)| row);
        RowFinder { mailbox, rows, next, last: None, sorted: None }
    }

    /// An entry of the message. Of several the first that was not found before; when all were, one of them.
    pub(super) fn find(&mut self, id: EmailId) -> Option<Row> {
        if let Some(row) = self.next.filter(|row| row.email_id == id)
            && self.is_new(&row)
        {
            self.next = self.rows.next().map(|(_, row)| row);
            return Some(row);
        }
        let (mailbox, last) = (self.mailbox, self.last);
        let sorted = self.sorted.get_or_insert_with(|| {
            let rows = mailbox.all_rows().map(|(_, row)| (row.email_id, row.uid, Some(row.uid) <= last));
            let mut sorted: Vec<_> = rows.collect();
            sorted.sort_unstable();
            sorted
        });
        let first = sorted.partition_point(|(other, ..)| *other < id);
        let same = || sorted.iter().skip(first).take_while(|(other, ..)| *other == id);
        let at = first + same().position(|(.., is_found)| !is_found).unwrap_or(0);
        let found = sorted.get_mut(at).filter(|(other, ..)| *other == id)?;
        found.2 = true;
        let (seq, row) = mailbox.row_of(found.1)?;
        self.rows = mailbox.rows(seq.get()..u32::MAX);
        self.next = self.rows.next().map(|(_, row)| row);
        Some(row)
    }

    /// Whether the entry was not found before; now it is.
    fn is_new(&mut self, row: &Row) -> bool {
        let Some(sorted) = &mut self.sorted else {
            self.last = Some(row.uid);
            return true;
        };
        // Sorted by message and UID: a message has each UID once.
        let at = sorted.partition_point(|(id, uid, _)| (*id, *uid) < (row.email_id, row.uid));
        sorted.get_mut(at).is_none_or(|(.., is_found)| !std::mem::replace(is_found, true))
    }
}
