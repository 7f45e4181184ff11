//! Making the files show what the log says.

use model::Result;

use super::account::{FileBox, MboxAccount, Moment, Patience};
use super::names::Since;
use crate::edit::Effects;

impl MboxAccount {
    /// Finishes or undoes what a power cut interrupted in the file of a mailbox; whether its fields can be held against its map.
    pub(super) fn recover(&self, _file_box: &FileBox, _patience: Patience) -> Result<bool> {
        Ok(true)
    }

    /// Makes the file of a mailbox show what the log says, as far as the settings want that now.
    pub(crate) fn write_back(&self, _file_box: &FileBox, _moment: Moment) -> Result<()> {
        Ok(())
    }

    /// A change is durable in the log: the files follow as far as they can at once. What they cannot, [`crate::Store::maintain`] tries again.
    pub(crate) fn follow(&self, effects: &Effects) {
        if effects.names {
            let _later = self.reconcile(Since::Change);
        }
    }
}
