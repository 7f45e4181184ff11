//! Accounts that move between the store's own format and a database, while somebody uses them, and whatever step it ends at.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{AccountName, EmailId, Keyword, MailboxName, SystemFlag, UidSet};
use nodes::{Node, append, contents, inbox, settings};
use store::convert::{self, Phase};
use store::{Account, AccountFormat, FlagNames, StoreFlags, StoreMode};

fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

fn name(text: &str) -> MailboxName {
    MailboxName::new(text).unwrap()
}

fn node() -> (Node, String) {
    let url = mariadb::fresh_database();
    let node = Node::new(settings(&url));
    node.database.update().unwrap();
    (node, url)
}

fn watcher() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

/// An account with gaps in its UIDs, copies, keywords, a renamed and a deleted mailbox, and what was expunged.
fn fill(account: &Account) {
    let inbox = inbox(account);
    let other = account.create_mailbox(&name("other"), &[]).unwrap();
    let gone = account.create_mailbox(&name("gone"), &[]).unwrap();
    for n in 0..40 {
        append(account, inbox, &format!("Subject: {n}\r\nFrom: a@b\r\n\r\nbody {n}\r\n")).unwrap();
    }
    append(account, gone, "Subject: in a mailbox that is deleted\r\n\r\n").unwrap();
    append(account, inbox, &format!("Subject: large\r\n\r\n{}", "0123456789abcde\n".repeat(150_000))).unwrap();
    let words = FlagNames { system: vec![SystemFlag::Seen], keywords: vec![Keyword::new("work").unwrap()] };
    let request = StoreFlags { mode: StoreMode::Add, flags: words, unchanged_since: None };
    account.store_flags(inbox, &UidSet::range(3, 9), &request).unwrap();
    account.copy(inbox, &UidSet::range(5, 12), other).unwrap();
    nodes::add_flag(account, inbox, 7, SystemFlag::Deleted).unwrap();
    nodes::add_flag(account, inbox, 40, SystemFlag::Deleted).unwrap();
    account.expunge(inbox, None).unwrap();
    account.rename_mailbox(&name("other"), &name("another/below")).unwrap();
    account.delete_mailbox(&name("gone")).unwrap();
    account.set_subscribed(&name("another/below"), true).unwrap();
}

type Seen = Vec<(String, u32, Option<u32>, u64, Vec<(u32, String, u64, i64, i64, EmailId, String)>)>;

/// Everything that a client can see.
fn seen(account: &Account) -> Seen {
    let mut all = Vec::new();
    for info in account.mailboxes() {
        let Some(id) = info.id else { continue };
        account.refresh(id).unwrap();
        let status = account.status(id).unwrap();
        let (view, mut reader) = (account.view(id, false).unwrap(), account.reader());
        let entry = |entry: store::Entry| {
            let mut octets = Vec::new();
            reader.read(entry.email_id, 0..u64::MAX, &mut octets).unwrap();
            let keywords = entry.flags.keyword_indexes().filter_map(|index| view.keywords().name(index));
            let system: Vec<_> = entry.flags.system_flags().collect();
            let flags = format!("{system:?} {:?}", keywords.map(|word| word.as_str()).collect::<Vec<_>>());
            let date = entry.internal_date.unix_seconds;
            let text = String::from_utf8(octets).unwrap();
            (entry.uid.get(), flags, entry.modseq.0, date, entry.save_date, entry.email_id, text)
        };
        let entries = view.all_rows().map(entry).collect();
        let next = status.uid_next.map(|uid| uid.get());
        all.push((info.name.to_string(), status.uid_validity.get(), next, status.highest_modseq.0, entries));
    }
    all
}

