//! What the first look at an account's files finds: files that others hold, names that others have taken, lists that another server has left.

use std::path::Path;
use std::sync::Arc;

use model::{ErrorKind, MailboxName};
use platform::{LockMode, LockTable, OpenMode};
use store::format::mbox::lock::Method;
use store::{Account, Options, Store};

use crate::support::*;

fn open_with(world: &World, method: Method) -> (Arc<Store>, Arc<Account>) {
    let mut options = Options::default();
    (options.mbox.locks.read, options.mbox.locks.write) = (vec![method], vec![method]);
    let store = Store::open(world.env.clone(), "/data".into(), options).unwrap();
    let account = store.account(&ann()).unwrap();
    (store, account)
}

/// Another program holds `path` while `meanwhile` runs.
fn while_held(world: &World, method: Method, path: &str, meanwhile: impl FnOnce()) {
    let other = world.sim.as_process(4711).env();
    let table = match method {
        Method::Fcntl => LockTable::Fcntl,
        Method::Flock => LockTable::Flock,
        Method::Dotlock => {
            let dotlock = format!("{path}.lock");
            other.disk.open(Path::new(&dotlock), OpenMode::CreateNew).unwrap();
            meanwhile();
            return other.disk.remove(Path::new(&dotlock)).unwrap();
        }
    };
    let file = other.disk.open(Path::new(path), OpenMode::ReadWrite).unwrap();
    let _held = file.try_lock(table, LockMode::Exclusive).unwrap();
    meanwhile();
}

fn listed(account: &Account) -> Vec<String> {
    account.mailboxes().into_iter().filter(|info| info.id.is_some()).map(|info| info.name.to_string()).collect()
}

/// A mailbox that was never looked at, and whose file somebody has just now, is in use: not one that does not exist.
#[test]
fn files_that_others_hold() {
    for method in [Method::Fcntl, Method::Flock, Method::Dotlock] {
        for (path, text) in [(INBOX, "INBOX"), ("/home/ann/mail/work", "work"), ("/home/ann/mail/a/b", "a/b")] {
            let world = World::new(1);
            world.write(path, &message(1, ""));
            while_held(&world, method, path, || {
                let (_store, account) = open_with(&world, method);
                let before = world.env.clock.monotonic();
                let error = account.mailbox(&name(text)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InUse, "{method:?} {text}: {error}");
                // As long as the settings say, and no longer.
                let waited = world.env.clock.monotonic() - before;
                let most = Options::default().mbox.locks.wait_max * 2;
                assert!(waited <= most, "{waited:?}");
                assert_eq!(account.mailbox(&name("none")).unwrap_err().kind(), ErrorKind::NotFound);
            });
            let (_store, account) = open_with(&world, method);
            let id = account.mailbox(&name(text)).unwrap();
            assert_eq!(numbers(&account, id).len(), 1, "{method:?} {text}");
        }
    }
}

/// What is freed while somebody waits for it is had.
#[test]
fn files_that_are_freed_in_time() {
    let world = World::new(1);
    world.write(INBOX, &message(1, ""));
    let other = world.sim.as_process(4711).env();
    let file = other.disk.open(Path::new(INBOX), OpenMode::ReadWrite).unwrap();
    let held = file.try_lock(LockTable::Fcntl, LockMode::Exclusive).unwrap();
    let (_store, account) = world.open();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            loop {
                match account.mailbox(&name("INBOX")) {
                    Err(error) if error.kind() == ErrorKind::InUse => {}
                    found => return found.unwrap(),
                }
            }
        });
        drop(held);
        let id = waiting.join().unwrap();
        assert_eq!(numbers(&account, id).len(), 1);
    });
}

/// A directory has the name that a mailbox should have: its file is beside it, and says so by its name.
#[test]
fn names_that_directories_have() {
    let world = World::new(1);
    world.write("/home/ann/mail/Lists/rust", &message(1, ""));
    world.env.disk.create_dir_all_durable(Path::new("/home/ann/mail/empty")).unwrap();
    let (store, account) = world.open();
    assert_eq!(listed(&account), ["INBOX", "Lists/rust"]);
    let lists = account.create_mailbox(&name("Lists"), &[]).unwrap();
    append(&account, lists, &served(2), "");
    assert!(world.read("/home/ann/mail/Lists=2F").contains("Subject: 2"));
    let empty = account.create_mailbox(&name("empty"), &[]).unwrap();
    append(&account, empty, &served(3), "");
    assert!(world.read("/home/ann/mail/empty=2F").contains("Subject: 3"));
    // What is made below it is where the others look for it.
    let go = account.create_mailbox(&name("Lists/go"), &[]).unwrap();
    append(&account, go, &served(4), "");
    assert!(world.read("/home/ann/mail/Lists/go").contains("Subject: 4"));
    assert!(!world.env.disk.exists(Path::new("/home/ann/mail/Lists.sbd")).unwrap());
    // A rename onto such a name.
    account.create_mailbox(&name("x"), &[]).unwrap();
    account.delete_mailbox(&name("empty")).unwrap();
    account.rename_mailbox(&name("x"), &name("empty")).unwrap();
    let x = account.mailbox(&name("empty")).unwrap();
    append(&account, x, &served(5), "");
    assert!(world.read("/home/ann/mail/empty=2F").contains("Subject: 5"));
    // Found again without the record of names.
    drop((store, account));
    world.env.disk.remove(Path::new("/data/accounts/ann/mbox/names")).unwrap();
    let (_store, account) = world.open();
    assert_eq!(listed(&account), ["INBOX", "Lists", "Lists/go", "Lists/rust", "empty"]);
    for (text, number) in [("Lists", "2"), ("Lists/go", "4"), ("Lists/rust", "1"), ("empty", "5")] {
        let id = account.mailbox(&name(text)).unwrap();
        assert_eq!(numbers(&account, id).first().map(|(_, number)| number.as_str()), Some(number), "{text}");
    }
    // And both go away again.
    account.rename_mailbox(&name("Lists"), &name("lists")).unwrap();
    assert_eq!(listed(&account), ["INBOX", "empty", "lists", "lists/go", "lists/rust"]);
    assert!(world.read("/home/ann/mail/lists").contains("Subject: 2"));
    assert!(!world.env.disk.exists(Path::new("/home/ann/mail/Lists")).unwrap());
    assert_eq!(account.check().unwrap().findings, []);
}

