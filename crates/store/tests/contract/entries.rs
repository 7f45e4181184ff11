//! Entries: added, copied, moved, flagged, expunged; what is read back is what was given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use model::{DateTime, ErrorKind, MailboxName, ModSeq};
use store::{StoreFlags, StoreMode};

use crate::support::{Format, append, fill, flags_of, listed, mailbox, names, new_message, uid, uids, whole};

fn request(mode: StoreMode, flags: &str) -> StoreFlags {
    StoreFlags { mode, flags: names(flags), unchanged_since: None }
}

pub fn append_and_read(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let header_only = b"Subject: x\r\nTo: y\r\n".to_vec();
    let odd: Vec<u8> = b"\nA: 1\r\n\r\n\0\xff\r\r\n\n".to_vec();
    let large: Vec<u8> = [b"A: b\r\n\r\n".to_vec(), (0..90_000u32).map(|n| (n * 7 % 251) as u8).collect()].concat();
    for message in [&Vec::new(), &header_only, &odd, &large] {
        append(&account, inbox, message, "");
    }
    let mut dated = new_message(&account, b"x", "");
    dated.internal_date = Some(DateTime { unix_seconds: -5, offset_minutes: -90 });
    account.append(inbox, vec![dated]).unwrap();
    let view = account.view(inbox, false).unwrap();
    assert_eq!(listed(&view), [1, 2, 3, 4, 5]);
    for (n, message) in [&Vec::new(), &header_only, &odd, &large].into_iter().enumerate() {
        assert_eq!(&whole(&account, &view, n as u32 + 1), message);
    }
    let mut reader = account.reader();
    let id = |number| view.entry_of(uid(number)).unwrap().email_id;
    assert_eq!(reader.extent(id(2)).unwrap(), (19, 19));
    assert_eq!(reader.extent(id(3)).unwrap(), (1, odd.len() as u64));
    assert_eq!(reader.header(id(4)).unwrap(), b"A: b\r\n\r\n");
    for (from, to) in [(0, 10), (5, 70_000), (66_000, 66_001), (90_000, 999_999), (500_000, 600_000), (9, 9)] {
        let mut out = b"before".to_vec();
        reader.read(id(4), from..to, &mut out).unwrap();
        let (from, to) = ((from as usize).min(large.len()), (to as usize).min(large.len()));
        assert_eq!(out, [b"before", &large[from..to]].concat());
    }
    let entry = view.entry_of(uid(5)).unwrap();
    assert_eq!(entry.internal_date, DateTime { unix_seconds: -5, offset_minutes: -90 });
    assert_eq!(entry.save_date, format.env.clock.now().seconds);
    assert_eq!(view.entry_of(uid(1)).unwrap().internal_date, DateTime::utc(format.env.clock.now().seconds));
}

pub fn append_is_all_or_nothing(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let bad = "k ".repeat(0) + &(0..121).map(|n| format!("k{n} ")).collect::<String>();
    let messages = vec![new_message(&account, b"a", ""), new_message(&account, b"b", &bad)];
    assert_eq!(account.append(inbox, messages).unwrap_err().kind(), ErrorKind::Limit);
    let status = account.status(inbox).unwrap();
    assert_eq!((status.messages, status.uid_next), (0, Some(uid(1))));
    assert!(account.view(inbox, false).unwrap().keywords().is_empty());
    let several = (0..3).map(|n| new_message(&account, format!("{n}").as_bytes(), "")).collect();
    let appended = account.append(inbox, several).unwrap();
    assert_eq!(appended.entries.iter().map(|(uid, _)| uid.get()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(appended.uid_validity, status.uid_validity);
    let modseqs: Vec<_> = account.view(inbox, false).unwrap().all_rows().map(|entry| entry.modseq).collect();
    assert!(modseqs.iter().all(|modseq| *modseq == modseqs[0]));
}

pub fn too_large(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let max = format.options.message_bytes_max;
    let mut writer = account.message_writer().unwrap();
    writer.write(&vec![b'x'; max as usize]).unwrap();
    assert_eq!(writer.write(b"y").unwrap_err().limit(), Some("message_bytes_max"));
    drop(writer);
    append(&account, inbox, &vec![b'x'; max as usize], "");
}

pub fn flags(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 5);
    let before = account.status(inbox).unwrap();
    let stored = account.store_flags(inbox, &uids("2:3,9"), &request(StoreMode::Add, "\\Seen a")).unwrap();
    assert_eq!((stored.changed, stored.modified), (uids("2:3"), uids("")));
    assert!(stored.modseq.unwrap() > before.highest_modseq);
    // What is so already gets no new modseq.
    let stored = account.store_flags(inbox, &uids("2:4"), &request(StoreMode::Add, "A")).unwrap();
    assert_eq!(stored.changed, uids("4"));
    let stored = account.store_flags(inbox, &uids("2"), &request(StoreMode::Remove, "\\seen nobody-has-this")).unwrap();
    assert_eq!(stored.changed, uids("2"));
    account.store_flags(inbox, &uids("3"), &request(StoreMode::Replace, "\\Draft b")).unwrap();
    let stored = account.store_flags(inbox, &uids("77"), &request(StoreMode::Replace, "never-made")).unwrap();
    assert_eq!((stored.changed, stored.modseq), (uids(""), None));
    let view = account.view(inbox, false).unwrap();
    assert_eq!([2, 3, 4, 5].map(|n| flags_of(&view, n)), ["a", "\\Draft b", "a", ""]);
    let keywords: Vec<_> = view.keywords().iter().map(|keyword| keyword.as_str().to_owned()).collect();
    assert_eq!(keywords, ["a", "b"]);
    assert_eq!(view.highest_modseq(), view.all_rows().map(|entry| entry.modseq).max().unwrap());
}

pub fn conditional_store(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 3);
    let then = account.status(inbox).unwrap().highest_modseq;
    account.store_flags(inbox, &uids("2"), &request(StoreMode::Add, "\\Seen")).unwrap();
    let conditional = StoreFlags { unchanged_since: Some(then), ..request(StoreMode::Add, "\\Flagged") };
    let stored = account.store_flags(inbox, &uids("1:3"), &conditional).unwrap();
    assert_eq!((stored.changed, stored.modified), (uids("1,3"), uids("2")));
    let never = StoreFlags { unchanged_since: Some(ModSeq(0)), ..request(StoreMode::Replace, "") };
    let stored = account.store_flags(inbox, &uids("1:3"), &never).unwrap();
    assert_eq!((stored.changed, stored.modified, stored.modseq), (uids(""), uids("1:3"), None));
}