#[test]
fn there_and_back_and_nothing_is_different() {
    let (node, url) = node();
    node.store.create_account(&ann()).unwrap();
    let account = node.store.account(&ann()).unwrap();
    fill(&account);
    let before = seen(&account);
    let vanished = |account: &Account| {
        account.vanished_since(inbox(account), model::ModSeq(1), &UidSet::range(1, 100)).unwrap().to_string()
    };
    let gone = vanished(&account);
    let report = convert::convert(&account, &AccountFormat::Sql, &mut watcher()).unwrap();
    assert_eq!(report.format, AccountFormat::Sql);
    assert_eq!(report.phase, Some(Phase::Kept { old: AccountFormat::Native }));
    let proof = report.proof.unwrap();
    assert_eq!(proof.entries, proof.equal);
    // Who had it open before goes on with it.
    assert_eq!(seen(&account), before);
    assert_eq!(vanished(&account), gone);
    // Another node has it as well.
    let other = Node::new(settings(&url));
    let there = other.store.account(&ann()).unwrap();
    assert_eq!(seen(&there), before);
    let uid = append(&there, inbox(&there), "Subject: by another node\r\n\r\n").unwrap();
    assert_eq!(contents(&account, inbox(&account)).last().unwrap().0, uid);
    let restored = account.restore(&MailboxName::inbox(), 0).unwrap();
    assert_eq!(restored.uids.len(), 2, "what was expunged before can be brought back");

    let before = seen(&account);
    convert::finish(&account, &mut watcher()).unwrap();
    let report = convert::convert(&account, &AccountFormat::Native, &mut watcher()).unwrap();
    assert_eq!((report.format, report.phase), (AccountFormat::Native, Some(Phase::Kept { old: AccountFormat::Sql })));
    let proof = report.proof.unwrap();
    assert_eq!(proof.entries, proof.equal);
    assert_eq!(seen(&account), before);
    assert_eq!(account.check().unwrap().findings, []);
    assert!(account.restore(&name("gone"), 0).unwrap().mailbox.is_some());
    append(&account, inbox(&account), "Subject: after\r\n\r\n").unwrap();
    let before = seen(&account);
    convert::finish(&account, &mut watcher()).unwrap();
    drop(account);
    // Nothing of it is in memory only.
    while node.store.maintain().unwrap() {}
    let dir = node.dir;
    drop((node.store, node.database));
    let node = Node::on(dir, settings(&url));
    assert_eq!(seen(&node.store.account(&ann()).unwrap()), before);
    assert!(other.store.account(&ann()).is_err() || other.store.accounts().unwrap().is_empty());
}

#[test]
fn what_comes_after_is_taken_along_when_it_is_rolled_back() {
    let (node, _) = node();
    node.store.create_account(&ann()).unwrap();
    let account = node.store.account(&ann()).unwrap();
    fill(&account);
    convert::convert(&account, &AccountFormat::Sql, &mut watcher()).unwrap();
    let change = |account: &Account, [a, b]: [&str; 2]| {
        append(account, inbox(account), "Subject: since\r\n\r\nthen\r\n").unwrap();
        nodes::add_flag(account, inbox(account), 2, SystemFlag::Flagged).unwrap();
        nodes::add_flag(account, inbox(account), 12, SystemFlag::Deleted).unwrap();
        account.expunge(inbox(account), None).unwrap();
        for made in [a, b] {
            account.create_mailbox(&name(made), &[]).unwrap();
        }
        // Names that change places.
        account.rename_mailbox(&name("another/below"), &name("c")).unwrap();
        account.rename_mailbox(&name(a), &name("another/below")).unwrap();
        account.rename_mailbox(&name("c"), &name(a)).unwrap();
        account.delete_mailbox(&name(b)).unwrap();
        account.create_mailbox(&name(b), &[]).unwrap();
    };
    change(&account, ["a", "b"]);
    let before = seen(&account);
    let report = convert::roll_back(&account, &mut watcher()).unwrap();
    assert_eq!((report.format, report.phase), (AccountFormat::Native, None));
    assert_eq!(seen(&account), before);
    // The other way round.
    convert::convert(&account, &AccountFormat::Sql, &mut watcher()).unwrap();
    convert::finish(&account, &mut watcher()).unwrap();
    convert::convert(&account, &AccountFormat::Native, &mut watcher()).unwrap();
    change(&account, ["d", "e"]);
    let before = seen(&account);
    let report = convert::roll_back(&account, &mut watcher()).unwrap();
    assert_eq!((report.format, report.phase), (AccountFormat::Sql, None));
    assert_eq!(seen(&account), before);
}

