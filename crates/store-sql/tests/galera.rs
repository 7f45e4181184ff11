//! A Galera group of three servers and two nodes: one server is killed under load, later joins again, and nothing that was acknowledged is
//! lost or doubled.
#![allow(clippy::unwrap_used)]

extern crate mailyard_store_sql as store_sql;

#[path = "support/galera.rs"]
mod galera;
#[path = "support/mariadb.rs"]
mod mariadb;
#[path = "support/nodes.rs"]
mod nodes;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use model::{SystemFlag, UidSet};
use nodes::{Node, add_flag, append, contents, inbox};
use store_sql::Settings;

/// Messages that each writer has had acknowledged before and after something happens.
const BEFORE: u32 = 20;
const AFTER: u32 = 20;

#[test]
fn a_server_is_killed_under_load() {
    let mut group = galera::Group::begin();
    group.query(0, "", "CREATE DATABASE mail");
    // The first node uses the server that will be killed.
    let node = |first: usize| {
        let urls = group.addresses("mail", first);
        Node::new(Settings {
            urls,
            // Longer than a group takes on any machine to go on without a server, or without one that only seemed to be lost.
            timeout: Duration::from_secs(60),
            retry: Duration::from_secs(300),
            // Longer than the group takes to find that a server is lost: who waits for that is not dead. A node that says nothing for
            // longer, since its machine does other things, is taken for dead: that costs time and nothing else.
            lease: Duration::from_secs(10),
            ..Settings::default()
        })
    };
    let (a, b) = (node(1), node(2));
    let (on_a, on_b) = (a.ann(), b.ann());
    let id = inbox(&on_a);
    let (is_over, (done, progress)) = (Arc::<AtomicBool>::default(), mpsc::channel());
    let writers: Vec<_> = [&on_a, &on_a, &on_b, &on_b]
        .into_iter()
        .enumerate()
        .map(|(number, account)| {
            let (account, done, is_over) = (Arc::clone(account), done.clone(), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut kept = Vec::new();
                for n in 0u32.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("{number}:{n}");
                    let uid = append(&account, id, &text).unwrap();
                    kept.push((uid, text));
                    add_flag(&account, id, uid, SystemFlag::Seen).unwrap();
                    if n % 4 == 3 {
                        add_flag(&account, id, uid, SystemFlag::Deleted).unwrap();
                        assert!(account.expunge(id, Some(&UidSet::range(uid, uid))).unwrap().uids.contains(uid));
                        kept.pop();
                    }
                    done.send(()).unwrap();
                }
                kept
            })
        })
        .collect();
    drop(done);
    // One that has failed ends the waiting.
    let wait_for_more = |count: u32| {
        // What was done until now does not count.
        progress.try_iter().for_each(drop);
        let mut left = count;
        while left > 0 && !writers.iter().any(|writer| writer.is_finished()) {
            match progress.recv_timeout(Duration::from_secs(1)) {
                Ok(()) => left -= 1,
                Err(_) => continue,
            }
        }
    };
    wait_for_more(4 * BEFORE);
    group.kill(1);
    wait_for_more(4 * AFTER);
    group.start(1, false);
    wait_for_more(4 * AFTER);
    is_over.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeMap::new();
    for writer in writers {
        for (uid, text) in writer.join().unwrap() {
            assert_eq!(acknowledged.insert(uid, text), None, "one UID for two messages");
        }
    }
    let expected: Vec<(u32, String)> = acknowledged.into_iter().collect();
    for account in [&on_a, &on_b] {
        assert_eq!(contents(account, id), expected);
        assert_eq!(account.status(id).unwrap().unseen, 0);
        assert_eq!(account.check().unwrap().findings, []);
    }
    // The server that came back has it all, too.
    let count = format!("{}\n", expected.len());
    assert_eq!(group.query(1, "mail", "SET SESSION wsrep_sync_wait = 1; SELECT COUNT(*) FROM entry"), count);
}
