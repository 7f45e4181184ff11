//! From the files into the log.

use model::ErrorKind;
use store::StoreMode;

use crate::support::{World, all, append, listed, message, name, served, set_flags};

#[test]
fn opens_what_is_there() {
    let world = World::new(1);
    world.deliver("cur/20.b:2,FSab", &message(2));
    world.deliver("cur/3.a,S=19:2,", &message(1));
    world.deliver("new/100.c", &message(3));
    world.put("dovecot-keywords", "0 $Junk\n1 work\n");
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["1:1", "2:2 \\Flagged \\Seen $Junk work", "3:3"]);
    assert_eq!(all(&account, inbox)[0].2, served(1));
    drop((store, account));
    // Opening wrote nothing into it, and the next opening knows it all.
    assert_eq!(world.files(""), ["cur/20.b:2,FSab", "cur/3.a,S=19:2,", "new/100.c"]);
    let (_store, account) = world.open();
    assert_eq!(listed(&account, inbox), ["1:1", "2:2 \\Flagged \\Seen $Junk work", "3:3"]);
}

#[test]
fn what_others_do() {
    let world = World::new(2);
    for n in 1..=4 {
        world.deliver(&format!("new/{n}.x"), &message(n));
    }
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["1:1", "2:2", "3:3", "4:4"]);
    world.rename("new/1.x", "cur/1.x:2,S");
    world.rename("new/2.x", "cur/2.x,U=7:2,F");
    world.remove("new/3.x");
    world.deliver("new/5.x", &message(5));
    assert_eq!(listed(&account, inbox), ["1:1 \\Seen", "2:2 \\Flagged", "4:4", "5:5"]);
    // What a client has changed meanwhile stays.
    set_flags(&account, inbox, 1, StoreMode::Add, "\\Answered");
    assert!(world.files("").contains(&"cur/1.x:2,RS".to_owned()));
    world.rename("cur/1.x:2,RS", "cur/1.x:2,DRT");
    assert_eq!(listed(&account, inbox)[0], "1:1 \\Answered \\Deleted \\Draft");
    // Another base and nothing in common with the first but the contents.
    world.rename("new/4.x", "cur/44.y:2,");
    assert_eq!(listed(&account, inbox)[2], "4:4");
    // Back into `new`, as mutt does.
    world.rename("cur/44.y:2,", "new/44.y");
    assert_eq!(listed(&account, inbox)[2], "4:4");
}

#[test]
fn equal_messages_are_as_many_as_there_are() {
    let world = World::new(3);
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    append(&account, inbox, &served(1), "");
    world.deliver("new/1.x", &message(1));
    world.deliver("new/2.x", &message(1));
    assert_eq!(listed(&account, inbox), ["1:1", "2:1", "3:1"]);
    world.remove("new/1.x");
    assert_eq!(listed(&account, inbox), ["1:1", "3:1"]);
    drop((store, account));
    // The same without an index.
    world.store().repair(&crate::support::ann()).unwrap();
    let (_store, account) = world.open();
    assert_eq!(listed(&account, inbox), ["1:1", "3:1"]);
    assert_eq!(world.files("").len(), 2);
}

#[test]
fn mailboxes_of_others() {
    let world = World::new(4);
    world.make(".a.b");
    world.deliver(".a.b/new/1.x", &message(1));
    let (_store, account) = world.open();
    let names = |account: &store::Account| {
        account.mailboxes().iter().map(|info| info.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&account), "INBOX a a/b");
    let id = account.mailbox(&name("a/b")).unwrap();
    assert_eq!(listed(&account, id), ["1:1"]);
    world.make(".Entw&APw-rfe");
    assert_eq!(names(&account), "Entwürfe INBOX a a/b");
    // Somebody removes a mailbox: it is there and empty.
    world.remove(".a.b/new/1.x");
    for subdir in ["tmp", "new", "cur", ""] {
        world.env.disk.remove_dir(&std::path::Path::new(crate::support::ROOT).join(".a.b").join(subdir)).unwrap();
    }
    assert_eq!(listed(&account, id), Vec::<String>::new());
    assert_eq!(append(&account, id, &served(2), "").get(), 2);
    assert_eq!(listed(&account, id), ["2:2"]);
    assert_eq!(world.files(".a.b").len(), 1);
}

/// As Dovecot or Courier leave an account: a client that knew the old server sees the same UIDs.
#[test]
fn uids_of_another_server() {
    let world = World::new(8);
    for (file, n) in [("cur/1.a,S=19:2,S", 1), ("cur/2.b:2,", 2), ("new/3.c", 3)] {
        world.deliver(file, &message(n));
    }
    world.put("dovecot-uidlist", "3 V1275660208 N25 G3085f01b\n7 :2.b:2,\n9 :1.a,S=19\n");
    world.put("subscriptions", "V\t2\n\na\tb\nINBOX\n");
    world.make(".x");
    world.deliver(".x/cur/1.d:2,", &message(4));
    world.put(".x/courierimapuiddb", "1 1275660300 26\n25 1.d\n");
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["7:2", "9:1 \\Seen", "25:3"]);
    assert_eq!(account.status(inbox).unwrap().uid_validity.get(), 1_275_660_208);
    let other = account.mailbox(&name("x")).unwrap();
    assert_eq!(listed(&account, other), ["25:4"]);
    assert_eq!(account.status(other).unwrap().uid_validity.get(), 1_275_660_300);
    let subscribed = account.mailboxes().into_iter().filter(|info| info.subscribed);
    assert_eq!(subscribed.map(|info| info.name.to_string()).collect::<Vec<_>>(), ["INBOX", "a/b"]);
}

#[test]
fn an_inbox_that_is_not_there_is_not_empty() {
    let world = World::new(5);
    world.deliver("new/1.x", &message(1));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["1:1"]);
    let (root, away) = (std::path::Path::new(crate::support::ROOT), std::path::Path::new("/home/ann/away"));
    world.env.disk.rename(root, away).unwrap();
    world.pass();
    assert_eq!(account.refresh(inbox).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(account.status(inbox).unwrap().messages, 1);
    world.env.disk.rename(away, root).unwrap();
    world.pass();
    assert_eq!(listed(&account, inbox), ["1:1"]);
}

#[test]
fn the_index_can_be_lost() {
    let world = World::new(6);
    world.deliver("new/1.x", &message(1));
    world.deliver("cur/2.x:2,S", &message(2));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    listed(&account, inbox);
    append(&account, inbox, &served(3), "\\Flagged");
    set_flags(&account, inbox, 2, StoreMode::Remove, "\\Seen");
    let before = listed(&account, inbox);
    let files = world.files("");
    drop((store, account));
    world.store().repair(&crate::support::ann()).unwrap();
    let (_store, account) = world.open();
    assert_eq!(listed(&account, inbox), before);
    assert_eq!(world.files(""), files);
    assert!(account.check().unwrap().findings.is_empty());
}

#[test]
fn a_message_that_was_changed_is_damaged() {
    let world = World::new(7);
    world.deliver("cur/1.x:2,", &message(1));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let id = {
        account.refresh(inbox).unwrap();
        account.view(inbox, false).unwrap().all_rows().next().unwrap().email_id
    };
    world.deliver("cur/1.x:2,", &message(2));
    let error = account.reader().read(id, 0..u64::MAX, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert_eq!(account.check().unwrap().findings.len(), 1);
}
