//! Views: what a session knows, and how it learns more.

use std::collections::BTreeMap;

use model::{NumSet, SeqNum};
use platform::Prng;
use store::{StoreFlags, StoreMode, View};

use crate::support::{Format, append, fill, flags_of, listed, mailbox, names, uid, uids, whole};

fn add(flags: &str) -> StoreFlags {
    StoreFlags { mode: StoreMode::Add, flags: names(flags), unchanged_since: None }
}

pub fn stable_until_advanced(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 4);
    let mut view = account.view(inbox, true).unwrap();
    assert!(!view.has_news() && view.advance(true).is_empty());
    let copy = view.clone();
    account.store_flags(inbox, &uids("2"), &add("\\Deleted")).unwrap();
    account.store_flags(inbox, &uids("3"), &add("\\Seen new")).unwrap();
    account.expunge(inbox, None).unwrap();
    append(&account, inbox, b"x", "");
    assert!(view.has_news());
    assert_eq!((listed(&view), view.exists(), flags_of(&view, 3)), (vec![1, 2, 3, 4], 4, String::new()));
    let changes = view.advance(true);
    assert_eq!((changes.expunged_seqs, changes.expunged_uids), (uids("2"), uids("2")));
    assert_eq!((changes.flags_changed, changes.added), (uids("3"), 1));
    assert!(changes.keywords_changed && !changes.mailbox_deleted);
    assert_eq!((listed(&view), flags_of(&view, 3)), (vec![1, 3, 4, 5], "\\Seen new".to_owned()));
    assert_eq!(listed(&copy), [1, 2, 3, 4], "a clone is another view");
    assert!(!view.has_news());
}

pub fn ghosts_keep_numbers(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 5);
    let mut view = account.view(inbox, true).unwrap();
    account.store_flags(inbox, &uids("2,5"), &add("\\Deleted")).unwrap();
    account.expunge(inbox, None).unwrap();
    append(&account, inbox, b"x", "\\Seen");
    let changes = view.advance(false);
    assert!(changes.expunged_uids.is_empty() && changes.added == 1);
    assert_eq!(listed(&view), [1, 2, 3, 4, 5, 6]);
    assert_eq!(view.entry_of(uid(3)).unwrap().seq, SeqNum::new(3).unwrap());
    assert_eq!(view.ghost_uids(), uids("2,5"));
    assert_eq!(whole(&account, &view, 2), b"Subject: 1\r\n\r\nbody 1\r\n", "still readable");
    assert_eq!(view.unseen(), (5, SeqNum::new(1)));
    assert_eq!(view.last_uid(), Some(uid(6)));
    assert!(view.has_news(), "the ghosts are to be told");
    let changes = view.advance(true);
    assert_eq!((changes.expunged_seqs, changes.expunged_uids, changes.added), (uids("2,5"), uids("2,5"), 0));
    assert_eq!(listed(&view), [1, 3, 4, 6]);
}

pub fn deleted_mailbox(format: &Format) {
    let (_store, account, _) = format.with_account();
    let id = account.create_mailbox(&mailbox("a"), &[]).unwrap();
    fill(&account, id, 3);
    let mut view = account.view(id, true).unwrap();
    account.delete_mailbox(&mailbox("a")).unwrap();
    account.create_mailbox(&mailbox("a"), &[]).unwrap();
    assert!(view.is_gone() && view.has_news());
    assert!(view.advance(false).is_empty());
    assert_eq!(listed(&view), [1, 2, 3]);
    assert_eq!(whole(&account, &view, 3), b"Subject: 2\r\n\r\nbody 2\r\n");
    let changes = view.advance(true);
    assert!(changes.mailbox_deleted);
    assert_eq!((changes.expunged_seqs, changes.expunged_uids), (uids("1:3"), uids("1:3")));
    assert_eq!((view.exists(), view.has_news(), view.is_gone()), (0, false, true));
    assert!(view.advance(true).is_empty());
}

pub fn recent(format: &Format) {
    let (store, account, inbox) = format.with_account();
    fill(&account, inbox, 2);
    assert_eq!(account.view(inbox, false).unwrap().recent_from(), Some(uid(1)), "EXAMINE shows and takes nothing");
    let mut first = account.view(inbox, true).unwrap();
    assert_eq!(first.recent_from(), Some(uid(1)));
    assert_eq!(account.view(inbox, true).unwrap().recent_from(), Some(uid(3)));
    append(&account, inbox, b"x", "");
    assert_eq!(account.status(inbox).unwrap().recent, 1);
    first.advance(true);
    assert_eq!(account.status(inbox).unwrap().recent, 0, "the view has learnt of it");
    drop((first, account));
    drop(store);
    let store = format.open();
    let account = store.account(&crate::support::name("ann")).unwrap();
    assert_eq!(account.status(inbox).unwrap().recent, 0);
}