/// Where no file can be, no mailbox is made.
#[test]
fn names_that_cannot_be() {
    let world = World::new(1);
    world.write("/home/ann/mail/a.sbd", "no directory\n");
    world.env.disk.create_dir_all_durable(Path::new("/home/ann/mail/b")).unwrap();
    world.env.disk.create_dir_all_durable(Path::new("/home/ann/mail/b=2F")).unwrap();
    let (_store, account) = world.open();
    account.create_mailbox(&name("c"), &[]).unwrap();
    for text in ["a/x", "b"] {
        let made = account.create_mailbox(&name(text), &[]).unwrap_err();
        assert_eq!(made.kind(), ErrorKind::NotPermitted, "{text}: {made}");
        let renamed = account.rename_mailbox(&name("c"), &name(text)).unwrap_err();
        assert_eq!(renamed.kind(), ErrorKind::NotPermitted, "{text}: {renamed}");
    }
    assert_eq!(listed(&account), ["INBOX", "c"]);
}

/// The subscriptions of the server before us are taken over once, with the account's INBOX.
#[test]
fn lists_of_other_servers() {
    for (path, text) in [
        ("/home/ann/mail/.subscriptions", "V\t2\n\nwork\tEntw&APw-rfe\nINBOX\n"),
        ("/home/ann/mail/subscriptions", "work/Entw&APw-rfe\nINBOX\n"),
        ("/home/ann/mail/.mailboxlist", "work/Entw&APw-rfe\nINBOX\n"),
        ("/home/ann/.mailboxlist", "mail/work/Entw&APw-rfe\n~/INBOX\n/elsewhere\n"),
    ] {
        let world = World::new(1);
        world.write(path, text);
        let subscribed = |account: &Account| -> Vec<MailboxName> {
            account.mailboxes().into_iter().filter(|info| info.subscribed).map(|info| info.name).collect()
        };
        let (store, account) = world.open();
        assert_eq!(subscribed(&account), [name("INBOX"), name("work/Entwürfe")], "{path}");
        account.edit(|edit| edit.set_subscribed(&name("INBOX"), false)).unwrap();
        drop((store, account));
        let (_store, account) = world.open();
        assert_eq!(subscribed(&account), [name("work/Entwürfe")], "{path}");
        // The list itself is no mailbox.
        assert_eq!(listed(&account), ["INBOX"], "{path}");
    }
}

/// A power cut anywhere in the first opening of files that others have made: the next one finds every message once, with the UIDs that the file
/// gives or that a client may have been told, and what the server before us kept.
#[test]
fn first_openings_that_are_cut() {
    let mut cuts = 0;
    loop {
        let world = World::new(cuts);
        world.write("/home/ann/mail/.subscriptions", "work\n");
        world.write(INBOX, &(1..=4).map(|n| message(n, "")).collect::<String>());
        let fields = ["X-IMAPbase: 77 9 later\nX-UID: 5\nStatus: RO\nX-Keywords: later\n", "X-UID: 8\n"];
        world.write("/home/ann/mail/work", &(5..=6).zip(fields).map(|(n, f)| message(n, f)).collect::<String>());
        world.sim.disk.crash_at(cuts + 1);
        let first_look = || -> model::Result<()> {
            let store = Store::open(world.env.clone(), "/data".into(), Options::default())?;
            let account = store.account(&ann())?;
            for mailbox in ["INBOX", "work"] {
                account.refresh(account.mailbox(&name(mailbox))?)?;
            }
            store.maintain().map(drop)
        };
        let done = first_look();
        let is_cut = world.sim.disk.is_off();
        assert!(is_cut || done.is_ok(), "{done:?}");
        world.sim.disk.crash();
        for _ in 0..2 {
            let (_store, account) = world.open();
            let found = |mailbox: &str| numbers(&account, account.mailbox(&name(mailbox)).unwrap());
            let expected = |from: u32, list: &[u32]| -> Vec<(u32, String)> {
                list.iter().zip(from..).map(|(uid, n)| (*uid, n.to_string())).collect()
            };
            assert_eq!(found("INBOX"), expected(1, &[1, 2, 3, 4]), "cut {cuts}");
            assert_eq!(found("work"), expected(5, &[5, 8]), "cut {cuts}");
            let work = account.mailbox(&name("work")).unwrap();
            assert_eq!(all(&account, work)[0].1, "\\Seen later", "cut {cuts}");
            let status = account.status(work).unwrap();
            assert_eq!((status.uid_validity.get(), status.uid_next.map(|uid| uid.get())), (77, Some(10)), "cut {cuts}");
            assert!(account.mailboxes().iter().any(|info| info.subscribed && info.name == name("work")), "cut {cuts}");
        }
        if !is_cut {
            assert!(cuts > 5, "{cuts}");
            return;
        }
        cuts += 1;
    }
}
