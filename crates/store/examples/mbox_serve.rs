//! What serving an mbox takes: makes its map, opens it, and reads headers and whole messages through it: `mbox_serve FILE DIR
//! map|open|find|headers|backwards|wholes|ranges`.
//!
//! For a comparison under `perf stat`. `map` leaves the map in `DIR` for the others.

extern crate mailyard_store as store;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use index::ForeignMessage;
use model::{EmailId, Error, ErrorKind, ModSeq, Result};
use platform::{Disk, Env, File, OpenMode};
use store::format::mbox::identity::{Identity, tail_digest};
use store::format::mbox::intake::intake;
use store::format::mbox::map::{Facts, Map, MapBuilder};
use store::format::mbox::place::Place;
use store::format::mbox::scan::Scanner;
use store::format::mbox::serve::{FileReader, Outcome};

fn main() -> Result<()> {
    let [path, dir, what] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err(Error::new(ErrorKind::Invalid, "FILE DIR WHAT"));
    };
    let disk = Env::real().disk;
    let file = disk.open(Path::new(path), OpenMode::Read)?;
    let map_path = Path::new(dir).join("mbox-1");
    let begin = Instant::now();
    let (map, messages) = match what.as_str() {
        "map" => build(&disk, &file, &map_path)?,
        _ => (open(&*disk, &map_path)?, Vec::new()),
    };
    println!("{what}: {} places, {:.4} s", map.len(), begin.elapsed().as_secs_f64());
    let sizes_path = Path::new(dir).join("sizes");
    if what == "map" {
        let bytes: Vec<u8> = messages.iter().flat_map(pack).collect();
        disk.replace_file(&sizes_path, &Path::new(dir).join("sizes.new"), &bytes)?;
        return Ok(());
    }
    let messages: Vec<ForeignMessage> = disk.read(&sizes_path)?.chunks_exact(16).map(unpack).collect();
    let reader = FileReader::new(file, map.facts().identity);
    let begin = Instant::now();
    let (count, octets) = read(&map, &messages, &reader, what)?;
    println!("{what}: {count} messages, {octets} octets, {:.3} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn pack(message: &ForeignMessage) -> Vec<u8> {
    [&message.octets.to_le_bytes()[..], &message.header_octets.to_le_bytes(), &message.digest.to_le_bytes()].concat()
}

fn unpack(bytes: &[u8]) -> ForeignMessage {
    let number =
        |from: usize| bytes.get(from..from + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    let digest = u64::from(number(12)) << 32 | u64::from(number(8));
    ForeignMessage { octets: number(0), header_octets: number(4), digest }
}

fn open(disk: &dyn Disk, path: &Path) -> Result<Map> {
    Map::open(disk, path).ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no map; make one"))
}

fn build(disk: &Arc<dyn Disk>, file: &Arc<dyn File>, path: &Path) -> Result<(Map, Vec<ForeignMessage>)> {
    let identity = Identity::of_file(&**file)?;
    let mut builder = MapBuilder::create(disk, path)?;
    let mut messages = Vec::new();
    intake(&**file, Scanner::new(0), &mut |found| {
        let (octets, header_octets) = (found.octets as u32, found.header_octets as u32);
        messages.push(ForeignMessage { octets, header_octets, digest: found.digest });
        builder.push(&Place {
            email_id: Some(EmailId(messages.len() as u64)),
            start: found.message.start,
            header: found.message.header,
            body: found.message.body,
            end: found.message.end,
            next: found.message.next,
            form: found.message.form(),
            is_crlf: false,
            flags: found.meta.flags,
            keywords: 0,
        })
    })?;
    let tail_digest = tail_digest(&**file, identity.len)?;
    Ok((
        builder.finish(&Facts {
            identity,
            tail_digest,
            settled: 0,
            written: ModSeq(0),
            is_fresh: false,
            is_grown: false,
        })?,
        messages,
    ))
}

/// How many messages were read and how many octets they gave.
fn read(map: &Map, messages: &[ForeignMessage], reader: &FileReader, what: &str) -> Result<(usize, u64)> {
    let mut octets = 0;
    let mut header = Vec::new();
    let numbers: Box<dyn Iterator<Item = usize>> = match what {
        "open" => Box::new(0..0),
        "backwards" => Box::new((0..messages.len()).rev()),
        _ => Box::new(0..messages.len()),
    };
    let mut count = 0;
    for n in numbers {
        let id = EmailId(n as u64 + 1);
        let place = map.find(id).next().and_then(|at| map.place(at));
        let (Some(place), Some(message)) = (place, messages.get(n)) else {
            return Err(Error::new(ErrorKind::Corrupt, "a message is not in the map"));
        };
        count += 1;
        let mut add = |piece: &[u8]| {
            octets += piece.len() as u64;
            Ok(())
        };
        let len = u64::from(message.octets);
        let outcome = match what {
            "find" => Outcome::Done,
            "headers" | "backwards" => {
                header.clear();
                let outcome = reader.header(&place, message, &mut header)?;
                add(&header)?;
                outcome
            }
            "wholes" => reader.range(&place, message, 0..len, &mut add)?,
            _ => {
                let (mut at, mut outcome) = (0, Outcome::Done);
                while at < len && outcome == Outcome::Done {
                    outcome = reader.range(&place, message, at..len.min(at + 16_384), &mut add)?;
                    at += 16_384;
                }
                outcome
            }
        };
        if outcome != Outcome::Done {
            return Err(Error::new(ErrorKind::Corrupt, "the file has changed"));
        }
    }
    Ok((count, octets))
}
