//! The process is about to end: large files are neither read nor written any more, small ones are, and the next process does the rest.

use std::time::Duration;

use model::ErrorKind;

use crate::support::*;

/// Messages in a file of more than 4 MiB, which takes long.
const MESSAGES: u32 = 40;

fn large(n: u32) -> String {
    message(n, "") + &message(n + MESSAGES, &format!("X-Text: {}\n", "text ".repeat(26_000)))
}

fn end_now(world: &World, store: &store::Store) {
    store.end_long_work_at(world.env.clock.monotonic());
}

#[test]
fn what_takes_long_is_left_for_the_next_process() {
    let world = World::new(1);
    let text: String = (1..=MESSAGES).map(large).collect();
    world.write(INBOX, &text);
    world.write("/home/ann/mail/small", &message(1, ""));
    let work = |is_ending: bool, work: &dyn Fn(&store::Account, model::MailboxId, model::MailboxId)| {
        let (store, account) = world.open();
        let mailbox = |text| account.mailbox(&name(text)).unwrap();
        let (inbox, small) = (mailbox("INBOX"), mailbox("small"));
        if is_ending {
            end_now(&world, &store);
        } else {
            // Not yet.
            store.end_long_work_at(world.env.clock.monotonic() + Duration::from_secs(3600));
        }
        work(&account, inbox, small);
        drop(account);
        store.wait_for_changes();
    };
    let is_left = |result: model::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::InUse);
    work(true, &|account, inbox, small| {
        is_left(account.refresh(inbox));
        assert_eq!(numbers(account, small).len(), 1);
    });
    work(false, &|account, inbox, _| {
        assert_eq!(numbers(account, inbox).len(), 2 * MESSAGES as usize);
    });
    work(true, &|account, inbox, small| {
        assert_eq!(numbers(account, small).len(), 1);
        for mailbox in [inbox, small] {
            set_flags(account, mailbox, 1, store::StoreMode::Add, "\\Seen");
        }
        is_left(account.write_back(inbox, store::Moment::Close));
        append(account, inbox, &served(7), "");
    });
    // What came is in the file, since that is little; and the small one was written when the store was closed.
    let is_seen = |text: &str| text.contains("\nStatus: RO");
    let file = world.read(INBOX);
    assert!(!is_seen(&file) && file.starts_with(&text) && file.len() > text.len());
    assert!(is_seen(&world.read("/home/ann/mail/small")));
    work(false, &|account, inbox, _| {
        let found = numbers(account, inbox);
        assert_eq!(found.len(), 2 * MESSAGES as usize + 1);
        account.write_back(inbox, store::Moment::Close).unwrap();
        assert_eq!(numbers(account, inbox), found);
        assert_eq!(account.check().unwrap().findings, []);
    });
    assert!(is_seen(&world.read(INBOX)));
}
