//! What the file system does not let us do: mail that can be read is served, what cannot be done is said, and nothing is lost or taken for gone.

use std::path::Path;

use model::ErrorKind;
use platform::sim::Denial;
use store::{Account, Moment};

use crate::support::*;

const WORK: &str = "/home/ann/mail/work";

fn world() -> World {
    let world = World::new(1);
    world.write(INBOX, &(1..=3).map(|n| message(n, "")).collect::<String>());
    world.write(WORK, &message(4, ""));
    world
}

fn texts(account: &Account, mailbox: &str) -> Vec<String> {
    let id = account.mailbox(&name(mailbox)).unwrap();
    numbers(account, id).into_iter().map(|(_, number)| number).collect()
}

/// Everything that needs the file to be changed is refused, and the file is as it was.
fn refused(world: &World, account: &Account, mailbox: &str, path: &str) {
    let before = world.read(path);
    let numbers_before = texts(account, mailbox);
    let id = account.mailbox(&name(mailbox)).unwrap();
    let inbox_to = account.mailbox(&name(if mailbox == "INBOX" { "work" } else { "INBOX" })).unwrap();
    let refused = |what: &str, error: Option<model::Error>| {
        let error = error.unwrap_or_else(|| panic!("{what} was done"));
        assert_eq!(error.kind(), ErrorKind::NotPermitted, "{what}: {error}");
    };
    let mut writer = account.message_writer().unwrap();
    writer.write(served(9).as_bytes()).unwrap();
    let new = store::NewMessage { message: writer.finish().unwrap(), flags: flag_names(""), internal_date: None };
    refused("APPEND", account.append(id, vec![new]).err());
    refused("COPY", account.copy(inbox_to, &uids(&[1]), id).err());
    refused("MOVE", account.move_entries(id, &uids(&[1]), inbox_to).err());
    // Flags are ours as well as the file's.
    set_flags(account, id, 1, store::StoreMode::Add, "\\Deleted \\Seen");
    refused("EXPUNGE", account.expunge(id, None).err());
    assert!(account.write_back(id, Moment::Close).is_err(), "nothing can be written");
    if mailbox != "INBOX" {
        refused("DELETE", account.delete_mailbox(&name(mailbox)).err());
        refused("RENAME", account.rename_mailbox(&name(mailbox), &name("other")).err());
        refused("CREATE", account.create_mailbox(&name("new"), &[]).err());
    }
    assert_eq!(texts(account, mailbox), numbers_before);
    assert_eq!(world.read(path), before);
}

/// Afterwards all of it can be done.
fn allowed(world: &World, account: &Account, mailbox: &str, path: &str) {
    let id = account.mailbox(&name(mailbox)).unwrap();
    append(account, id, &served(9), "");
    account.expunge(id, None).unwrap();
    account.write_back(id, Moment::Close).unwrap();
    let text = world.read(path);
    assert!(text.contains("Subject: 9") && !text.contains("\nbody 1\n"), "{text}");
    assert_eq!(account.check().unwrap().findings, []);
}

#[test]
fn a_read_only_file_system() {
    let world = world();
    let (_store, account) = world.open();
    for dir in ["/home", "/var/mail"] {
        world.sim.disk.deny(Path::new(dir), Denial::Writing);
    }
    // The first look already finds it so.
    assert_eq!(texts(&account, "INBOX"), ["1", "2", "3"]);
    assert_eq!(texts(&account, "work"), ["4"]);
    refused(&world, &account, "INBOX", INBOX);
    refused(&world, &account, "work", WORK);
    world.sim.disk.allow_all();
    allowed(&world, &account, "INBOX", INBOX);
}

/// Nothing can be made beside the file, so that no dotlock can: as when the server's user is not in the group of `/var/mail`.
#[test]
fn a_read_only_directory() {
    let world = world();
    let (_store, account) = world.open();
    for dir in [ROOT, "/var/mail"] {
        world.sim.disk.deny(Path::new(dir), Denial::Names);
    }
    assert_eq!(texts(&account, "INBOX"), ["1", "2", "3"]);
    refused(&world, &account, "INBOX", INBOX);
    refused(&world, &account, "work", WORK);
    world.sim.disk.allow_all();
    allowed(&world, &account, "INBOX", INBOX);
}

/// A file that we may not read is an error, before and after it was read; nothing is taken for expunged.
#[test]
fn an_unreadable_file() {
    let world = World::new(1);
    let (_store, account) = world.open();
    world.write(INBOX, &(1..=3).map(|n| message(n, "")).collect::<String>());
    world.write(WORK, &message(4, ""));
    world.sim.disk.deny(Path::new(INBOX), Denial::Opening);
    world.sim.disk.deny(Path::new(WORK), Denial::Opening);
    // `work` was never seen; INBOX was, when the account was opened.
    let id = account.mailbox(&name("INBOX")).unwrap();
    for error in [account.refresh(id).unwrap_err(), account.mailbox(&name("work")).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    }
    world.sim.disk.allow_all();
    assert_eq!(texts(&account, "INBOX"), ["1", "2", "3"]);
    // Changed as well, so that it would have to be read.
    world.deliver(INBOX, &message(5, ""));
    world.sim.disk.deny(Path::new(INBOX), Denial::Opening);
    assert_eq!(account.refresh(id).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(account.view(id, false).unwrap().exists(), 3);
    let findings = account.check().unwrap().findings;
    assert!(findings.iter().any(|finding| finding.file == Path::new(INBOX)), "{findings:?}");
    world.sim.disk.allow_all();
    assert_eq!(texts(&account, "INBOX"), ["1", "2", "3", "5"]);
    assert_eq!(texts(&account, "work"), ["4"]);
}