pub fn keywords_map(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let other = account.create_mailbox(&mailbox("other"), &[]).unwrap();
    append(&account, other, b"x", "c b");
    append(&account, inbox, b"y", "a b \\Seen");
    account.copy(inbox, &uids("1"), other).unwrap();
    let view = account.view(other, false).unwrap();
    assert_eq!(flags_of(&view, 2), "\\Seen b a");
    let keywords: Vec<_> = view.keywords().iter().map(|keyword| keyword.as_str().to_owned()).collect();
    assert_eq!(keywords, ["c", "b", "a"]);
}

pub fn copy_and_move(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let other = account.create_mailbox(&mailbox("other"), &[]).unwrap();
    fill(&account, inbox, 4);
    append(&account, other, b"there", "");
    let copied = account.copy(inbox, &uids("2:3,8"), other).unwrap();
    assert_eq!(copied.uids, [(uid(2), uid(2)), (uid(3), uid(3))]);
    assert_eq!((copied.expunged_modseq, copied.uid_validity), (None, account.status(other).unwrap().uid_validity));
    let moved = account.move_entries(inbox, &uids("1,4"), other).unwrap();
    assert_eq!(moved.uids, [(uid(1), uid(4)), (uid(4), uid(5))]);
    assert_eq!(moved.expunged_modseq, Some(account.status(inbox).unwrap().highest_modseq));
    let (from, to) = (account.view(inbox, false).unwrap(), account.view(other, false).unwrap());
    assert_eq!((listed(&from), listed(&to)), (vec![2, 3], vec![1, 2, 3, 4, 5]));
    assert_eq!(to.entry_of(uid(2)).unwrap().email_id, from.entry_of(uid(2)).unwrap().email_id, "one message");
    assert_eq!(whole(&account, &to, 4), b"Subject: 0\r\n\r\nbody 0\r\n");
    // Onto itself: a second entry of the same message.
    assert_eq!(account.copy(inbox, &uids("2"), inbox).unwrap().uids, [(uid(2), uid(5))]);
    // The copy stays when the source goes.
    account.expunge(inbox, None).unwrap();
    account.delete_mailbox(&MailboxName::new("other").unwrap()).unwrap();
    assert_eq!(whole(&account, &account.view(inbox, false).unwrap(), 5), b"Subject: 1\r\n\r\nbody 1\r\n");
    let error = account.copy(inbox, &uids("2"), other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let nothing = account.move_entries(inbox, &uids("99"), inbox).unwrap();
    assert!(nothing.uids.is_empty() && nothing.expunged_modseq.is_none());
}

pub fn replace(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let other = account.create_mailbox(&mailbox("other"), &[]).unwrap();
    fill(&account, inbox, 2);
    let appended = account.replace(inbox, uid(1), inbox, new_message(&account, b"new", "\\Draft")).unwrap();
    assert_eq!(appended.entries[0].0, uid(3));
    account.replace(inbox, uid(2), other, new_message(&account, b"newer", "")).unwrap();
    assert_eq!(listed(&account.view(inbox, false).unwrap()), [3]);
    let gone = account.replace(inbox, uid(1), other, new_message(&account, b"never", "")).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::Expunged);
    assert_eq!(listed(&account.view(other, false).unwrap()), [1]);
}

