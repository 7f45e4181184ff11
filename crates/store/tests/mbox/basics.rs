//! What is in the files is in the mailboxes, and stays there under the same UIDs.

use store::StoreMode;

use crate::support::*;

fn texts(from: u32, to: u32) -> String {
    (from..=to).map(|n| message(n, "")).collect()
}

fn pairs(list: &[(u32, u32)]) -> Vec<(u32, String)> {
    list.iter().map(|(uid, number)| (*uid, number.to_string())).collect()
}

#[test]
fn opens_what_is_there() {
    let world = World::new(1);
    world.write(INBOX, &[message(1, "Status: RO\n"), message(2, "X-Status: F\nX-Keywords: $a b\n")].concat());
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let expected = vec![(1, "\\Seen".to_owned(), served(1)), (2, "\\Flagged $a b".to_owned(), served(2))];
    assert_eq!(all(&account, inbox), expected);
    assert_eq!(
        account.view(inbox, true).unwrap().entry_of(model::Uid::FIRST).unwrap().internal_date.unix_seconds,
        1_030_019_783
    );
    set_flags(&account, inbox, 2, StoreMode::Add, "\\Answered");
    assert_eq!(append(&account, inbox, &served(3), "\\Draft").get(), 3);
    let expected: Vec<_> = [
        (1, "\\Seen".to_owned(), served(1)),
        (2, "\\Answered \\Flagged $a b".to_owned(), served(2)),
        (3, "\\Draft".to_owned(), served(3)),
    ]
    .into();
    assert_eq!(all(&account, inbox), expected);
    // The same after a restart, with and without what can be derived.
    drop(account);
    drop(_store);
    let (store, account) = world.open();
    assert_eq!(all(&account, inbox), expected);
    drop(account);
    store.repair(&ann()).unwrap();
    assert_eq!(all(&store.account(&ann()).unwrap(), inbox), expected);
}

#[test]
fn what_others_do() {
    let world = World::new(2);
    world.write(INBOX, &texts(1, 5));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]));
    world.deliver(INBOX, &texts(6, 7));
    assert_eq!(numbers(&account, inbox).len(), 7);
    // Deleted in the middle, another one put in front, two swapped.
    let text = [message(9, ""), texts(1, 1), texts(3, 3), texts(5, 5), texts(4, 4), texts(6, 7)].concat();
    world.write(INBOX, &text);
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 9)]));
    // Flags.
    world.write(INBOX, &text.replace("Subject: 4\n", "Subject: 4\nStatus: RO\nX-Status: A\nX-Keywords: x\n"));
    assert_eq!(all(&account, inbox)[2].1, "\\Answered \\Seen x");
    set_flags(&account, inbox, 4, StoreMode::Remove, "\\Answered");
    world.write(INBOX, &text.replace("Subject: 4\n", "Subject: 4\nStatus: RO\nX-Status: AF\nX-Keywords: y\n"));
    assert_eq!(all(&account, inbox)[2].1, "\\Flagged \\Seen x y");
    // Cut, and gone.
    world.write(INBOX, &texts(5, 6));
    assert_eq!(numbers(&account, inbox), pairs(&[(5, 5), (6, 6)]));
    world.env.disk.remove(std::path::Path::new(INBOX)).unwrap();
    assert_eq!(numbers(&account, inbox), pairs(&[]));
    world.write(INBOX, &texts(5, 5));
    assert_eq!(numbers(&account, inbox), pairs(&[(9, 5)]));
}

#[test]
fn equal_messages_are_as_many_as_there_are() {
    let world = World::new(3);
    world.write(INBOX, &texts(1, 1).repeat(3));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1), (2, 1), (3, 1)]));
    world.write(INBOX, &[texts(2, 2), texts(1, 1).repeat(2)].concat());
    let found = numbers(&account, inbox);
    assert_eq!(found.iter().filter(|(_, number)| number == "1").count(), 2, "{found:?}");
    assert_eq!(found.last().unwrap(), &(4, "2".to_owned()));
}

