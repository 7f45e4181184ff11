//! The limit: a look at every byte.

use super::Rates;
use super::parts::Mailbox;
use crate::error::{Doing, Error, Result};
use crate::usage::Usage;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

const LONG_ENOUGH: Duration = Duration::from_millis(300);

/// Never in mail: no byte of UTF-8 (RFC 3629 §1), and made mail keeps the bytes of the real mail's text.
const NOT_THERE: u8 = 0xff;

/// Searches all files at once, a thread each.
pub fn measure(files: &[&Mailbox], quick: bool) -> Result<Rates> {
    let mut contents: BTreeMap<&Path, Vec<u8>> = BTreeMap::new();
    for file in files {
        if !contents.contains_key(file.path.as_path()) {
            contents.insert(&file.path, std::fs::read(&file.path).doing(file.path.display())?);
        }
    }
    let before = Usage::own()?;
    let began = Instant::now();
    let bytes: u64 = std::thread::scope(|scope| {
        let texts = files.iter().filter_map(|file| contents.get(file.path.as_path()));
        let threads: Vec<_> = texts.map(|text| scope.spawn(move || search(text, began, quick))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| Error::new("a thread failed"))).sum::<Result<u64>>()
    })?;
    let wall = began.elapsed();
    let cpu = (Usage::own()? - before).cpu();
    Ok(Rates::of(bytes, wall, cpu))
}

/// Searches again and again until it took long enough; gives the bytes looked at.
fn search(text: &[u8], began: Instant, quick: bool) -> u64 {
    let mut bytes = 0;
    loop {
        // From behind each one that is there after all.
        bytes += text.len() as u64;
        black_box(memchr::memchr_iter(NOT_THERE, text).count());
        if quick || began.elapsed() >= LONG_ENOUGH {
            return bytes;
        }
    }
}
