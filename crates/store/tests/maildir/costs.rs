//! What looking at a Maildir costs, in questions to the file system: they are counted in a small mailbox and in a large one, and are as many.

use std::path::Path;

use platform::OpenMode;
use platform::sim::Stats;

use crate::support::{ROOT, World, append, expunge, listed, message, name, served, set_flags};
use store::{Account, StoreMode};

/// Directories that were listed, files that were asked for, files that were opened.
type Cost = (u64, u64, u64);

/// What `work` costs.
fn cost(world: &World, work: impl FnOnce()) -> Cost {
    let before = world.sim.disk.stats();
    work();
    let after = world.sim.disk.stats();
    let of = |what: fn(&Stats) -> u64| what(&after) - what(&before);
    (of(|stats| stats.lists), of(|stats| stats.looks), of(|stats| stats.opens))
}

/// With `count` messages of another program, that were seen before.
fn world(count: u32) -> World {
    let world = World::new(u64::from(count));
    for n in 0..count {
        let path = Path::new(ROOT).join(format!("cur/{n}.x:2,"));
        let file = world.env.disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(message(n).as_bytes(), 0).unwrap();
        file.sync_all().unwrap();
    }
    world.env.disk.sync_dir(&Path::new(ROOT).join("cur")).unwrap();
    world.pass();
    let (_store, account) = world.open();
    assert_eq!(refreshed(&account), count);
    world
}

fn refreshed(account: &Account) -> u32 {
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    account.refresh(inbox).unwrap();
    account.status(inbox).unwrap().messages
}

/// A small mailbox, and one in which every look at all files would show.
const COUNTS: [u32; 2] = [20, 3000];

/// The costs in both, which are the same; `what` is done with `count` messages in the mailbox.
fn same_for_both(what: impl Fn(&World, u32) -> Cost) -> Cost {
    let [small, large] = COUNTS.map(|count| what(&world(count), count));
    assert_eq!(small, large);
    small
}

#[test]
fn opening_when_nothing_has_changed() {
    same_for_both(|world, count| {
        let (_store, account) = world.open();
        let cost = cost(world, || assert_eq!(refreshed(&account), count));
        assert_eq!((cost.0, cost.2), (0, 1), "no directory is listed, and no file is opened but the map");
        cost
    });
}

#[test]
fn opening_after_our_own_changes() {
    same_for_both(|world, count| {
        {
            let (store, account) = world.open();
            let inbox = account.mailbox(&name("INBOX")).unwrap();
            refreshed(&account);
            append(&account, inbox, &served(count), "\\Flagged");
            set_flags(&account, inbox, 3, StoreMode::Add, "\\Seen");
            expunge(&account, inbox, &[4]);
            world.pass();
            // The store closes what nobody uses.
            drop(account);
            drop(store);
        }
        let (_store, account) = world.open();
        let cost = cost(world, || assert_eq!(refreshed(&account), count));
        assert_eq!((cost.0, cost.2), (0, 1));
        cost
    });
}

#[test]
fn opening_after_a_change_of_others_lists_once() {
    same_for_both(|world, count| {
        world.deliver("new/a.x", &message(count));
        world.rename("cur/3.x:2,", "cur/3.x:2,S");
        let (_store, account) = world.open();
        let cost = cost(world, || assert_eq!(refreshed(&account), count + 1));
        assert_eq!(cost.0, 2, "both directories are listed");
        cost
    });
}

#[test]
fn changes_of_others_are_looked_at_by_name() {
    same_for_both(|world, count| {
        let (_store, account) = world.open();
        refreshed(&account);
        let inbox = account.mailbox(&name("INBOX")).unwrap();
        let cost = cost(world, || {
            world.deliver("new/a.x", &message(count));
            assert_eq!(refreshed(&account), count + 1);
            world.rename("new/a.x", "cur/a.x:2,FS");
            world.rename("cur/3.x:2,", "cur/3.x,U=7:2,S");
            assert_eq!(refreshed(&account), count + 1);
            world.remove("cur/4.x:2,");
            assert_eq!(refreshed(&account), count);
            append(&account, inbox, &served(count), "");
            expunge(&account, inbox, &[1]);
            set_flags(&account, inbox, 2, StoreMode::Add, "\\Seen");
            assert_eq!(refreshed(&account), count);
        });
        assert_eq!(cost.0, 0, "nothing is listed");
        assert!(cost.1 < 50 && cost.2 < 20, "{cost:?}");
        cost
    });
}

/// What was told is used; what could not be is looked for.
#[test]
fn the_same_as_a_listing_shows() {
    let world = world(20);
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    refreshed(&account);
    world.rename("cur/1.x:2,", "cur/1.x,U=1:2,S");
    world.remove("cur/2.x:2,");
    // Out of the mailbox: it might be on its way.
    world.rename("cur/3.x:2,", "away");
    world.deliver("new/99.x", &message(99));
    world.rename("new/99.x", "cur/99.x:2,F");
    let told = listed(&account, inbox);
    assert_eq!((told[1].as_str(), told.len()), ("2:1 \\Seen", 19));
    assert!(told.contains(&"21:99 \\Flagged".to_owned()));
    drop((_store, account));
    let (_store, account) = world.open();
    assert_eq!(listed(&account, inbox), told);
}
