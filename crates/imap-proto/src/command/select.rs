//! SELECT and EXAMINE with their parameters (RFC 9051 §6.3.2, RFC 7162 §3.1.8 and §3.2.5).

use model::{ModSeq, NumSet, UidValidity};

use super::parse::sp_mailbox;
use super::write::CommandWriter;
use crate::MailboxArg;
use crate::encode::num_set;
use crate::error::Parse;
use crate::scan::Scan;
use crate::sequence::known_set;

/// SELECT or EXAMINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// The mailbox.
    pub mailbox: MailboxArg,
    /// `(CONDSTORE)`
    pub condstore: bool,
    /// `(QRESYNC (...))`
    pub qresync: Option<QResync>,
}

/// What a client remembers of a mailbox (RFC 7162 §3.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QResync {
    /// The last known UIDVALIDITY.
    pub uidvalidity: UidValidity,
    /// The last known mod-sequence; positive.
    pub modseq: ModSeq,
    /// The known UIDs; `None` is all that may be.
    pub known_uids: Option<NumSet>,
    /// Message sequence numbers and the UIDs that they had (§3.2.5.2).
    pub seq_match: Option<SeqMatchData>,
}

/// Corresponding message sequence numbers and UIDs, both rising (RFC 7162 §3.2.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeqMatchData {
    /// The sequence numbers.
    pub sequence: NumSet,
    /// The UIDs; as many.
    pub uids: NumSet,
}

// RFC 9051 §9 select = "SELECT" SP mailbox; RFC 4466 §2.4 adds [SP "(" select-param *(SP select-param) ")"]
pub(super) fn select(scan: &mut Scan) -> Parse<Select> {
    let mut select = Select { mailbox: sp_mailbox(scan)?, condstore: false, qresync: None };
    if !scan.more_items() {
        return Ok(select);
    }
    scan.parenthesised(|scan| {
        loop {
            let before = scan.clone();
            match scan.word("CONDSTORE or QRESYNC")?.as_str() {
                "CONDSTORE" if !select.condstore => select.condstore = true,
                "QRESYNC" if select.qresync.is_none() => {
                    scan.sp()?;
                    select.qresync = Some(scan.parenthesised(qresync)?);
                }
                _ => return before.error("CONDSTORE or QRESYNC, each once"),
            }
            if !scan.more_items() {
                return Ok(());
            }
        }
    })?;
    Ok(select)
}

// RFC 7162 §7 select-param =/ "QRESYNC" SP "(" uidvalidity SP mod-sequence-value [SP known-uids] [SP seq-match-data] ")"
fn qresync(scan: &mut Scan) -> Parse<QResync> {
    let before = scan.clone();
    let uidvalidity = UidValidity::new(scan.nz_number()?.get());
    let Some(uidvalidity) = uidvalidity else { return before.error("a UIDVALIDITY") };
    scan.sp()?;
    let before = scan.clone();
    let modseq = ModSeq(scan.number64()?);
    if modseq.0 == 0 {
        return before.error("a mod-sequence above zero");
    }
    let mut qresync = QResync { uidvalidity, modseq, known_uids: None, seq_match: None };
    if scan.more_items() && scan.peek() != Some(b'(') {
        qresync.known_uids = Some(known_set(scan)?);
        scan.skip_spaces();
    }
    if scan.peek() == Some(b'(') {
        qresync.seq_match = Some(scan.parenthesised(seq_match_data)?);
    }
    Ok(qresync)
}

// RFC 7162 §7 seq-match-data = "(" known-sequence-set SP known-uid-set ")"
fn seq_match_data(scan: &mut Scan) -> Parse<SeqMatchData> {
    let before = scan.clone();
    let sequence = known_set(scan)?;
    scan.sp()?;
    let uids = known_set(scan)?;
    if sequence.len() != uids.len() {
        return before.error("as many sequence numbers as UIDs");
    }
    Ok(SeqMatchData { sequence, uids })
}

impl Select {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        writer.raw(" ");
        writer.astring(&self.mailbox.0);
        match (&self.qresync, self.condstore) {
            (None, false) => {}
            (None, true) => writer.raw(" (CONDSTORE)"),
            (Some(qresync), condstore) => {
                writer.raw(if condstore { " (CONDSTORE QRESYNC (" } else { " (QRESYNC (" });
                writer.number(u64::from(qresync.uidvalidity.get()));
                writer.raw(" ");
                writer.number(qresync.modseq.0);
                if let Some(uids) = &qresync.known_uids {
                    writer.raw(" ");
                    num_set(&mut writer.out, uids);
                }
                if let Some(seq_match) = &qresync.seq_match {
                    writer.raw(" (");
                    num_set(&mut writer.out, &seq_match.sequence);
                    writer.raw(" ");
                    num_set(&mut writer.out, &seq_match.uids);
                    writer.raw(")");
                }
                writer.raw("))");
            }
        }
    }
}