#[test]
fn uids_of_the_file() {
    let world = World::new(4);
    let text = [message(1, "X-IMAPbase: 1234567 20 $a\nX-UID: 5\n"), message(2, ""), message(3, "X-UID: 9\n")].concat();
    world.write(INBOX, &text);
    world.write(&format!("{ROOT}/old.sbd/x=2Ey"), &message(1, "X-UID: 7\n"));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(account.status(inbox).unwrap().uid_validity.get(), 1_234_567);
    assert_eq!(numbers(&account, inbox), pairs(&[(5, 1), (21, 2), (22, 3)]));
    let listed: Vec<String> = account.mailboxes().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(listed, ["INBOX", "old", "old/x.y"]);
    // Without an X-IMAPbase an X-UID means nothing.
    assert_eq!(numbers(&account, account.mailbox(&name("old/x.y")).unwrap()), pairs(&[(1, 1)]));
}

/// Another server has given UIDs, and what came through us is the first in the mailbox.
#[test]
fn uids_that_others_gave_are_passed_over() {
    let world = World::new(8);
    world.write(INBOX, &message(1, ""));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1)]));
    append(&account, inbox, &served(2), "");
    set_flags(&account, inbox, 1, StoreMode::Add, "\\Deleted");
    account.expunge(inbox, None).unwrap();
    account.write_back(inbox, store::Moment::Close).unwrap();
    let validity = account.status(inbox).unwrap().uid_validity;
    let text = world.read(INBOX);
    let (before, after) = text.split_once(&format!("X-IMAPbase: {validity} 0000000002")).unwrap();
    world.write(INBOX, &format!("{before}X-IMAPbase: {validity} 0000000041{after}"));
    assert_eq!(numbers(&account, inbox), pairs(&[(2, 2)]));
    assert_eq!(account.status(inbox).unwrap().uid_next.unwrap().get(), 42);
    world.deliver(INBOX, &message(3, ""));
    assert_eq!(numbers(&account, inbox), pairs(&[(2, 2), (42, 3)]));
}

#[test]
fn names() {
    let world = World::new(5);
    let (_store, account) = world.open();
    account.create_mailbox(&name("a/b"), &[]).unwrap();
    assert_eq!(world.read(&format!("{ROOT}/a")), "");
    world.deliver(&format!("{ROOT}/a.sbd/b"), &message(1, ""));
    let b = account.mailbox(&name("a/b")).unwrap();
    assert_eq!(numbers(&account, b), pairs(&[(1, 1)]));
    account.rename_mailbox(&name("a"), &name("c=d")).unwrap();
    assert_eq!(world.read(&format!("{ROOT}/c=3Dd.sbd/b")), message(1, ""));
    assert!(!world.env.disk.exists(std::path::Path::new(&format!("{ROOT}/a.sbd"))).unwrap());
    assert_eq!(numbers(&account, b), pairs(&[(1, 1)]));
    account.delete_mailbox(&name("c=d/b")).unwrap();
    assert!(!world.env.disk.exists(std::path::Path::new(&format!("{ROOT}/c=3Dd.sbd"))).unwrap());
    let listed: Vec<String> = account.mailboxes().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(listed, ["INBOX", "c=d"]);
    // Others make one, and something that is none.
    world.write(&format!("{ROOT}/new"), &message(1, ""));
    world.write(&format!("{ROOT}/readme.txt"), "no mail\n");
    let listed: Vec<String> = account.mailboxes().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(listed, ["INBOX", "c=d", "new"]);
}

#[test]
fn expunged_entries_stay_readable_while_the_file_has_them() {
    let world = World::new(6);
    world.write(INBOX, &texts(1, 3));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let before = view(&account, inbox);
    set_flags(&account, inbox, 2, StoreMode::Add, "\\Deleted");
    account.expunge(inbox, None).unwrap();
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1), (3, 3)]));
    let ghost = before.entry_of(model::Uid::new(2).unwrap()).unwrap();
    let mut text = Vec::new();
    account.reader().read(ghost.email_id, 0..u64::MAX, &mut text).unwrap();
    assert_eq!(text, served(2).into_bytes());
    // Seen again in the file, it does not come back.
    world.deliver(INBOX, &texts(4, 4));
    assert_eq!(numbers(&account, inbox), pairs(&[(1, 1), (3, 3), (4, 4)]));
    let listed: Vec<String> = account.mailboxes().into_iter().map(|info| info.name.to_string()).collect();
    assert_eq!(listed, ["INBOX"]);
}
