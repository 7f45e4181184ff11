//! What clients do is in the files, too.

use store::{Moment, StoreMode};

use crate::support::*;

fn texts(from: u32, to: u32) -> String {
    (from..=to).map(|n| message(n, "")).collect()
}

/// The numbers of the messages in a file.
fn in_file(world: &World, path: &str) -> Vec<String> {
    world.read(path).lines().filter_map(|line| line.strip_prefix("Subject: ")).map(str::to_owned).collect()
}

#[test]
fn appended_at_once() {
    let world = World::new(1);
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    append(&account, inbox, &served(1), "\\Seen $a");
    let text = world.read(INBOX);
    assert!(text.starts_with("From ") && text.contains("\nX-UID: 1") && text.contains("\nbody 1\n"), "{text}");
    assert!(text.contains("X-IMAPbase: ") && text.contains("Status: RO") && text.contains("X-Keywords: $a"), "{text}");
    append(&account, inbox, &served(2), "");
    world.deliver(INBOX, &message(3, ""));
    append(&account, inbox, &served(4), "");
    assert_eq!(in_file(&world, INBOX), ["1", "2", "3", "4"]);
    // The fourth was in the log before the third was seen.
    let pairs: Vec<_> = [(1, 1), (2, 2), (3, 4), (4, 3)].map(|(uid, n)| (uid, n.to_string())).into();
    assert_eq!(numbers(&account, inbox), pairs);
    account.write_back(inbox, Moment::Check).unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "2", "3", "4"]);
    assert_eq!(numbers(&account, inbox), pairs);
}

#[test]
fn flags_and_removal() {
    let world = World::new(2);
    world.write(INBOX, &texts(1, 5));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox).len(), 5);
    account.write_back(inbox, Moment::Check).unwrap();
    // Never on a mere open.
    assert_eq!(world.read(INBOX), texts(1, 5));
    set_flags(&account, inbox, 2, StoreMode::Add, "\\Seen \\Flagged $x");
    assert_eq!(world.read(INBOX), texts(1, 5));
    account.write_back(inbox, Moment::Check).unwrap();
    let text = world.read(INBOX);
    assert!(text.contains("X-Status: F") && text.contains("Status: RO") && text.contains("X-Keywords: $x"), "{text}");
    let before = all(&account, inbox);
    assert_eq!(before[1].1, "\\Flagged \\Seen $x");
    set_flags(&account, inbox, 3, StoreMode::Add, "\\Deleted");
    account.expunge(inbox, None).unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "2", "3", "4", "5"]);
    account.write_back(inbox, Moment::Close).unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "2", "4", "5"]);
    let left: Vec<_> = before.into_iter().filter(|(uid, ..)| *uid != 3).collect();
    assert_eq!(all(&account, inbox), left);
    // Another program takes a flag back.
    world.write(INBOX, &world.read(INBOX).replace("X-Status: F", "X-Status:  "));
    assert_eq!(all(&account, inbox)[1].1, "\\Seen $x");
    drop((account, store));
    let (_store, account) = world.open();
    assert_eq!(all(&account, inbox)[1].1, "\\Seen $x");
    assert!(account.check().unwrap().findings.is_empty());
}

#[test]
fn copies_and_moves() {
    let world = World::new(3);
    world.write(INBOX, &texts(1, 3));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let to = account.create_mailbox(&name("a/b"), &[]).unwrap();
    let path = format!("{ROOT}/a.sbd/b");
    assert_eq!(numbers(&account, inbox).len(), 3);
    account.copy(inbox, &uids(&[1]), to).unwrap();
    assert_eq!(in_file(&world, &path), ["1"]);
    account.move_entries(inbox, &uids(&[2]), to).unwrap();
    assert_eq!(in_file(&world, &path), ["1", "2"]);
    assert_eq!(in_file(&world, INBOX), ["1", "2", "3"]);
    account.write_back(inbox, Moment::Close).unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "3"]);
    assert_eq!(numbers(&account, to), [(1, "1".to_owned()), (2, "2".to_owned())]);
    // Within one mailbox.
    account.copy(inbox, &uids(&[3]), inbox).unwrap();
    account.write_back(inbox, Moment::Close).unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "3", "3"]);
    assert_eq!(numbers(&account, inbox).len(), 3);
    account.rename_mailbox(&name("INBOX"), &name("old")).unwrap();
    assert_eq!(in_file(&world, &format!("{ROOT}/old")), ["1", "3", "3"]);
    account.write_back(inbox, Moment::Close).unwrap();
    assert_eq!(world.read(INBOX), "");
    assert_eq!(numbers(&account, account.mailbox(&name("old")).unwrap()).len(), 3);
    // The source goes with the only octets: they are elsewhere by then.
    account.copy(to, &uids(&[1, 2]), inbox).unwrap();
    account.delete_mailbox(&name("a/b")).unwrap();
    assert_eq!(numbers(&account, inbox).len(), 2);
    assert!(!world.env.disk.exists(std::path::Path::new(&path)).unwrap());
}

#[test]
fn idle_writes_back() {
    let world = World::new(4);
    world.write(INBOX, &texts(1, 2));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(numbers(&account, inbox).len(), 2);
    set_flags(&account, inbox, 1, StoreMode::Add, "\\Deleted");
    account.expunge(inbox, None).unwrap();
    store.maintain().unwrap();
    assert_eq!(in_file(&world, INBOX), ["1", "2"]);
    world.env.clock.sleep(std::time::Duration::from_secs(31));
    store.maintain().unwrap();
    assert_eq!(in_file(&world, INBOX), ["2"]);
}