#[test]
fn mail_that_comes_meanwhile_comes_along() {
    let (node, url) = node();
    node.store.create_account(&ann()).unwrap();
    let account = node.store.account(&ann()).unwrap();
    fill(&account);
    let is_over = AtomicBool::new(false);
    let mut sent = contents(&account, inbox(&account)).len();
    for to in [AccountFormat::Sql, AccountFormat::Native] {
        let mut uids = Vec::new();
        std::thread::scope(|scope| {
            let load = scope.spawn(|| {
                let mut uids = Vec::new();
                while !is_over.load(Ordering::Relaxed) || uids.len() < 5 {
                    let text = format!("Subject: meanwhile {}\r\n\r\n", uids.len());
                    uids.push(append(&account, inbox(&account), &text).unwrap());
                }
                uids
            });
            let result = convert::convert(&account, &to, &mut watcher());
            is_over.store(true, Ordering::Relaxed);
            uids = load.join().unwrap();
            result.unwrap();
        });
        is_over.store(false, Ordering::Relaxed);
        assert!(uids.is_sorted_by(|a, b| a < b), "UIDs rise: {uids:?}");
        sent += uids.len();
        assert_eq!(contents(&account, inbox(&account)).len(), sent, "nothing is lost or there twice");
        convert::finish(&account, &mut watcher()).unwrap();
    }
    drop(Node::new(settings(&url)));
}

/// An interruption between any two batches, and in the middle of the change of places.
#[test]
fn a_conversion_that_was_stopped_is_gone_on_with() {
    for stop_after in 0..6 {
        let (node, url) = node();
        node.store.create_account(&ann()).unwrap();
        let mut before = {
            let account = node.store.account(&ann()).unwrap();
            fill(&account);
            seen(&account)
        };
        let (mut store, mut database, mut dir) = (node.store, node.database, node.dir);
        for to in [AccountFormat::Sql, AccountFormat::Native] {
            let mut steps = 0;
            let mut stopping = |_, _| {
                steps += 1;
                if steps > stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            {
                let account = store.account(&ann()).unwrap();
                convert::convert(&account, &to, &mut stopping).unwrap();
                assert_eq!(seen(&account), before);
            }
            // As after a crash: everything is opened anew.
            drop((store, database));
            let node = Node::on(dir, settings(&url));
            (store, database, dir) = (node.store, node.database, node.dir);
            let account = store.account(&ann()).unwrap();
            if account.format().unwrap() != to {
                append(&account, inbox(&account), "Subject: between\r\n\r\n").unwrap();
                before = seen(&account);
                convert::convert(&account, &to, &mut watcher()).unwrap();
            }
            assert_eq!(account.format().unwrap(), to);
            assert_eq!(seen(&account), before);
            convert::finish(&account, &mut watcher()).unwrap();
        }
    }
}

/// Both steps of the change of places, with nothing done after the first.
#[test]
fn a_change_of_places_that_was_cut_short_is_ended_by_who_opens_the_account() {
    let url = mariadb::fresh_database();
    let database = |sql: &str| mariadb::shared().query(mariadb::database_of(&url), sql);
    let node = Node::new(settings(&url));
    node.database.update().unwrap();
    node.store.create_account(&ann()).unwrap();
    let before = {
        let account = node.store.account(&ann()).unwrap();
        fill(&account);
        let before = seen(&account);
        convert::convert(&account, &AccountFormat::Sql, &mut watcher()).unwrap();
        before
    };
    // Its directory says that it is leaving, the database does not have it yet.
    let dir = node.dir;
    drop((node.store, node.database));
    database("UPDATE account SET name = '.copy-ann', owner = 18446744073709551614 WHERE name = 'ann'");
    let node = Node::on(dir, settings(&url));
    let account = node.store.account(&ann()).unwrap();
    assert_eq!(account.format().unwrap(), AccountFormat::Sql);
    assert_eq!(seen(&account), before);
    convert::finish(&account, &mut watcher()).unwrap();
    let report = convert::convert(&account, &AccountFormat::Native, &mut watcher()).unwrap();
    assert!(!report.was_stopped);
    drop(account);
    // The database has let it out, its directory does not say so yet.
    let marker = node.dir.path().join("accounts/ann/in-database");
    let dir = node.dir;
    drop((node.store, node.database));
    std::fs::write(&marker, "coming\n").unwrap();
    let node = Node::on(dir, settings(&url));
    let account = node.store.account(&ann()).unwrap();
    assert_eq!(account.format().unwrap(), AccountFormat::Native);
    assert!(!marker.exists());
    assert_eq!(seen(&account), before);
    let _: Arc<Account> = account;
}
