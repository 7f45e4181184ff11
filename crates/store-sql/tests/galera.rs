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
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use model::{SystemFlag, UidSet};
use nodes::{Node, add_flag, append, contents, inbox};
use store_sql::Settings;

/// Messages that each writer has had acknowledged before and after something happens.
const BEFORE: u32 = 20;
const AFTER: u32 = 20;
/// A pause that clients do not take for an outage.
const PAUSE_MAX: Duration = Duration::from_secs(10);

#[test]
fn a_server_is_killed_under_load() {
    let mut group = galera::Group::begin();
    group.query(0, "", "CREATE DATABASE mail");
    // The first node uses the server that will be killed.
    let node = |first: usize| {
        let urls = group.addresses("mail", first);
        Node::new(Settings {
            urls,
            retry: Duration::from_secs(30),
            // Longer than the group takes to find that a server is lost: who waits for that is not dead.
            lease: Duration::from_secs(6),
            ..Settings::default()
        })
    };
    let (a, b) = (node(1), node(2));
    let (on_a, on_b) = (a.ann(), b.ann());
    let id = inbox(&on_a);
    let (done, is_over) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
    let writers: Vec<_> = [&on_a, &on_a, &on_b, &on_b]
        .into_iter()
        .enumerate()
        .map(|(number, account)| {
            let (account, done, is_over) = (Arc::clone(account), Arc::clone(&done), Arc::clone(&is_over));
            thread::spawn(move || {
                let (mut kept, mut longest) = (Vec::new(), Duration::ZERO);
                for n in 0u32.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("{number}:{n}");
                    let begun = Instant::now();
                    let uid = append(&account, id, &text).unwrap();
                    longest = longest.max(begun.elapsed());
                    kept.push((uid, text));
                    add_flag(&account, id, uid, SystemFlag::Seen).unwrap();
                    if n % 4 == 3 {
                        add_flag(&account, id, uid, SystemFlag::Deleted).unwrap();
                        assert!(account.expunge(id, Some(&UidSet::range(uid, uid))).unwrap().uids.contains(uid));
                        kept.pop();
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
                (kept, longest)
            })
        })
        .collect();
    let wait_for_more = |count: u32| {
        let goal = done.load(Ordering::Relaxed) + count;
        while done.load(Ordering::Relaxed) < goal && !writers.iter().any(|writer| writer.is_finished()) {
            thread::yield_now();
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
        let (kept, longest) = writer.join().unwrap();
        assert!(longest < PAUSE_MAX, "a client waited for {longest:?}");
        for (uid, text) in kept {
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
