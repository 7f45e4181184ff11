//! The QRESYNC parameter of SELECT (RFC 7162 §3.2.5): what has happened since the client was last here, in pieces.

use std::collections::VecDeque;

use imap_proto::command::{QResync, SeqMatchData};
use model::{ModSeq, Result, SeqNum, Uid, UidSet};
use store::{Account, View};

use crate::Output;
use crate::imap::reply::{Done, Progress, Running, Stop};
use crate::imap::state::{Selected, Session};
use crate::imap::updates::{begin_at, vanished_line};
use crate::imap::write::FlagsLine;

/// What is still to be said.
pub(crate) struct Resync {
    vanished: VecDeque<(u32, u32)>,
    seqs: VecDeque<(u32, u32)>,
    since: ModSeq,
    done: Done,
}

/// UID ranges in one VANISHED line.
const RANGES_PER_LINE: usize = 500;

impl Resync {
    /// `None` when the client's knowledge is of another life of the mailbox: then the rest is ignored (RFC 7162 §3.2.5).
    pub fn new(account: &Account, selected: &Selected, client: &QResync, done: Done) -> Result<Option<Self>> {
        let view = &selected.view;
        if client.uidvalidity != view.uid_validity() {
            return Ok(None);
        }
        // RFC 7162 §3.2.5.1: no list of UIDs stands for 1:<UIDNEXT - 1>.
        let last = view.uid_next().map_or(Uid::LAST.get(), |next| next.get().saturating_sub(1));
        let every = if last == 0 { UidSet::new() } else { UidSet::range(1, last) };
        let known = client.known_uids.as_ref().map_or(every.clone(), |uids| uids.intersection(&every));
        let matched = client.seq_match.as_ref().map_or(0, |data| last_match(view, data));
        let asked = known.difference(&UidSet::range(0, matched));
        let vanished = account.vanished_since(selected.mailbox, client.modseq, &asked)?;
        Ok(Some(Resync {
            vanished: vanished.ranges().iter().copied().collect(),
            seqs: view.seqs_of(&known).ranges().iter().copied().collect(),
            since: client.modseq,
            done,
        }))
    }
}

/// The last UID of which the client knows the right sequence number: it has heard of every expunge up to there (RFC 7162 §3.2.5.2).
fn last_match(view: &View, data: &SeqMatchData) -> u32 {
    let pairs = data.sequence.iter().zip(data.uids.iter());
    pairs
        .take_while(|(seq, uid)| {
            let entry = SeqNum::new(*seq).and_then(|seq| view.entry(seq));
            entry.is_some_and(|entry| entry.uid.get() == *uid)
        })
        .last()
        .map_or(0, |(_, uid)| uid)
}

impl Running for Resync {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        let recent_from = session.recent_from();
        let selected = session.selected()?;
        while !self.vanished.is_empty() {
            if out.is_full() {
                return Ok(Progress::More);
            }
            let take = self.vanished.len().min(RANGES_PER_LINE);
            let line: Vec<(u32, u32)> = self.vanished.drain(..take).collect();
            vanished_line(out, &line, true);
        }
        let what = FlagsLine { uid: true, flags: true, modseq: true, recent_from };
        let mut rest = None;
        for entry in selected.view.flags(self.seqs.iter().copied()) {
            if out.is_full() {
                rest = Some(entry.seq);
                break;
            }
            if entry.modseq > self.since {
                what.write(out.bytes_mut(), &entry, selected.view.keywords());
            }
        }
        if let Some(seq) = rest {
            begin_at(&mut self.seqs, seq);
            return Ok(Progress::More);
        }
        Ok(Progress::Done(self.done.clone()))
    }
}
