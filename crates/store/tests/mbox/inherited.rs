//! Mail of another server is brought into a mailbox that has a file already, which nobody has looked into yet: the mailbox is made anew, with the other
//! server's UIDVALIDITY, and inherits the file.

use std::path::Path;

use model::{DateTime, Uid, UidValidity};
use store::import::{Adopted, RemoteMessage};
use store::{Account, FlagNames};

use crate::support::*;

const THERE: u32 = 77;

/// Brings message 9, which has the UID 5 there; once.
fn bring(account: &Account, mailbox: &str) -> model::Result<()> {
    let uid_validity = UidValidity::new(THERE).unwrap();
    let Adopted::Ready(mut remote) = account.adopt(&name(mailbox), &[], "elsewhere", uid_validity)? else {
        panic!("it has one UIDVALIDITY")
    };
    assert!(remote.keeps_uids());
    if remote.done() >= 5 {
        return Ok(());
    }
    let mut writer = account.message_writer()?;
    writer.write(served(9).as_bytes())?;
    let message = RemoteMessage {
        uid: Uid::new(5).unwrap(),
        message: writer.finish()?,
        flags: FlagNames::default(),
        internal_date: DateTime::utc(1_000_000_000),
        save_date: None,
    };
    remote.add(account, vec![message], 5).map(drop)
}

fn files(world: &World, dir: &str) -> Vec<String> {
    let list = world.env.disk.list(Path::new(dir)).unwrap();
    let mut names: Vec<String> = list.into_iter().map(|entry| entry.name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether or not the power fails, and wherever: what was in the file and what was brought is there once, in the one file.
#[test]
fn by_mail_that_is_brought() {
    for (mailbox, dir, file) in [("INBOX", "/var/mail", "ann"), ("work", ROOT, "work")] {
        let path = format!("{dir}/{file}");
        for cut in 1.. {
            let world = World::new(cut);
            world.write(&path, &(message(1, "") + &message(2, "")));
            let (store, account) = world.open();
            account.mailbox(&name(mailbox)).unwrap();
            world.sim.disk.crash_at(cut);
            let done = bring(&account, mailbox);
            let is_cut = world.sim.disk.is_off();
            assert!(is_cut || done.is_ok(), "cut {cut}: {done:?}");
            drop((account, store));
            world.sim.disk.crash();
            for _ in 0..2 {
                let (store, account) = world.open();
                bring(&account, mailbox).unwrap();
                store.maintain().unwrap();
                let id = account.mailbox(&name(mailbox)).unwrap();
                let mut found = numbers(&account, id);
                assert_eq!(account.view(id, false).unwrap().uid_validity().get(), THERE, "cut {cut}");
                found.sort_by(|one, other| one.1.cmp(&other.1));
                let uids: Vec<(bool, &str)> = found.iter().map(|(uid, text)| (*uid == 5, text.as_str())).collect();
                assert_eq!(uids, [(false, "1"), (false, "2"), (true, "9")], "cut {cut}");
                world.env.clock.sleep(std::time::Duration::from_secs(130));
                store.maintain().unwrap();
                assert_eq!(files(&world, dir), [file], "cut {cut}");
                let text = world.read(&path);
                assert!(
                    [1, 2, 9].iter().all(|n| text.matches(&format!("Subject: {n}\n")).count() == 1),
                    "cut {cut}: {text}"
                );
            }
            if !is_cut {
                break;
            }
        }
    }
}
