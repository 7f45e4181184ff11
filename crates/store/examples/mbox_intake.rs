//! Reads mbox files as accounts do when they open one, or only scans them, and says what it took: `mbox_intake intake|parallel|scan|read FILE...`.
//!
//! For a comparison under `perf stat`; `read` is what the reading alone costs, `parallel` has a thread for each processor.

extern crate mailyard_store as store;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use model::{Error, ErrorKind, Result};
use platform::{Env, File, OpenMode};
use store::format::mbox::intake::intake;
use store::format::mbox::intake_parallel::intake_parallel;
use store::format::mbox::place::Found;
use store::format::mbox::scan::{Reader, Scanner};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_default();
    for path in args {
        let file = Env::real().disk.open(Path::new(&path), OpenMode::Read)?;
        let begin = Instant::now();
        let (messages, sum) = measure(&*file, &what)?;
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{path}: {messages} messages, {sum:#x}, {seconds:.3} s, {:.2} GB/s",
            file.len()? as f64 / seconds / 1e9
        );
    }
    Ok(())
}

/// How many messages, and something over all that was found.
fn measure(file: &dyn File, what: &str) -> Result<(u64, u64)> {
    let (mut messages, mut sum) = (0, 0_u64);
    match what {
        "intake" | "parallel" => {
            let mut take = |found: Found| {
                messages += 1;
                sum = sum.rotate_left(1) ^ found.digest ^ found.octets ^ found.header_octets;
                Ok(())
            };
            let jobs = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            match what {
                "intake" => intake(file, Scanner::new(0), &mut take)?,
                _ => intake_parallel(file, jobs, &mut take)?,
            };
        }
        "scan" => {
            Reader::new(file, 0)?.for_each(&mut |message| {
                messages += 1;
                sum = sum.rotate_left(1) ^ message.end;
            })?;
        }
        "read" => {
            let mut piece = vec![0; 256 << 10];
            loop {
                let count = file.read_at(&mut piece, sum)? as u64;
                sum += count;
                if count == 0 {
                    break;
                }
            }
        }
        _ => return Err(Error::new(ErrorKind::Invalid, "intake, parallel, scan or read")),
    }
    Ok((messages, sum))
}
