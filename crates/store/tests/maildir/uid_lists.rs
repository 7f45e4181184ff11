//! `dovecot-uidlist`: what Dovecot wrote is believed, and what we gave is written, so that both say the same.

use store::{Account, UidLists};

use crate::support::{ROOT, World, append, expunge, listed, message, name, served, set_flags};
use store::StoreMode;

const LIST: &str = "dovecot-uidlist";

/// The lines of a list behind the first: `UID:BASE`, of our own names only what says what they are.
fn lines(world: &World, maildir: &str) -> Vec<String> {
    let text = world.read(&format!("{maildir}{LIST}"));
    let short = |base: &str| if base.contains('R') { "ours".to_owned() } else { base.to_owned() };
    text.lines()
        .skip(1)
        .map(|line| {
            let (fields, name) = line.split_once(" :").unwrap();
            let uid = fields.split(' ').next().unwrap();
            format!("{uid}:{}", short(name.split(":2,").next().unwrap()))
        })
        .collect()
}

fn first_line(world: &World, maildir: &str) -> String {
    world.read(&format!("{maildir}{LIST}")).lines().next().unwrap().to_owned()
}

/// Dovecot adds lines.
fn add(world: &World, lines: &str) {
    world.env.disk.append(&std::path::Path::new(ROOT).join(LIST), lines.as_bytes()).unwrap();
    world.pass();
}

fn validity(account: &Account, text: &str) -> u32 {
    account.status(account.mailbox(&name(text)).unwrap()).unwrap().uid_validity.get()
}

#[test]
fn both_add_to_it() {
    let world = World::new(1);
    world.deliver("new/1.a", &message(1));
    world.put(LIST, "3 V77 N4 Gabc\n3 W9 :1.a\n");
    let (_store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["3:1"]);
    world.deliver("new/2.b", &message(2));
    assert_eq!(listed(&account, inbox), ["3:1", "4:2"]);
    assert_eq!(append(&account, inbox, &served(3), "\\Seen").get(), 5);
    assert_eq!(lines(&world, ""), ["3:1.a", "4:2.b", "5:ours"]);
    // Dovecot was first, and we have not looked.
    world.deliver("new/4.d", &message(4));
    add(&world, "6 :4.d\n");
    assert_eq!(append(&account, inbox, &served(5), "").get(), 7);
    assert_eq!(listed(&account, inbox), ["3:1", "4:2", "5:3 \\Seen", "6:4", "7:5"].map(str::to_owned)[..].to_vec());
    assert_eq!(lines(&world, ""), ["3:1.a", "4:2.b", "5:ours", "6:4.d", "7:ours"]);
    // Flags change names, and no line.
    set_flags(&account, inbox, 4, StoreMode::Add, "\\Flagged");
    expunge(&account, inbox, &[5]);
    assert_eq!(lines(&world, "").len(), 5);
    assert_eq!(world.read(LIST).lines().next().unwrap(), "3 V77 N4 Gabc");
    assert!(!world.env.disk.exists(&std::path::Path::new(ROOT).join("dovecot-uidlist.lock")).unwrap());
}

#[test]
fn made_where_it_is_wanted() {
    for (policy, inbox_has_one, is_made) in [
        (UidLists::Auto, false, false),
        (UidLists::Auto, true, true),
        (UidLists::Always, false, true),
        (UidLists::Never, true, false),
    ] {
        let mut world = World::new(2);
        world.options.maildir.uid_lists = policy;
        if inbox_has_one {
            world.put(LIST, "3 V77 N4\n");
        }
        let (store, account) = world.open();
        let id = account.create_mailbox(&name("work"), &[]).unwrap();
        if policy == UidLists::Always {
            account.mailbox(&name("INBOX")).unwrap();
            assert_eq!(first_line(&world, ""), format!("3 V{} N1", validity(&account, "INBOX")));
        }
        let is_there =
            |maildir: &str| world.env.disk.exists(&std::path::Path::new(ROOT).join(maildir).join(LIST)).unwrap();
        // Before Dovecot could give it a UIDVALIDITY of its own.
        assert_eq!(is_there(".work"), is_made, "{policy:?}");
        append(&account, id, &served(1), "");
        while store.maintain().unwrap() {}
        assert_eq!(is_there(".work"), is_made, "{policy:?}");
        if is_made {
            assert_eq!(first_line(&world, ".work/"), format!("3 V{} N2", validity(&account, "work")));
            assert_eq!(lines(&world, ".work/"), ["1:ours"]);
        }
        if policy == UidLists::Never {
            assert_eq!(world.read(LIST), "3 V77 N4\n");
        }
    }
}

