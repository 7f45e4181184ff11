//! Finding the entry of a message: mostly the one behind that of the message before.

use index::{Mailbox, Row, Rows};
use model::{EmailId, Uid};

/// Finds entries by their messages, each once.
pub(super) struct RowFinder<'m> {
    mailbox: &'m Mailbox,
    rows: Rows<'m>,
    /// The entry that is looked at first.
    next: Option<Row>,
    /// All entries by message, once one was not where it was looked for; and whether it was found.
    sorted: Option<Vec<(EmailId, Uid)>>,
}

impl<'m> RowFinder<'m> {
    pub(super) fn new(mailbox: &'m Mailbox) -> Self {
        let mut rows = mailbox.all_rows();
        let next = rows.next().map(|(_, row)| row);
        RowFinder { mailbox, rows, next, sorted: None }
    }

    /// An entry of the message. Of several the first that was not found before, as far as they come in order.
    pub(super) fn find(&mut self, id: EmailId) -> Option<Row> {
        if let Some(row) = self.next.filter(|row| row.email_id == id) {
            self.next = self.rows.next().map(|(_, row)| row);
            return Some(row);
        }
        let mailbox = self.mailbox;
        let sorted = self.sorted.get_or_insert_with(|| {
            let mut sorted: Vec<_> = mailbox.all_rows().map(|(_, row)| (row.email_id, row.uid)).collect();
            sorted.sort_unstable();
            sorted
        });
        let at = sorted.partition_point(|(other, _)| *other < id);
        let (_, uid) = *sorted.get(at).filter(|(other, _)| *other == id)?;
        let (seq, row) = mailbox.row_of(uid)?;
        self.rows = mailbox.rows(seq.get()..u32::MAX);
        self.next = self.rows.next().map(|(_, row)| row);
        Some(row)
    }
}
