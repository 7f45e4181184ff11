//! Random changes of a mailbox beside a plain list of rows, with views of earlier moments.

use std::sync::Arc;

use model::{DateTime, EmailId, Flags, MailboxId, MailboxName, ModSeq, NumSet, SystemFlag, Uid, UidSet};
use proptest::prelude::*;

use super::chunk::Summary;
use super::columns::Row;
use super::{Frame, Mailbox, State};
use crate::record::Event;

/// One transaction.
#[derive(Clone, Debug)]
enum Change {
    Append(u32),
    /// Flags for the UIDs whose number has this rest by this divisor.
    Flags(u32, u32, u8),
    Expunge(u32, u32),
    /// Keep the present mailbox, to be compared with a later one.
    Look,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (1u32..90).prop_map(Change::Append),
        (0u32..700).prop_map(Change::Append),
        (1u32..40, 0u32..40, 0u8..32).prop_map(|(by, rest, flags)| Change::Flags(by, rest, flags)),
        (1u32..40, 0u32..40).prop_map(|(by, rest)| Change::Expunge(by, rest)),
        Just(Change::Look),
    ]
}

fn picked(rows: &[Row], by: u32, rest: u32) -> UidSet {
    rows.iter().map(|row| row.uid.get()).filter(|uid| uid % by == rest % by).collect()
}

fn uids(rows: &[Row]) -> UidSet {
    rows.iter().map(|row| row.uid).collect()
}

/// That everything that can be asked of the mailbox is what the rows say.
fn check(mailbox: &Mailbox, rows: &[Row]) {
    assert!(mailbox.all_rows().map(|(_, row)| row).eq(rows.iter().copied()));
    assert!(mailbox.email_ids().eq(rows.iter().map(|row| row.email_id)));
    let mut before = 0;
    for slot in &mailbox.slots {
        let found = Summary::of(&slot.chunk);
        assert!(slot.summary.modseq_last >= found.modseq_last);
        assert_eq!(slot.summary, Summary { modseq_last: slot.summary.modseq_last, ..found });
        assert!(slot.summary.rows > 0 && slot.before == before);
        before += slot.summary.rows;
    }
    let count = |flag| rows.iter().filter(|row| row.flags.has(flag)).count() as u32;
    let deleted = count(SystemFlag::Deleted);
    let totals = (mailbox.exists, mailbox.exists - mailbox.unseen, mailbox.deleted);
    assert_eq!(totals, (rows.len() as u32, count(SystemFlag::Seen), deleted));
    assert_eq!(mailbox.deleted_uids().len(), u64::from(deleted));
    assert_eq!(mailbox.all_uids(), uids(rows));
}

/// That sets of UIDs and of sequence numbers are translated as the rows say; also UIDs and numbers that are not there.
fn check_sets(mailbox: &Mailbox, rows: &[Row], by: u32, rest: u32) {
    let some: UidSet = (1..mailbox.uidnext as u32 + 3).filter(|uid| uid % by == rest % by).collect();
    let there = || rows.iter().enumerate().filter(|(_, row)| some.contains_uid(row.uid));
    assert_eq!(mailbox.existing(&some), there().map(|(_, row)| row.uid).collect());
    let seqs: NumSet = there().map(|(at, _)| at as u32 + 1).collect();
    assert_eq!(mailbox.seqs_of(&some), seqs);
    assert!(
        mailbox.rows_of(&some).map(|(seq, row)| (seq.get() as usize - 1, row)).eq(there().map(|(at, row)| (at, *row)))
    );
    assert_eq!(mailbox.uids_of(&seqs.union(&NumSet::range(rows.len() as u32 + 1, u32::MAX))), mailbox.existing(&some));
}

/// That the changes between two moments are those between their rows.
fn check_changes(older: &Mailbox, old: &[Row], newer: &Mailbox, new: &[Row]) {
    let changes = newer.changes_since(older);
    assert_eq!(changes.appended, uids(new).difference(&uids(old)));
    assert_eq!(changes.expunged, uids(old).difference(&uids(new)));
    let changed = |row: &&Row| old.iter().any(|before| before.uid == row.uid && before != *row);
    assert_eq!(changes.changed, new.iter().filter(changed).map(|row| row.uid).collect());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_mailbox_is_its_rows(changes in proptest::collection::vec(change(), 1..40), ranges_max in 1usize..60) {
        let id = MailboxId(1);
        let mut state = State::default();
        let frame = |number: u64| Frame { number, modseq: ModSeq(number), time: 0 };
        let name = MailboxName::new("a").unwrap();
        assert!(state.apply(&frame(1), &Event::MailboxCreated { id, name, uidvalidity: 1, special_use: 0 }, ranges_max));
        let mut rows: Vec<Row> = Vec::new();
        let mut gone: Vec<Row> = Vec::new();
        let mut views: Vec<(Arc<Mailbox>, Vec<Row>)> = Vec::new();
        for (number, change) in (2u64..).zip(&changes) {
            let (now, modseq) = (state.mailbox(id).unwrap().clone(), ModSeq(number));
            let event = match *change {
                Change::Append(count) => {
                    let new = (now.uidnext as u32..).take(count as usize).map(|uid| crate::record::NewRow {
                        uid: Uid::new(uid).unwrap(),
                        flags: Flags(u128::from(uid % 16)),
                        internal_date: DateTime { unix_seconds: uid.into(), offset_minutes: 60 },
                        save_date: 3,
                        size: uid * 7,
                        email_id: EmailId(uid.into()),
                    });
                    let new: Vec<_> = new.collect();
                    rows.extend(new.iter().map(|row| Row {
                        uid: row.uid, flags: row.flags, modseq, internal_date: row.internal_date,
                        save_date: row.save_date, size: row.size, email_id: row.email_id,
                    }));
                    Event::Entries { mailbox: id, rows: new }
                }
                Change::Flags(by, rest, flags) => {
                    let (uids, flags) = (picked(&rows, by, rest), Flags(flags.into()));
                    for row in rows.iter_mut().filter(|row| uids.contains_uid(row.uid)) {
                        (row.flags, row.modseq) = (flags, modseq);
                    }
                    Event::FlagsSet { mailbox: id, flags, uids }
                }
                Change::Expunge(by, rest) => {
                    let uids = picked(&rows, by, rest);
                    gone.extend(rows.extract_if(.., |row| uids.contains_uid(row.uid)));
                    check_sets(&now, &now.all_rows().map(|(_, row)| row).collect::<Vec<_>>(), by, rest);
                    Event::Expunged { mailbox: id, uids }
                }
                Change::Look => {
                    views.push((now, rows.clone()));
                    continue;
                }
            };
            prop_assert!(state.apply(&frame(number), &event, ranges_max));
            check(state.mailbox(id).unwrap(), &rows);
        }
        // What was expunged is remembered as it was, in the order of the expunges.
        prop_assert!(state.mailbox(id).unwrap().expunged_since(0).map(|expunged| expunged.row).eq(gone));
        let now = state.mailbox(id).unwrap();
        for (older, old) in &views {
            check(older, old);
            check_changes(older, old, now, &rows);
        }
    }
}
