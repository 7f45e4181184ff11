//! What is found to be wrong with the files of one mailbox.

use std::path::Path;

use index::Finding;
use model::EmailId;

/// Findings of one mailbox at most: files that are other ones altogether are not worth more.
const FINDINGS_MAX: usize = 1000;

/// Findings of one file, or of the files of one directory.
pub(crate) struct Findings<'f> {
    path: &'f Path,
    findings: &'f mut Vec<Finding>,
    left: usize,
}

impl<'f> Findings<'f> {
    /// None yet; they are added to `findings`.
    pub(crate) fn new(path: &'f Path, findings: &'f mut Vec<Finding>) -> Self {
        Findings { path, findings, left: FINDINGS_MAX }
    }

    /// The file or directory.
    pub(crate) fn path(&self) -> &'f Path {
        self.path
    }

    /// Something is wrong with it.
    pub(crate) fn add(&mut self, offset: u64, email_id: Option<EmailId>, what: impl Into<String>) {
        self.add_at(self.path, offset, email_id, what);
    }

    /// Something is wrong with a file in it.
    pub(crate) fn add_at(&mut self, path: &Path, offset: u64, email_id: Option<EmailId>, what: impl Into<String>) {
        if self.left > 0 {
            self.left -= 1;
            self.findings.push(Finding { file: path.to_owned(), offset, email_id, what: what.into() });
        }
    }
}
