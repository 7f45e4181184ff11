//! The pieces of a FETCH response that every message has. They are on the hottest path of the server: a FETCH of flags over hundreds
//! of thousands of messages is made of these and of nothing else.

use imap_proto::encode;
use model::{Flags, ModSeq, SeqNum, Uid};
use store::{Entry, View};

use crate::imap::write;

/// `* 12 FETCH (`
pub(super) fn begin(out: &mut Vec<u8>, seq: SeqNum) {
    out.extend_from_slice(b"* ");
    encode::number(out, u64::from(seq.get()));
    out.extend_from_slice(b" FETCH (");
}

/// `UID 12`
pub(super) fn uid(out: &mut Vec<u8>, uid: Uid) {
    out.extend_from_slice(b"UID ");
    encode::number(out, u64::from(uid.get()));
}

/// `MODSEQ (12)` (RFC 7162 §7 fetch-mod-resp)
pub(super) fn modseq(out: &mut Vec<u8>, modseq: ModSeq) {
    out.extend_from_slice(b"MODSEQ (");
    encode::number(out, modseq.0);
    out.push(b')');
}

/// Writes `FLAGS (...)`. Neighbours mostly have the same flags, so the last text is kept.
///
/// One is used with one view that does not move: the keyword table is not compared.
#[derive(Default)]
pub(super) struct FlagsText {
    last: Option<(Flags, bool)>,
    text: Vec<u8>,
}

impl FlagsText {
    /// The flags of an entry; `\Recent` is one from `recent_from` on (RFC 3501 §2.3.2).
    pub(super) fn write(&mut self, view: &View, entry: &Entry, recent_from: Option<Uid>, out: &mut Vec<u8>) {
        let key = (entry.flags, recent_from.is_some_and(|from| entry.uid >= from));
        if self.last != Some(key) {
            self.last = Some(key);
            self.text.clear();
            write::flags(&mut self.text, key.0, view.keywords(), key.1);
        }
        out.extend_from_slice(&self.text);
    }
}
