//! What the machine itself can do: the yardsticks that results are held against.
//!
//! Each does the work that no server can avoid (move these bytes, sync this often) and nothing else.

mod disk;
mod loopback;
mod machine;
mod memory;
mod replay;
mod sockets;
mod sync;
mod yardsticks;

pub use machine::machine;
pub use replay::Replay;
pub use sockets::group_commit_over_sockets;
pub use sync::{Group, Prefill, group_commit, single_syncs};
pub use yardsticks::yardsticks;

use crate::error::{Doing, Result};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 256 << 10;

/// Reads to the end; gives the number of bytes and the time.
pub fn drain(mut from: impl Read) -> Result<(u64, Duration)> {
    let began = Instant::now();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut chunk).doing("reading")?;
        if count == 0 {
            return Ok((bytes, began.elapsed()));
        }
        bytes += count as u64;
    }
}

/// Copies a file and syncs the copy: what storing these bytes once costs at least.
pub fn copy_and_sync(from: &Path, to: &Path) -> Result<Duration> {
    let began = Instant::now();
    let mut source = File::open(from).doing(from.display())?;
    let mut copy = File::create(to).doing(to.display())?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = source.read(&mut chunk).doing(from.display())?;
        let Some(piece) = chunk.get(..count).filter(|piece| !piece.is_empty()) else { break };
        copy.write_all(piece).doing(to.display())?;
    }
    copy.sync_data().doing(to.display())?;
    Ok(began.elapsed())
}