pub fn expunge(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 10);
    assert!(account.expunge(inbox, None).unwrap().uids.is_empty());
    account.store_flags(inbox, &uids("2,4,6"), &request(StoreMode::Add, "\\Deleted")).unwrap();
    let expunged = account.expunge(inbox, Some(&uids("1:4,9"))).unwrap();
    assert_eq!(expunged.uids, uids("2,4"));
    assert_eq!(expunged.highest_modseq, account.status(inbox).unwrap().highest_modseq);
    assert_eq!(account.expunge(inbox, None).unwrap().uids, uids("6"));
    assert_eq!(listed(&account.view(inbox, false).unwrap()), [1, 3, 5, 7, 8, 9, 10]);
    account
        .store_flags(inbox, &uids("1:*".replace('*', "99").as_str()), &request(StoreMode::Add, "\\Deleted"))
        .unwrap();
    account.expunge(inbox, None).unwrap();
    assert_eq!(append(&account, inbox, b"next", "").get(), 11, "a UID is never used again");
}

pub fn vanished(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    fill(&account, inbox, 6);
    account.store_flags(inbox, &uids("1:2"), &request(StoreMode::Add, "\\Deleted")).unwrap();
    account.expunge(inbox, None).unwrap();
    let then = account.status(inbox).unwrap().highest_modseq;
    let other = account.create_mailbox(&mailbox("other"), &[]).unwrap();
    account.move_entries(inbox, &uids("4,6"), other).unwrap();
    assert_eq!(account.vanished_since(inbox, then, &uids("1:100")).unwrap(), uids("4,6"));
    assert_eq!(account.vanished_since(inbox, ModSeq(0), &uids("1:4")).unwrap(), uids("1:2,4"));
    let now = account.status(inbox).unwrap().highest_modseq;
    assert!(account.vanished_since(inbox, now, &uids("1:100")).unwrap().is_empty());
}

pub fn status(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    append(&account, inbox, b"1234", "\\Seen");
    append(&account, inbox, b"123456", "\\Deleted");
    append(&account, inbox, b"", "");
    let status = account.status(inbox).unwrap();
    assert_eq!((status.id, status.messages, status.unseen, status.deleted, status.size), (inbox, 3, 2, 1, 10));
    assert_eq!((status.uid_next, status.recent), (Some(uid(4)), 3));
    let view = account.view(inbox, true).unwrap();
    assert_eq!(view.unseen(), (2, model::SeqNum::new(2)));
    assert_eq!(account.status(inbox).unwrap().recent, 0);
    let gone = account.create_mailbox(&mailbox("gone"), &[]).unwrap();
    account.delete_mailbox(&mailbox("gone")).unwrap();
    for error in [account.status(gone).err(), account.view(gone, true).err(), account.expunge(gone, None).err()] {
        assert_eq!(error.unwrap().kind(), ErrorKind::NotFound);
    }
}

pub fn derived_data(format: &Format) {
    let (store, account, inbox) = format.with_account();
    let message = b"Date: Thu, 1 Jan 2004 23:30:00 -0800\r\nFrom: A <a@x>\r\nSubject: hi\r\n\r\nSome  text\r\n";
    append(&account, inbox, message, "");
    // Enough of others that the first one is moved from the tail to a segment, whatever the format calls these.
    fill(&account, inbox, 1500);
    for _ in 0..2 {
        let mut reader = account.reader();
        let id = account.view(inbox, false).unwrap().entry_of(uid(1)).unwrap().email_id;
        let envelope = "(\"Thu, 1 Jan 2004 23:30:00 -0800\" \"hi\" ((\"A\" NIL \"a\" \"x\")) ((\"A\" NIL \"a\" \"x\")) \
             ((\"A\" NIL \"a\" \"x\")) NIL NIL NIL NIL NIL)";
        assert_eq!(String::from_utf8_lossy(reader.envelope(id).unwrap()), envelope);
        let structure = "(\"TEXT\" \"PLAIN\" NIL NIL NIL \"7BIT\" 12 1 NIL NIL NIL NIL)";
        let written = String::from_utf8_lossy(reader.body_structure(id).unwrap()).into_owned();
        assert!(written.starts_with("(\"TEXT\" \"PLAIN\" ") && written.len() >= structure.len(), "{written}");
        assert_eq!(reader.preview(id).unwrap(), "Some text");
        assert_eq!(reader.sent_date(id).unwrap(), model::CivilDate::new(2004, 1, 1));
        assert_eq!(reader.structure(id).unwrap().size(), message.len() as u64);
        while store.maintain().unwrap() {}
    }
}

pub fn listeners(format: &Format) {
    let (_store, account, inbox) = format.with_account();
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let watched = Arc::downgrade(&account);
    let guard = account.listen(Arc::new(move || {
        // No lock is held: the account can be asked.
        assert!(watched.upgrade().is_none_or(|account| account.status(inbox).is_ok()));
        counter.fetch_add(1, Ordering::Relaxed);
    }));
    append(&account, inbox, b"x", "");
    account.store_flags(inbox, &uids("1"), &request(StoreMode::Add, "\\Seen")).unwrap();
    let heard = calls.load(Ordering::Relaxed);
    assert!(heard >= 2);
    drop(guard);
    append(&account, inbox, b"x", "");
    assert_eq!(calls.load(Ordering::Relaxed), heard);
}
