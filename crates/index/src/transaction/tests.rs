//! How much one transaction may change: `frame_events_bytes_max` to the octet, and that the log reads such a frame again.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use platform::Disk;
use platform::sim::SimEnv;

use super::*;
use crate::{Budget, Log, Options};

const DIR: &str = "/mail/ann";

fn open(sim: &SimEnv) -> Arc<Log> {
    Log::open(&sim.env(), Path::new(DIR), Options::default(), None, None).unwrap()
}

/// Notes things of the account until the records take `bytes`, at least 60,000.
fn fill(tx: &mut Transaction, bytes: usize) -> Result<()> {
    const VALUE: usize = 20_000;
    let mut number = 0;
    let mut annotate = |tx: &mut Transaction, octets: usize| {
        number += 1;
        tx.annotate_account(&format!("{number:08}"), Some(&vec![b'v'; octets]))
    };
    annotate(tx, VALUE)?;
    // The lengths of this value and of the last one have as many digits as each other on disk.
    let overhead = tx.events.len() - VALUE;
    while bytes - tx.events.len() > 60_000 {
        annotate(tx, VALUE)?;
    }
    annotate(tx, bytes - tx.events.len() - overhead)?;
    assert_eq!(tx.events.len(), bytes);
    Ok(())
}

#[test]
fn a_transaction_changes_so_much_and_no_more() {
    let sim = SimEnv::new(1);
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let log = open(&sim);
    let error = log.commit(|tx| fill(tx, FRAME_EVENTS_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(error.limit(), Some("frame_events_bytes_max"));
    assert_eq!(log.state().annotation("00000001"), None, "nothing of it was done");
    log.commit(|tx| fill(tx, FRAME_EVENTS_BYTES_MAX)).unwrap();
    let is_whole = |log: &Arc<Log>| log.state().annotation("00000001").is_some_and(|value| value.len() == 20_000);
    assert!(is_whole(&log));
    // It is read again from the tail, and from a segment.
    drop(log);
    let log = open(&sim);
    assert!(is_whole(&log));
    log.commit(|tx| tx.annotate_account("after", Some(b"it"))).unwrap();
    assert_eq!(log.maintain(Budget { bytes: u64::MAX }).unwrap().sealed, 1);
    drop(log);
    crate::remove_index(&sim.env(), Path::new(DIR)).unwrap();
    let log = open(&sim);
    assert!(is_whole(&log));
    assert_eq!(log.state().annotation("after"), Some(&b"it"[..]));
}
