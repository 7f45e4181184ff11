//! A write-back that ends anywhere: what is found afterwards is what the log says, and can be read.

use std::path::PathBuf;
use std::sync::Arc;

use model::MailboxId;
use platform::OpenMode;
use store::{Account, Moment, Options, Store, StoreFlags, StoreMode};

use crate::support::*;

/// More than the digest of the end of a file covers.
const COUNT: u32 = 200;
const REMOVED: u32 = 3;

/// A file whose flags stay as they are, so that nothing but the removal changes it.
fn options() -> Options {
    let mut options = Options::default();
    let never = &mut options.mbox.write_back;
    (never.check, never.close, never.logout, never.idle) = (false, false, false, false);
    // A dotlock that lost its octets with the power is anybody's: it would have to grow old first.
    options.mbox.locks.write = vec![store::format::mbox::lock::Method::Fcntl];
    options
}

fn open(world: &World) -> (Arc<Store>, Arc<Account>, MailboxId) {
    let store = Store::open(world.env.clone(), "/data".into(), options()).unwrap();
    let account = store.account(&ann()).unwrap();
    let inbox = account.mailbox(&name("INBOX")).unwrap();
    (store, account, inbox)
}

/// The map on the disk is from before a message was added and another one became filler: the file has grown, its old end is where it was, and
/// yet it is not the one that the map knows.
#[test]
fn a_removal_behind_the_back_of_the_map() {
    let (mut cuts, mut removals) = (0_u64, 0);
    loop {
        let world = World::new(cuts);
        world.write(INBOX, &(1..=COUNT).map(|n| message(n, "")).collect::<String>());
        let (store, account, inbox) = open(&world);
        assert_eq!(numbers(&account, inbox).len(), COUNT as usize);
        // As after a while, or when only the process ends.
        let map = PathBuf::from(format!("/data/accounts/ann/index/mbox-{inbox}"));
        world.env.disk.open(&map, OpenMode::ReadWrite).unwrap().sync_data().unwrap();
        world.env.disk.sync_dir(platform::parent_of(&map)).unwrap();
        append(&account, inbox, &served(COUNT + 1), "");
        world.pass();
        account
            .edit(|edit| {
                let request =
                    StoreFlags { mode: StoreMode::Add, flags: flag_names("\\Deleted"), unchanged_since: None };
                edit.store_flags(inbox, &uids(&[REMOVED]), &request)?;
                edit.expunge(inbox, Some(&uids(&[REMOVED]))).map(drop)
            })
            .unwrap();
        world.pass();
        let before = world.read(INBOX).len();
        world.sim.disk.crash_at(cuts + 1);
        let written = account.write_back(inbox, Moment::Close);
        let is_cut = world.sim.disk.is_off();
        assert!(is_cut || written.is_ok());
        drop((account, store));
        world.sim.disk.crash();
        world.pass();

        let (_store, account, inbox) = open(&world);
        let expected: Vec<u32> = (1..=COUNT + 1).filter(|n| *n != REMOVED).collect();
        let found: Vec<u32> = numbers(&account, inbox).iter().map(|(_, number)| number.parse().unwrap()).collect();
        assert_eq!(found, expected, "cut {cuts}");
        // It became filler: otherwise this would test nothing.
        let text = world.read(INBOX);
        removals += u32::from(!text.contains(&format!("body {REMOVED}\n")) && text.len() == before);
        cuts += 1;
        if !is_cut {
            break;
        }
    }
    assert!(cuts > 10 && removals > 3, "{cuts} {removals}");
}
