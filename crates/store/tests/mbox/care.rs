//! Looking after an account: bringing back what was expunged, and holding the files against the log.

use std::path::Path;

use platform::{LockMode, LockTable, OpenMode};
use store::{Moment, StoreMode};

use crate::support::*;

fn texts(from: u32, to: u32) -> String {
    (from..=to).map(|n| message(n, "")).collect()
}

#[test]
fn what_is_still_in_the_file_is_brought_back() {
    let world = World::new(1);
    world.write(INBOX, &texts(1, 3));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox).len(), 3);
    set_flags(&account, inbox, 2, StoreMode::Add, "\\Deleted \\Flagged");
    account.expunge(inbox, None).unwrap();
    world.env.clock.sleep(std::time::Duration::from_secs(10));
    let now = world.env.clock.now().seconds;
    let other = account.create_mailbox(&name("a"), &[]).unwrap();
    account.move_entries(inbox, &uids(&[3]), other).unwrap();
    append(&account, inbox, &served(4), "\\Deleted");
    account.expunge(inbox, None).unwrap();
    // The second was expunged before that.
    let restored = account.restore(&name("INBOX"), now).unwrap();
    assert_eq!((restored.uids.len(), restored.from_file.len()), (1, 1));
    let restored = account.restore(&name("INBOX"), now - 60).unwrap();
    assert_eq!((restored.uids.len(), restored.from_file.len()), (0, 1));
    let found = all(&account, inbox);
    let mut texts: Vec<_> = found.iter().map(|(_, flags, text)| (text.clone(), flags.clone())).collect();
    texts.sort();
    let expected = [(1, ""), (2, "\\Flagged"), (3, ""), (4, "")].map(|(n, flags)| (served(n), flags.to_owned()));
    assert_eq!(texts, expected);
    assert!(found.iter().skip(1).all(|(uid, ..)| *uid > 4), "{found:?}");
    for _ in 0..2 {
        account.write_back(inbox, Moment::Close).unwrap();
        assert_eq!(all(&account, inbox), found);
        for n in 1..=4 {
            assert_eq!(world.read(INBOX).matches(&format!("Subject: {n}\n")).count(), 1);
        }
    }
    assert_eq!(numbers(&account, other).len(), 1);
    // What has left the file does not come back.
    set_flags(&account, inbox, 1, StoreMode::Add, "\\Deleted");
    account.expunge(inbox, None).unwrap();
    account.write_back(inbox, Moment::Close).unwrap();
    assert_eq!(account.restore(&name("INBOX"), 0).unwrap().from_file, []);
}

#[test]
fn damage_is_told_from_news() {
    let world = World::new(2);
    let options =
        store::Options { mbox: store::MboxOptions { whole_bytes_max: 0, ..Default::default() }, ..Default::default() };
    world.write(INBOX, &texts(1, 5));
    let store = store::Store::open(world.env.clone(), "/data".into(), options).unwrap();
    let account = store.account(&ann()).unwrap();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox).len(), 5);
    assert_eq!(account.check().unwrap().findings, []);
    // News is taken in and no finding, in the middle as well.
    let text = texts(1, 5).replace("Subject: 2\n", "Subject: 2\nX-Status: F\n");
    world.write(INBOX, &format!("{text}{}", message(6, "")));
    assert_eq!(account.check().unwrap().findings, []);
    let view = account.view(inbox, false).unwrap();
    assert_eq!(view.all_rows().count(), 6);
    // A bit of a body, and the system has noticed nothing.
    let at = world.read(INBOX).find("body 3").unwrap() as u64;
    world.sim.disk.corrupt(Path::new(INBOX), at, 1).unwrap();
    let findings = account.check().unwrap().findings;
    let start = world.read(INBOX).find("Subject: 3").unwrap() as u64 - 34;
    let found = findings.iter().find(|finding| finding.file == Path::new(INBOX)).unwrap();
    assert_eq!((found.offset, found.what.as_str()), (start, "a message is not the one that the log knows"));
    // Somebody else has it.
    let file = world.env.disk.open(Path::new(INBOX), OpenMode::ReadWrite).unwrap();
    let _held = file.try_lock(LockTable::Fcntl, LockMode::Exclusive).unwrap();
    let findings = account.check().unwrap().findings;
    assert!(findings.iter().any(|finding| finding.what.contains("could not be looked at")), "{findings:?}");
}