pub fn rows_and_sets(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let empty = account.view(inbox, false).unwrap();
    assert_eq!((empty.exists(), empty.last_uid(), empty.unseen()), (0, None, (0, None)));
    assert!(empty.rows(1..=10).next().is_none() && empty.entry(SeqNum::new(1).unwrap()).is_none());
    fill(&account, inbox, 3000);
    account.store_flags(inbox, &uids("1000:2000"), &add("\\Deleted")).unwrap();
    account.expunge(inbox, None).unwrap();
    let view = account.view(inbox, false).unwrap();
    assert_eq!((view.exists(), view.rows(1..=u32::MAX).len()), (1999, 1999));
    assert_eq!(view.seqs_of(&uids("990:2010,4000")), uids("990:1009"));
    assert_eq!(view.uids_of(&uids("998:1001,1999,5000")), uids("998:999,2001:2002,3000"));
    let middle: Vec<u32> = view.rows(999..=1001).map(|entry| entry.uid.get()).collect();
    assert_eq!(middle, [999, 2001, 2002]);
    assert!(view.rows(2000..=u32::MAX).next().is_none());
    assert_eq!(view.entry(SeqNum::new(1000).unwrap()).unwrap().uid, uid(2001));
    assert!(view.entry_of(uid(1500)).is_none());
}

/// Two views with random changes and random moments of telling, beside what a client would keep.
pub fn ghosts_random(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let mut random = Prng::new(7);
    fill(&account, inbox, 30);
    let mut views: Vec<(View, Client)> = (0..2)
        .map(|_| {
            let view = account.view(inbox, true).unwrap();
            let client = Client::new(&view);
            (view, client)
        })
        .collect();
    for _ in 0..400 {
        match random.below(4) {
            0 => fill(&account, inbox, 1 + random.below(3) as u32),
            1 => {
                let last = account.status(inbox).unwrap().uid_next.unwrap().get();
                let doomed: NumSet = (0..random.below(6)).map(|_| 1 + random.below(last.into()) as u32).collect();
                account.store_flags(inbox, &doomed, &add("\\Deleted")).unwrap();
                account.expunge(inbox, None).unwrap();
            }
            2 => {
                let last = account.status(inbox).unwrap().uid_next.unwrap().get();
                let some = NumSet::range(1 + random.below(last.into()) as u32, 1 + random.below(last.into()) as u32);
                let mode = if random.below(2) == 0 { StoreMode::Add } else { StoreMode::Remove };
                let request = StoreFlags { mode, flags: names("\\Seen"), unchanged_since: None };
                account.store_flags(inbox, &some, &request).unwrap();
            }
            _ => {
                let which = random.index(views.len());
                let (view, client) = &mut views[which];
                let changes = view.advance(random.below(2) == 0);
                client.hear(&changes, view);
            }
        }
        for (view, client) in &views {
            client.agrees_with(view);
        }
    }
}

/// What a client knows: UIDs and flags in the order of the sequence numbers.
struct Client(Vec<(u32, model::Flags)>);

impl Client {
    fn new(view: &View) -> Self {
        Client(view.all_rows().map(|entry| (entry.uid.get(), entry.flags)).collect())
    }

    fn hear(&mut self, changes: &store::Changes, view: &View) {
        for seq in changes.expunged_seqs.iter().rev() {
            let (gone, _) = self.0.remove(seq as usize - 1);
            assert!(changes.expunged_uids.contains(gone));
        }
        assert_eq!(changes.expunged_seqs.len(), changes.expunged_uids.len());
        for (known, flags) in &mut self.0 {
            let now = view.entry_of(uid(*known)).unwrap().flags;
            assert!(now == *flags || changes.flags_changed.contains(*known));
            *flags = now;
        }
        let new = view.rows(self.0.len() as u32 + 1..=u32::MAX);
        assert_eq!(new.len() as u32, changes.added);
        self.0.extend(new.map(|entry| (entry.uid.get(), entry.flags)));
    }

    fn agrees_with(&self, view: &View) {
        let listed: Vec<_> = view.all_rows().map(|entry| (entry.uid.get(), entry.flags)).collect();
        assert_eq!(listed, self.0);
        assert_eq!(view.exists() as usize, self.0.len());
        let seqs: BTreeMap<u32, u32> = view.all_rows().map(|entry| (entry.uid.get(), entry.seq.get())).collect();
        for (n, (number, flags)) in self.0.iter().enumerate() {
            let seq = n as u32 + 1;
            assert_eq!(seqs[number], seq);
            assert_eq!(view.entry_of(uid(*number)).map(|e| (e.seq.get(), e.flags)), Some((seq, *flags)));
            assert_eq!(view.entry(SeqNum::new(seq).unwrap()).map(|entry| entry.uid.get()), Some(*number));
            assert_eq!(view.rows(seq..=u32::MAX).next().map(|entry| entry.uid.get()), Some(*number));
        }
        // Every other pair, beyond the end too.
        let ranges = (1..=view.exists() + 1).step_by(4).map(|seq| (seq, seq + 1));
        let read = ranges.clone().flat_map(|(first, last)| view.rows(first..=last));
        let read = read.map(|entry| (entry.seq, entry.uid, entry.flags, entry.modseq));
        assert!(view.flags(ranges).map(|entry| (entry.seq, entry.uid, entry.flags, entry.modseq)).eq(read));
        let unseen = self.0.iter().filter(|(_, flags)| !flags.has(model::SystemFlag::Seen)).count();
        let first = self.0.iter().position(|(_, flags)| !flags.has(model::SystemFlag::Seen));
        assert_eq!(view.unseen(), (unseen as u32, first.and_then(|at| SeqNum::new(at as u32 + 1))));
        assert_eq!(view.last_uid().map(model::Uid::get), self.0.last().map(|(uid, _)| *uid));
    }
}
