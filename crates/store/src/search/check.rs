//! Verifying the search index: every checksum of its files, and of each message that its tokens are those of its texts, no more and no
//! fewer.

use std::sync::Arc;

use index::Finding;
use model::{EmailId, ErrorKind, Result};
use search::Frequent;

use super::gather::Gatherer;
use super::parts;
use super::upkeep::SearchIndex;
use crate::Reader;
use crate::account::Inner;

/// So many ids are compared in one go.
const CHECKED_AT_ONCE: u64 = 4096;

impl SearchIndex {
    /// How many messages were compared, and what is wrong. Reads the files, not what is open; what is damaged is made again by the next
    /// [`SearchIndex::maintain`].
    pub(crate) fn check(&self, account: &Arc<Inner>) -> Result<(u64, Vec<Finding>)> {
        let parts::Checked { parts, mut findings } = parts::check(self.disk(), self.log())?;
        let mut reader = Reader::new(Arc::clone(account));
        let mut compared = 0;
        for (file, part) in parts {
            let find = |email_id, what: String| Finding { file: file.clone(), offset: 0, email_id, what };
            let before = findings.len();
            match part.index.digests() {
                Ok(kept) => {
                    let mut ids = kept.keys().copied().peekable();
                    while let Some(first) = ids.peek().copied() {
                        let end = first.saturating_add(CHECKED_AT_ONCE);
                        let frequent = match part.index.frequent(first..end) {
                            Ok(frequent) => frequent,
                            Err(error) if error.kind() == ErrorKind::Corrupt => {
                                findings.push(find(None, error.details().to_owned()));
                                break;
                            }
                            Err(error) => return Err(error),
                        };
                        let mut gatherer = Gatherer::new(first, &Frequent::default());
                        while let Some(id) = ids.next_if(|id| *id < end && !gatherer.is_full()) {
                            gatherer.set_frequent(frequent.get(&id).cloned().unwrap_or_default());
                            gatherer.add(&mut reader, EmailId(id))?;
                        }
                        // Messages that are gone or damaged are not in it; the log's own check knows of them.
                        for (id, fresh) in gatherer.finish()?.digests()? {
                            compared += 1;
                            if kept.get(&id) != Some(&fresh) {
                                let what = "the search index is not the message's".to_owned();
                                findings.push(find(Some(EmailId(id)), what));
                            }
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    findings.push(find(None, error.details().to_owned()));
                }
                Err(error) => return Err(error),
            }
            if findings.len() > before {
                self.discard_file(part.file);
            }
        }
        Ok((compared, findings))
    }
}
