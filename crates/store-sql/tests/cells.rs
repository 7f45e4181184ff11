//! Accounts in several databases, and accounts that move from one to another while two nodes change them.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{AccountName, ErrorKind, SystemFlag};
use nodes::{add_flag, append, contents, inbox, settings};
use platform::Env;
use store::{Account, AccountFormat, Options, Store};
use store_sql::{CellCluster, Cells, FIRST_CELL};

fn ann() -> AccountName {
    AccountName::new("ann").unwrap()
}

/// The addresses of the databases of two cells.
fn two_cells() -> [String; 2] {
    [mariadb::fresh_database(), mariadb::fresh_database()]
}

fn cells([main, north]: &[String; 2], new_accounts: &str) -> Arc<Cells> {
    let others = vec![("north".to_owned(), settings(north))];
    let cells = Cells::new(Env::real(), settings(main), others, new_accounts).unwrap();
    cells.update().unwrap();
    cells
}

/// A node that knows both cells.
struct Node {
    store: Arc<Store>,
    _dir: tempfile::TempDir,
}

impl Node {
    fn new(urls: &[String; 2]) -> Node {
        let dir = tempfile::tempdir().unwrap();
        let cluster = Arc::new(CellCluster(cells(urls, "")));
        let store = Store::open_with(Env::real(), dir.path().to_owned(), Options::default(), Some(cluster)).unwrap();
        Node { store, _dir: dir }
    }

    fn ann(&self) -> Arc<Account> {
        self.store.account(&ann()).unwrap()
    }
}

fn count(url: &str, table: &str) -> u64 {
    let statement = format!("SELECT COUNT(*) FROM {table}");
    mariadb::shared().query(mariadb::database_of(url), &statement).trim().parse().unwrap()
}

fn watcher() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

#[test]
fn new_accounts_go_where_the_configuration_says() {
    let urls = two_cells();
    let north = CellCluster(cells(&urls, "north"));
    let dir = tempfile::tempdir().unwrap();
    let cluster = Arc::new(north.clone());
    let store = Store::open_with(Env::real(), dir.path().to_owned(), Options::default(), Some(cluster)).unwrap();
    store.create_account_as(&ann(), &AccountFormat::Sql).unwrap();
    assert_eq!(north.0.cell_of(&ann()).unwrap().0, "north");
    assert_eq!((count(&urls[0], "account"), count(&urls[1], "account")), (0, 1));
    // Another node, that puts its own into the first cell, finds it, and makes no second one.
    let other = Node::new(&urls);
    append(&other.ann(), inbox(&other.ann()), "a").unwrap();
    let again = other.store.create_account_as(&ann(), &AccountFormat::Sql);
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(other.store.accounts().unwrap(), [ann()]);
    let account = store.account(&ann()).unwrap();
    assert_eq!(contents(&account, inbox(&account)), [(1, "a".to_owned())]);
    drop(account);
    drop(other);
    store.delete_account(&ann()).unwrap();
    assert_eq!((count(&urls[0], "directory"), count(&urls[1], "account"), count(&urls[1], "body")), (0, 0, 0));
    let bad = Cells::new(Env::real(), settings(&urls[0]), Vec::new(), "south");
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn an_account_moves_under_load_and_nothing_is_lost_or_there_twice() {
    let urls = two_cells();
    let (a, b) = (Node::new(&urls), Node::new(&urls));
    a.store.create_account_as(&ann(), &AccountFormat::Sql).unwrap();
    let (on_a, on_b) = (a.ann(), b.ann());
    let place = inbox(&on_a);
    for n in 0..50 {
        append(&on_a, place, &format!("Subject: {n}\r\n\r\n{}\r\n", "x".repeat(n * 100))).unwrap();
    }
    add_flag(&on_a, place, 9, SystemFlag::Deleted).unwrap();
    on_a.expunge(place, None).unwrap();
    let mover = cells(&urls, "");
    let is_over = AtomicBool::new(false);
    let mut sent: Vec<(u32, String)> = Vec::new();
    std::thread::scope(|scope| {
        let load = |account: Arc<Account>, who: &'static str| {
            let is_over = &is_over;
            move || {
                let mut sent = Vec::new();
                for n in 0.. {
                    let text = format!("Subject: {who} {n}\r\n\r\n");
                    match append(&account, place, &text) {
                        Ok(uid) => sent.push((uid, text)),
                        // Refused, not lost: it may be tried again.
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{error}"),
                    }
                    if is_over.load(Ordering::Relaxed) && n > 20 {
                        break;
                    }
                }
                sent
            }
        };
        let threads = [scope.spawn(load(Arc::clone(&on_a), "a")), scope.spawn(load(Arc::clone(&on_b), "b"))];
        let results = ["north", FIRST_CELL, "north"].map(|cell| {
            let report = mover.move_account(&ann(), cell, &mut watcher());
            (cell, report, mover.cell_of(&ann()))
        });
        is_over.store(true, Ordering::Relaxed);
        sent = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        for (cell, report, place) in results {
            let report = report.unwrap();
            assert_eq!((report.cell.as_str(), report.was_stopped), (cell, false));
            assert_eq!(place.unwrap(), (cell.to_owned(), None));
        }
    });
    sent.sort();
    let found = contents(&on_a, place);
    assert_eq!(found, contents(&on_b, place));
    let uids: Vec<u32> = found.iter().map(|(uid, _)| *uid).collect();
    assert!(uids.is_sorted_by(|a, b| a < b) && uids[..8] == [1, 2, 3, 4, 5, 6, 7, 8] && uids[8] == 10);
    let new: Vec<_> = found.into_iter().filter(|(uid, _)| *uid > 50).collect();
    for one in &sent {
        assert!(new.contains(one), "{one:?} was acknowledged");
    }
    let texts: std::collections::BTreeSet<&String> = new.iter().map(|(_, text)| text).collect();
    assert_eq!(texts.len(), new.len(), "nothing is there twice");
    // Nothing is left in the first cell, and a node that is new finds it.
    for table in ["account", "entry", "header", "body", "message"] {
        assert_eq!(count(&urls[0], table), 0, "{table}");
    }
    let c = Node::new(&urls);
    assert_eq!(contents(&c.ann(), place), contents(&on_a, place));
    assert_eq!(c.ann().check().unwrap().findings, []);
    assert_eq!(on_a.check().unwrap().findings, []);
}

