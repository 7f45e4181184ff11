//! From the log into the files.

use store::{Moment, StoreMode};

use crate::support::{World, all, append, expunge, listed, message, name, served, set_flags, uids};

#[test]
fn appended_at_once() {
    let world = World::new(1);
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    append(&account, inbox, &served(1), "");
    append(&account, inbox, &served(2), "\\Seen $Forwarded a b");
    // Octets that LF cannot say.
    append(&account, inbox, "Subject: 3\r\n\r\na\nb\r\r\n", "\\Draft");
    let files = world.files("");
    assert_eq!(files.len(), 3);
    let find = |what: &str| files.iter().find(|file| file.contains(what)).unwrap();
    assert!(find("new/").ends_with(",S=19,W=22"), "{files:?}");
    assert!(find("PS").ends_with(",S=19,W=22:2,PSab"), "{files:?}");
    assert!(find(",R=1").ends_with(",S=20,R=1:2,D"), "{files:?}");
    assert_eq!(world.read(find("PS")), message(2));
    assert_eq!(world.read(find(",R=1")), "Subject: 3\r\n\r\na\nb\r\r\n");
    assert_eq!(world.read("dovecot-keywords"), "0 a\n1 b\n");
    assert!(world.env.disk.list(&std::path::Path::new(crate::support::ROOT).join("tmp")).unwrap().is_empty());
    assert_eq!(listed(&account, inbox), ["1:1", "2:2 \\Seen $Forwarded a b", "3:3 \\Draft"]);
}

#[test]
fn flags_at_once() {
    let world = World::new(2);
    for n in 1..=3 {
        world.deliver(&format!("cur/{n}.x:2,QX"), &message(n));
    }
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    listed(&account, inbox);
    set_flags(&account, inbox, 1, StoreMode::Add, "\\Seen work");
    set_flags(&account, inbox, 2, StoreMode::Replace, "\\Flagged");
    set_flags(&account, inbox, 2, StoreMode::Replace, "");
    // Letters that mean nothing to us stay.
    assert_eq!(world.files(""), ["cur/1.x:2,QSXa", "cur/2.x:2,QX", "cur/3.x:2,QX"]);
    assert_eq!(listed(&account, inbox), ["1:1 \\Seen work", "2:2", "3:3"]);
    // Somebody gives a letter to another keyword, and uses it.
    world.put("dovecot-keywords", "0 work\n1 $Junk\n");
    world.rename("cur/3.x:2,QX", "cur/3.x:2,QXb");
    assert_eq!(listed(&account, inbox)[2], "3:3 $Junk");
}

#[test]
fn more_keywords_than_letters() {
    let world = World::new(3);
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let keywords: Vec<String> = (0..30).map(|n| format!("k{n}")).collect();
    append(&account, inbox, &served(1), &keywords.join(" "));
    assert!(world.files("")[0].ends_with(":2,abcdefghijklmnopqrstuvwxyz"), "{:?}", world.files(""));
    assert_eq!(listed(&account, inbox), [format!("1:1 {}", keywords.join(" "))]);
    // Removing one takes its letter away and no other keyword.
    set_flags(&account, inbox, 1, StoreMode::Remove, "k0 k29");
    assert_eq!(listed(&account, inbox), [format!("1:1 {}", keywords[1..29].join(" "))]);
}

#[test]
fn expunged_at_once_and_readable_for_who_was_not_told() {
    let world = World::new(4);
    for n in 1..=3 {
        world.deliver(&format!("cur/{n}.x:2,"), &message(n));
    }
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    listed(&account, inbox);
    let view = account.view(inbox, false).unwrap();
    expunge(&account, inbox, &[2]);
    assert_eq!(world.files(""), ["cur/1.x:2,", "cur/3.x:2,"]);
    let id = view.entry_of(model::Uid::new(2).unwrap()).unwrap().email_id;
    let mut text = Vec::new();
    account.reader().read(id, 0..u64::MAX, &mut text).unwrap();
    assert_eq!(text, served(2).as_bytes());
    account.write_back(inbox, Moment::Close).unwrap();
    assert!(account.reader().read(id, 0..u64::MAX, &mut text).is_err());
    assert_eq!(listed(&account, inbox), ["1:1", "3:3"]);
}

#[test]
fn copies_and_moves() {
    let world = World::new(5);
    for n in 1..=3 {
        world.deliver(&format!("cur/{n}.x:2,S"), &message(n));
    }
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let other = account.create_mailbox(&name("a/b"), &[]).unwrap();
    listed(&account, inbox);
    account.copy(inbox, &uids(&[1, 2]), other).unwrap();
    account.move_entries(inbox, &uids(&[2, 3]), other).unwrap();
    assert_eq!(world.files(""), ["cur/1.x:2,S"]);
    assert_eq!(world.files(".a.b").len(), 4);
    assert_eq!(listed(&account, other), ["1:1 \\Seen", "2:2 \\Seen", "3:2 \\Seen", "4:3 \\Seen"]);
    account.copy(other, &uids(&[4]), other).unwrap();
    // A mailbox that goes leaves what others have.
    account.copy(other, &uids(&[5]), inbox).unwrap();
    account.delete_mailbox(&name("a/b")).unwrap();
    assert!(!world.env.disk.exists(&std::path::Path::new(crate::support::ROOT).join(".a.b")).unwrap());
    assert_eq!(listed(&account, inbox), ["1:1 \\Seen", "4:3 \\Seen"]);
    drop((store, account));
    let (_store, account) = world.open();
    assert_eq!(listed(&account, inbox), ["1:1 \\Seen", "4:3 \\Seen"]);
    assert!(account.check().unwrap().findings.is_empty());
}

#[test]
fn renamed_and_deleted() {
    let world = World::new(6);
    let (_store, account) = world.open();
    let id = account.create_mailbox(&name("a/b"), &[]).unwrap();
    append(&account, id, &served(1), "\\Seen");
    account.rename_mailbox(&name("a"), &name("x")).unwrap();
    assert_eq!(world.files(".x.b").len(), 1);
    assert_eq!(listed(&account, id), ["1:1 \\Seen"]);
    // What was delivered and never seen is not removed with the mailbox.
    world.deliver(".x.b/new/9.x", &message(9));
    account.delete_mailbox(&name("x/b")).unwrap();
    let again = account.mailbox(&name("x/b")).unwrap();
    assert_ne!(again, id);
    assert_eq!(listed(&account, again), ["1:9"]);
}

#[test]
fn large_messages_are_read_in_pieces() {
    let world = World::new(7);
    let body: String = (0..40_000).map(|n| format!("line {n}\n")).collect();
    world.deliver("cur/1.x:2,", &format!("Subject: 1\n\n{body}"));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let whole = all(&account, inbox).remove(0).2;
    assert_eq!(whole, format!("Subject: 1\r\n\r\n{}", body.replace('\n', "\r\n")));
    let id = account.view(inbox, false).unwrap().all_rows().next().unwrap().email_id;
    let mut reader = account.reader();
    let mut read = |range: std::ops::Range<usize>| {
        let mut bytes = Vec::new();
        reader.read(id, range.start as u64..range.end as u64, &mut bytes).unwrap();
        assert_eq!(bytes, &whole.as_bytes()[range]);
    };
    for start in (0..whole.len()).step_by(30_000) {
        read(start..whole.len().min(start + 30_000));
    }
    read(100_000..100_010);
    read(5..10);
}
