//! What a check finds, and what must not get lost.

use std::path::Path;

use platform::sim::RandomFaults;
use store::{Account, StoreMode};

use crate::support::{ROOT, World, append, listed, message, name, served, set_flags, uids};

fn findings(account: &Account) -> Vec<String> {
    let found = account.check().unwrap().findings;
    found.into_iter().map(|finding| format!("{}: {}", finding.file.display(), finding.what)).collect()
}

/// A world with three messages that have been seen: one of them came through us.
fn world(seed: u64) -> (World, std::sync::Arc<store::Store>, std::sync::Arc<Account>) {
    let world = World::new(seed);
    world.deliver("cur/1.x,S=19,W=22:2,S", &message(1));
    world.deliver("new/2.x", &message(2));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    listed(&account, inbox);
    append(&account, inbox, &served(3), "\\Flagged work");
    assert_eq!(findings(&account), Vec::<String>::new());
    (world, store, account)
}

#[track_caller]
fn one(account: &Account, what: &str) {
    let found = findings(account);
    assert!(found.len() == 1 && found[0].contains(what), "{found:?}");
}

#[test]
fn a_file_that_is_served_to_nobody() {
    let (world, _store, account) = world(1);
    world.deliver("new/1.x,S=19,W=22", &message(9));
    one(&account, "another file has the same base name");
    world.remove("new/1.x,S=19,W=22");
    assert_eq!(findings(&account), Vec::<String>::new());
}

#[test]
fn entries_without_a_file() {
    let (world, _store, account) = world(2);
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    // The log takes a message, and the Maildir does not.
    world.sim.disk.set_random_faults(RandomFaults { names_fail_one_in: 1, ..RandomFaults::default() });
    append(&account, inbox, &served(4), "");
    world.sim.disk.clear_faults();
    one(&account, "UID 4 has no file");
    account.write_back(inbox, store::Moment::Idle).unwrap();
    assert_eq!(findings(&account), Vec::<String>::new());
}

#[test]
fn octets_that_are_others() {
    let (world, _store, account) = world(3);
    world.sim.disk.corrupt(&Path::new(ROOT).join("new/2.x"), 9, 1).unwrap();
    assert_eq!(findings(&account).len(), 1);
    world.sim.disk.corrupt(&Path::new(ROOT).join("new/2.x"), 9, 1).unwrap();
    // One of which the log has the octets as well.
    let ours = world.files("").into_iter().find(|file| file.contains('R')).unwrap();
    world.sim.disk.corrupt(&Path::new(ROOT).join(&ours), 9, 1).unwrap();
    one(&account, "it is not the message that UID 3 has");
}

#[test]
fn copies_are_read_one_by_one() {
    let (world, _store, account) = world(4);
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let other = account.create_mailbox(&name("other"), &[]).unwrap();
    account.copy(inbox, &uids(&[2]), other).unwrap();
    let copy = Path::new(ROOT).join(".other").join(&world.files(".other")[0]);
    // So that it has octets of its own.
    let octets = world.env.disk.read(&copy).unwrap();
    let temporary = Path::new(ROOT).join(".other/tmp/x");
    world.env.disk.replace_file(&temporary, &temporary.with_extension("new"), &octets).unwrap();
    world.env.disk.rename(&temporary, &copy).unwrap();
    world.pass();
    assert_eq!(findings(&account), Vec::<String>::new());
    world.sim.disk.corrupt(&copy, 9, 1).unwrap();
    let found = findings(&account);
    assert!(
        found.iter().any(|what| what.contains(".other") && what.contains("not the message that UID 1 has")),
        "{found:?}"
    );
}

#[test]
fn names_that_say_something_else() {
    let (world, _store, account) = world(5);
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    world.rename("new/2.x", "new/2.x,S=99,W=7");
    let found = findings(&account);
    assert!(found.len() == 2 && found.iter().all(|what| what.contains("says another number")), "{found:?}");
    world.rename("new/2.x,S=99,W=7", "new/2.x");
    // The letters have lost their meaning.
    let keywords = world.read("dovecot-keywords");
    world.remove("dovecot-keywords");
    one(&account, "the keyword work of UID 3 has no letter");
    world.put("dovecot-keywords", &keywords);
    assert_eq!(findings(&account), Vec::<String>::new());
    // Somebody has given the letter to another one, and the name was not changed since.
    world.put("dovecot-keywords", "0 other\n1 work\n");
    one(&account, "the name does not say the flags of UID 3");
    set_flags(&account, inbox, 1, StoreMode::Remove, "\\Seen");
}

/// Copied, and before the copy has a file the mailbox goes that had the message; and then the power.
#[test]
fn the_last_file_is_that_of_a_mailbox_which_is_gone() {
    for is_index_lost in [false, true] {
        let world = World::new(6);
        world.make(".a");
        world.deliver(".a/cur/1.x:2,S", &message(1));
        let (store, account) = world.open();
        let inbox = account.mailbox(&name("INBOX")).unwrap();
        let a = account.mailbox(&name("a")).unwrap();
        assert_eq!(listed(&account, a), ["1:1 \\Seen"]);
        drop((store, account));
        let (store, account) = world.open();
        listed(&account, a);
        world.sim.disk.set_random_faults(RandomFaults { names_fail_one_in: 1, ..RandomFaults::default() });
        account.copy(a, &uids(&[1]), inbox).unwrap();
        account.delete_mailbox(&name("a")).unwrap();
        drop((store, account));
        world.sim.disk.clear_faults();
        world.sim.disk.crash();
        world.pass();
        if is_index_lost {
            world.store().repair(&crate::support::ann()).unwrap();
        }
        let (store, account) = world.open();
        for _ in 0..2 {
            while store.maintain().unwrap() {}
            world.pass();
        }
        assert_eq!(listed(&account, inbox), ["1:1 \\Seen"], "{is_index_lost}");
        assert_eq!(findings(&account), Vec::<String>::new());
        assert_eq!(world.files("").len(), 1);
    }
}

/// The directory with the only file is away for a moment.
#[test]
fn what_cannot_be_looked_at_takes_nothing_with_it() {
    let world = World::new(7);
    world.make(".a");
    world.deliver(".a/cur/1.x:2,", &message(1));
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let a = account.mailbox(&name("a")).unwrap();
    assert_eq!(listed(&account, a), ["1:1"]);
    let (cur, away) = (Path::new(ROOT).join(".a/cur"), Path::new(ROOT).join("away"));
    world.env.disk.rename(&cur, &away).unwrap();
    world.pass();
    account.copy(a, &uids(&[1]), inbox).unwrap();
    assert!(account.write_back(inbox, store::Moment::Idle).is_err());
    assert_eq!(account.status(inbox).unwrap().messages, 1);
    world.env.disk.rename(&away, &cur).unwrap();
    world.pass();
    account.write_back(inbox, store::Moment::Idle).unwrap();
    assert_eq!(listed(&account, inbox), ["1:1"]);
    assert_eq!(world.files("").len(), 1);
}