/// Stopped after each batch, and after each of the steps that end a move.
#[test]
fn a_move_that_was_interrupted_is_gone_on_with() {
    let urls = two_cells();
    let node = Node::new(&urls);
    node.store.create_account_as(&ann(), &AccountFormat::Sql).unwrap();
    let account = node.ann();
    let place = inbox(&account);
    for n in 0..1200 {
        append(&account, place, &format!("Subject: {n}\r\n\r\n")).unwrap();
    }
    let mover = cells(&urls, "");
    let mut steps = 0;
    for stop_after in 0.. {
        let mut calls = 0;
        let mut stopping = |_, _| {
            calls += 1;
            if calls > stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let report = mover.move_account(&ann(), "north", &mut stopping).unwrap();
        append(&account, place, "Subject: between\r\n\r\n").unwrap();
        if !report.was_stopped {
            break;
        }
        assert_eq!(report.cell, FIRST_CELL);
        assert_eq!(mover.cell_of(&ann()).unwrap().1.as_deref(), Some("north"));
        let elsewhere = mover.move_account(&ann(), FIRST_CELL, &mut watcher()).unwrap();
        assert_eq!(elsewhere.cell, FIRST_CELL, "it is where it was");
        steps += 1;
    }
    assert!(steps > 1);
    let before = contents(&account, place);
    let uids: Vec<u32> = before.iter().map(|(uid, _)| *uid).collect();
    assert_eq!(uids, (1..=1200 + steps + 1).collect::<Vec<u32>>());

    // The old cell says that it has moved, and nothing else was done: who looks for it ends the move.
    let [main, north] = &urls;
    let on_main = |sql: &str| mariadb::shared().query(mariadb::database_of(main), sql);
    let on_north = |sql: &str| mariadb::shared().query(mariadb::database_of(north), sql);
    let (moved, copy) = (u64::MAX - 2, u64::MAX - 1);
    let row = on_north(
        "SELECT id, created, incarnation, modseq, email_id_next, mailbox_id_next, uidvalidity_last, epoch FROM account",
    );
    let row: Vec<&str> = row.trim().split('\t').collect();
    on_main(&format!(
        "INSERT INTO account (id, name, created, incarnation, modseq, email_id_next, mailbox_id_next, uidvalidity_last, owner, epoch) \
         VALUES ({}, 'ann', {}, {}, {}, {}, {}, {}, {moved}, {} + 1)",
        row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[7]
    ));
    on_north(&format!("UPDATE account SET name = '.moving-{}', owner = {copy}", row[0]));
    on_main("UPDATE directory SET cell = 'main', moving_to = 'north'");
    let other = Node::new(&urls);
    assert_eq!(contents(&other.ann(), place), before);
    append(&other.ann(), place, "Subject: after\r\n\r\n").unwrap();
    let third = Node::new(&urls);
    assert_eq!(contents(&third.ann(), place).len(), before.len() + 1);
    // What is left behind goes with the next command.
    assert_eq!(count(main, "account"), 1);
    mover.move_account(&ann(), "north", &mut watcher()).unwrap();
    assert_eq!(count(main, "account"), 0);
    let nobody = AccountName::new("nobody").unwrap();
    assert_eq!(mover.move_account(&nobody, "north", &mut watcher()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(mover.move_account(&ann(), "south", &mut watcher()).unwrap_err().kind(), ErrorKind::Invalid);
}