#[test]
fn what_is_another_servers_own_is_left_alone() {
    let world = World::new(3);
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    append(&account, inbox, &served(1), "");
    // Dovecot comes when the mailbox has its UIDVALIDITY.
    let theirs = "3 V5 N9 Gabc\n8 :1.x\n";
    world.put(LIST, theirs);
    world.deliver("new/1.x", &message(2));
    assert_eq!(listed(&account, inbox), ["1:1", "2:2"]);
    append(&account, inbox, &served(3), "");
    while store.maintain().unwrap() {}
    assert_eq!(world.read(LIST), theirs);
}

#[test]
fn what_is_missing_is_added_when_the_lock_is_free() {
    let world = World::new(4);
    world.put(LIST, "3 V77 N1\n");
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    world.put("dovecot-uidlist.lock", "");
    world.deliver("new/1.a", &message(1));
    assert_eq!(listed(&account, inbox), ["1:1"]);
    append(&account, inbox, &served(2), "");
    assert_eq!(lines(&world, ""), Vec::<String>::new());
    world.remove("dovecot-uidlist.lock");
    while store.maintain().unwrap() {}
    assert_eq!(lines(&world, ""), ["1:1.a", "2:ours"]);
    // Nobody keeps a lock that long.
    world.put("dovecot-uidlist.lock", "");
    world.env.clock.sleep(std::time::Duration::from_secs(200));
    append(&account, inbox, &served(3), "");
    assert_eq!(lines(&world, "").len(), 3);
}

/// Both gave the same UID at the same moment: each stays with what it told its clients.
#[test]
fn uids_that_both_have_given() {
    let world = World::new(5);
    world.put(LIST, "3 V77 N1\n");
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    append(&account, inbox, &served(1), "");
    world.put("dovecot-uidlist.lock", "");
    assert_eq!(append(&account, inbox, &served(2), "").get(), 2);
    add(&world, "2 :9.z\n");
    world.remove("dovecot-uidlist.lock");
    world.deliver("new/9.z", &message(9));
    assert_eq!(listed(&account, inbox), ["1:1", "2:2", "3:9"]);
    while store.maintain().unwrap() {}
    assert_eq!(lines(&world, ""), ["1:ours", "2:9.z"]);
    // The next ones agree again.
    assert_eq!(append(&account, inbox, &served(4), "").get(), 4);
    assert_eq!(lines(&world, ""), ["1:ours", "2:9.z", "4:ours"]);
}

#[test]
fn of_couriers_list_dovecots_is_made() {
    let mut world = World::new(6);
    world.options.maildir.uid_lists = UidLists::Always;
    world.deliver("cur/1.d:2,S", &message(1));
    world.put("courierimapuiddb", "1 1275660300 26\n25 1.d\n");
    let (store, account) = world.open();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    assert_eq!(listed(&account, inbox), ["25:1 \\Seen"]);
    assert_eq!(append(&account, inbox, &served(2), "").get(), 26);
    while store.maintain().unwrap() {}
    assert!(first_line(&world, "").starts_with("3 V1275660300 N2"));
    assert_eq!(lines(&world, ""), ["25:1.d", "26:ours"]);
}
