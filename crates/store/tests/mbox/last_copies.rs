//! A message is not lost with the file that alone has its octets: copies and moves that could not be written, and then DELETE, RENAME, a restart.

use std::path::Path;

use platform::{LockMode, LockTable, OpenMode};
use store::Moment;

use crate::support::*;

fn texts(from: u32, to: u32) -> String {
    (from..=to).map(|n| message(n, "")).collect()
}

fn path(mailbox: &str) -> String {
    format!("{ROOT}/{}", mailbox.replace('/', ".sbd/"))
}

fn exists(world: &World, mailbox: &str) -> bool {
    world.env.disk.exists(Path::new(&path(mailbox))).unwrap()
}

/// Another program keeps a file locked until this is dropped.
fn hold(world: &World, mailbox: &str) -> platform::LockGuard {
    let file = world.env.disk.open(Path::new(&path(mailbox)), OpenMode::Create).unwrap();
    file.try_lock(LockTable::Fcntl, LockMode::Exclusive).unwrap()
}

/// `from` has messages 1 and 2, of which the first is copied or moved to `to` while that is locked.
fn begin(world: &World, is_move: bool) {
    world.write(&path("from"), &texts(1, 2));
    world.write(&path("to"), &texts(7, 7));
    let (store, account) = world.open();
    let [from, to] = ["from", "to"].map(|text| account.mailbox(&name(text)).unwrap());
    assert_eq!(numbers(&account, from).len() + numbers(&account, to).len(), 3);
    let _held = hold(world, "to");
    let one = uids(&[1]);
    let done = if is_move { account.move_entries(from, &one, to) } else { account.copy(from, &one, to) };
    done.unwrap();
    assert_eq!(world.read(&path("to")), texts(7, 7));
    world.env.clock.sleep(std::time::Duration::from_secs(2));
    // Closing the account writes what can be written; the file is still locked.
    drop((account, store));
}

/// `to` has its message, and it gets into its file.
fn end(world: &World, to: &str) {
    let (store, account) = world.open();
    let id = account.mailbox(&name(to)).unwrap();
    let found: Vec<String> = numbers(&account, id).into_iter().map(|(_, number)| number).collect();
    assert_eq!(found, ["7", "1"]);
    account.write_back(id, Moment::Close).unwrap();
    store.maintain().unwrap();
    assert_eq!(world.read(&path(to)).matches("\nSubject: 1\n").count(), 1);
}

#[test]
fn the_source_is_deleted() {
    for is_move in [false, true] {
        let world = World::new(1);
        begin(&world, is_move);
        {
            let _held = hold(&world, "to");
            let (_store, account) = world.open();
            account.delete_mailbox(&name("from")).unwrap();
            assert!(exists(&world, "from"));
        }
        assert!(exists(&world, "from"));
        end(&world, "to");
        assert!(!exists(&world, "from"), "not needed any more");
    }
}

/// Whatever can be derived is lost, too, so that nobody knows what is in the file.
#[test]
fn the_source_is_deleted_and_nothing_is_known_of_it() {
    for since_when in 0..3 {
        let world = World::new(2);
        begin(&world, false);
        if since_when == 0 {
            world.store().repair(&ann()).unwrap();
        }
        {
            let _held = hold(&world, "to");
            let (_store, account) = world.open();
            account.delete_mailbox(&name("from")).unwrap();
        }
        if since_when == 1 {
            world.store().repair(&ann()).unwrap();
        }
        if since_when == 2 {
            // Others do not know that it is deleted.
            world.deliver(&path("from"), &texts(3, 3));
            let _held = hold(&world, "to");
            let (_store, account) = world.open();
            assert_eq!(account.mailboxes().len(), 2, "nobody sees it as long as it is kept");
        }
        end(&world, "to");
        // What others have put there, or may have, is seen again.
        assert_eq!(exists(&world, "from"), since_when == 2, "{since_when}");
        if since_when == 2 {
            let (_store, account) = world.open();
            let from = account.mailbox(&name("from")).unwrap();
            assert!(numbers(&account, from).iter().any(|(_, number)| number == "3"));
        }
    }
}

/// The file of a third mailbox has the octets as well, but they are about to leave it.
#[test]
fn what_is_in_a_file_that_it_leaves_does_not_count() {
    let world = World::new(3);
    world.write(&path("a"), &texts(1, 1));
    world.write(&path("to"), &texts(7, 7));
    let (store, account) = world.open();
    let [a, to] = ["a", "to"].map(|text| account.mailbox(&name(text)).unwrap());
    assert_eq!(numbers(&account, a).len() + numbers(&account, to).len(), 2);
    let b = account.create_mailbox(&name("b"), &[]).unwrap();
    account.copy(a, &uids(&[1]), b).unwrap();
    assert!(world.read(&path("b")).contains("Subject: 1"));
    {
        let _held = hold(&world, "to");
        account.move_entries(a, &uids(&[1]), to).unwrap();
        account.delete_mailbox(&name("b")).unwrap();
        // Another program takes it out of the file that everybody relied on.
        world.write(&path("a"), "");
        assert!(exists(&world, "b"));
        assert_eq!(numbers(&account, a), []);
        drop((account, store));
    }
    end(&world, "to");
    assert!(!exists(&world, "b"));
}

#[test]
fn both_are_renamed_and_one_is_made_anew() {
    let world = World::new(4);
    begin(&world, false);
    {
        let _held = hold(&world, "to");
        let (_store, account) = world.open();
        account.rename_mailbox(&name("from"), &name("x/from")).unwrap();
        world.pass();
        account.delete_mailbox(&name("x/from")).unwrap();
        let again = account.create_mailbox(&name("x/from"), &[]).unwrap();
        assert_eq!(numbers(&account, again), []);
        append(&account, again, &served(5), "");
        account.rename_mailbox(&name("to"), &name("x/to")).unwrap();
    }
    end(&world, "x/to");
    let (_store, account) = world.open();
    let again = account.mailbox(&name("x/from")).unwrap();
    assert_eq!(numbers(&account, again), [(1, "5".to_owned())]);
    // The kept file is gone, and the new mailbox has its name.
    assert!(world.read(&path("x/from")).contains("Subject: 5"));
}
