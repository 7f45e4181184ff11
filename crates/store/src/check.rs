//! Verifying an account: every record and checksum of its log, and everything that was derived from its messages.

use std::collections::BTreeSet;

use index::Finding;
use model::{AccountName, EmailId, ErrorKind, Result};

use crate::account::Account;
use crate::derived::{self, column};
use crate::store::Store;

/// What [`Account::check`] looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Messages whose octets were verified.
    pub messages: u64,
    /// Records of the log that were verified.
    pub records: u64,
    /// Bytes of files read.
    pub bytes: u64,
    /// Messages whose derived data were compared with a fresh parse.
    pub derived: u64,
    /// Messages whose texts were compared with what the search index has of them.
    pub indexed: u64,
    /// What is wrong, with file and offset; empty when all is well.
    pub findings: Vec<Finding>,
}

impl Account {
    /// Reads everything and verifies it. Sessions go on meanwhile.
    ///
    /// Of mailboxes in files of other programs the log is brought up to date first; then each file is held against it.
    pub fn check(&self) -> Result<CheckReport> {
        let files = self.inner.files().map_or_else(|| Ok(Vec::new()), |files| files.check())?;
        let log = self.inner.log().check()?;
        let mut report = CheckReport {
            messages: log.messages,
            records: log.records,
            bytes: log.bytes,
            derived: 0,
            indexed: 0,
            findings: files,
        };
        report.findings.extend(log.findings);
        // What was damaged already when the account was opened may have been left out since.
        for finding in self.inner.log().damage() {
            if !report.findings.contains(&finding) {
                report.findings.push(finding);
            }
        }
        self.check_derived(&mut report)?;
        let (indexed, findings) = self.inner.search().check(&self.inner)?;
        report.indexed = indexed;
        report.findings.extend(findings);
        Ok(report)
    }

    /// Compares what is kept beside the messages with what they say.
    fn check_derived(&self, report: &mut CheckReport) -> Result<()> {
        let state = self.inner.state();
        let ids: BTreeSet<EmailId> =
            state.mailboxes().flat_map(|mailbox| mailbox.all_rows().map(|(_, row)| row.email_id)).collect();
        let known_damaged: BTreeSet<EmailId> = report.findings.iter().filter_map(|finding| finding.email_id).collect();
        let (mut kept, mut fresh) = (self.inner.log().reader(), self.inner.log().reader());
        for id in ids.difference(&known_damaged) {
            match compare(&mut kept, &mut fresh, *id) {
                Ok(None) => report.derived += 1,
                Ok(Some(what)) => report.findings.push(self.finding(*id, what)),
                // Expunged since the state was taken.
                Err(error) if error.kind() == ErrorKind::Expunged => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    report.findings.push(self.finding(*id, error.details()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn finding(&self, id: EmailId, what: impl Into<String>) -> Finding {
        Finding { file: self.inner.log().dir().to_owned(), offset: 0, email_id: Some(id), what: what.into() }
    }
}

/// What is different, if anything is.
fn compare(kept: &mut index::Reader, fresh: &mut index::Reader, id: EmailId) -> Result<Option<&'static str>> {
    let len = u64::from(fresh.info(id)?.len);
    let columns = derived::derive(len, &mut |range, sink| {
        fresh.range(id, range, &mut |piece| {
            sink(piece);
            Ok(())
        })
    })?;
    for (number, what) in [
        (column::STRUCTURE, "the kept structure is not the message's"),
        (column::ENVELOPE, "the kept ENVELOPE is not the message's"),
        (column::BODY_STRUCTURE, "the kept BODYSTRUCTURE is not the message's"),
        (column::PREVIEW, "the kept preview is not the message's"),
        (column::SENT_DAY, "the kept day of the Date field is not the message's"),
    ] {
        if Some(kept.derived(id, number)?) != columns.get(number).map(Vec::as_slice) {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

impl Store {
    /// Removes everything of an account that can be derived (`index/`) and makes it anew from the log. What is derived from messages
    /// is made by the next calls of [`Store::maintain`]. [`ErrorKind::InUse`] while somebody has the account open.
    pub fn repair(&self, name: &AccountName) -> Result<()> {
        self.with_closed(name, |dir| index::remove_index(self.env(), dir))?;
        let account = self.account(name)?;
        account.inner.log().checkpoint()
    }
}
