//! `maildirsize`, for delivery agents that look at quotas.

use std::time::Duration;

use store::{Account, OwnLimit, OwnLimits, QuotaLimits, Store, StoreMode};

use crate::support::{World, append, expunge, message, name, served, set_flags};

/// The first line, and octets and messages as the sum of the others.
pub fn read(world: &World) -> (String, i64, i64) {
    let text = world.read("maildirsize");
    let mut lines = text.lines();
    let first = lines.next().unwrap().to_owned();
    let numbers =
        lines.map(|line| line.split_ascii_whitespace().map(|word| word.parse::<i64>().unwrap()).collect::<Vec<_>>());
    let sum = numbers.fold((0, 0), |(bytes, count), line| (bytes + line[0], count + line[1]));
    (first, sum.0, sum.1)
}

fn maintain(world: &World, store: &Store) {
    world.pass();
    while store.maintain().unwrap() {}
}

/// Octets of the file of a message.
fn octets(n: u32) -> i64 {
    message(n).len() as i64
}

fn exists(world: &World) -> bool {
    world.env.disk.exists(&std::path::Path::new(crate::support::ROOT).join("maildirsize")).unwrap()
}

fn limit(account: &Account, storage_kib: OwnLimit, messages: OwnLimit) {
    account.set_own_limits(OwnLimits { storage_kib, messages }).unwrap();
}

#[test]
fn our_changes_are_told() {
    let world = World::new(1);
    world.deliver("cur/1.x:2,T", &message(1));
    world.deliver("cur/2.x:2,", &message(2));
    world.put("maildirsize", &format!("5000S,10C\n{} 1\n", octets(2)));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    let is = |bytes: i64, count: i64| assert_eq!(read(&world), ("5000S,10C".to_owned(), bytes, count));
    account.refresh(inbox).unwrap();
    append(&account, inbox, &served(3), "");
    is(octets(2) + octets(3), 2);
    // What has the flag does not count, whatever its name says of its size.
    set_flags(&account, inbox, 2, StoreMode::Add, "\\Deleted");
    is(octets(3), 1);
    set_flags(&account, inbox, 1, StoreMode::Remove, "\\Deleted");
    is(octets(1) + octets(3), 2);
    expunge(&account, inbox, &[1]);
    is(octets(3), 1);
    let trash = account.create_mailbox(&name("Trash"), &[]).unwrap();
    let other = account.create_mailbox(&name("other"), &[]).unwrap();
    append(&account, other, &served(4), "");
    is(octets(3) + octets(4), 2);
    account.move_entries(inbox, &crate::support::uids(&[3]), trash).unwrap();
    is(octets(4), 1);
    account.delete_mailbox(&name("other")).unwrap();
    is(0, 0);
    // The same when it is made anew.
    world.env.clock.sleep(Duration::from_secs(1000));
    maintain(&world, &store);
    assert_eq!(world.read("maildirsize").lines().count(), 2);
    is(0, 0);
}

#[test]
fn made_anew_when_it_is_old_long_or_broken() {
    let world = World::new(2);
    world.deliver("cur/1.x,S=7:2,", &message(1));
    world.deliver("new/2.x", &message(2));
    let sum = octets(2) + 7;
    world.put("maildirsize", "1000000S\n9 9\n");
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    account.refresh(inbox).unwrap();
    maintain(&world, &store);
    assert_eq!(read(&world), ("1000000S".to_owned(), 9, 9), "somebody has written it just now");
    world.env.clock.sleep(Duration::from_secs(901));
    maintain(&world, &store);
    assert_eq!(read(&world), ("1000000S".to_owned(), sum, 2));
    // Nothing has happened since: it is left alone.
    world.env.clock.sleep(Duration::from_secs(901));
    world.sim.disk.start_trace();
    maintain(&world, &store);
    assert!(!world.sim.disk.take_trace().iter().any(|line| line.contains("maildirsize")));
    // Another program delivers, and tells nobody.
    world.deliver("new/3.x", &message(3));
    account.refresh(inbox).unwrap();
    maintain(&world, &store);
    assert_eq!(read(&world), ("1000000S".to_owned(), sum + octets(3), 3));
    let long = format!("1000000S\n{}", "1 1         \n".repeat(450));
    for broken in ["1000000S\nx\n", "1000000S\n-1 -1\n", &long] {
        world.put("maildirsize", broken);
        maintain(&world, &store);
        assert_eq!(read(&world), ("1000000S".to_owned(), sum + octets(3), 3));
    }
}

#[test]
fn made_for_limits() {
    let mut world = World::new(3);
    world.options.quota = QuotaLimits { storage_kib: None, messages: Some(1000) };
    world.deliver("cur/1.x:2,", &message(1));
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    account.refresh(inbox).unwrap();
    maintain(&world, &store);
    assert_eq!(read(&world), ("1000C".to_owned(), octets(1), 1));
    limit(&account, OwnLimit::Limit(10), OwnLimit::Default);
    maintain(&world, &store);
    assert_eq!(read(&world), ("10240S,1000C".to_owned(), octets(1), 1));
    // Without limits it is left as it is.
    limit(&account, OwnLimit::None, OwnLimit::None);
    append(&account, inbox, &served(2), "");
    maintain(&world, &store);
    assert_eq!(read(&world), ("10240S,1000C".to_owned(), octets(1) + octets(2), 2));
    world.remove("maildirsize");
    append(&account, inbox, &served(3), "");
    maintain(&world, &store);
    assert!(!exists(&world));
}
