//! Random files and random changes on a simulated disk: what is read afterwards is what was wanted, and at every power cut each message is
//! there once.
#![allow(clippy::unwrap_used)]

mod appended;
mod crash;
mod dovecot;
mod gen_mbox;
mod results;

use std::path::Path;
use std::time::Duration;

use model::{DateTime, EmailId, Keyword, MailboxId, Result};
use platform::sim::SimEnv;
use platform::{Disk, Env, OpenMode, Prng};

use super::{Fate, Job, Outgoing, Recovered, Settings, Target, Wanted, Written, recover, write_back};
use crate::format::mbox::digest::{DigestOfServed, Measured, WholeMeasure};
use crate::format::mbox::lock::{Access, LockPolicy, Locker, Method};
use crate::format::mbox::place::{FileFlags, ImapBase, Place};
use crate::format::mbox::rewrite::Limits;
use crate::format::mbox::scan::{Message, MessageFlags, Reader};

const FILE: &str = "/mail/box";
const DIR: &str = "/account/mbox";
const MAILBOX: MailboxId = MailboxId(5);

/// A message as a reader finds it.
#[derive(Clone, Debug)]
struct Seen {
    message: Message,
    measured: Measured,
}

impl Seen {
    fn place(&self, id: u64) -> Place {
        let Message { start, header, body, end, next, flags } = self.message;
        let meta = &self.measured.meta;
        Place {
            email_id: (!meta.is_pseudo).then_some(EmailId(id)),
            start,
            header,
            body,
            end,
            next,
            form: self.message.form(),
            is_crlf: flags.has(MessageFlags::CRLF),
            flags: meta.flags,
            keywords: super::keywords_hash(&meta.keywords),
        }
    }
}

/// A machine with one mailbox file.
struct World {
    sim: SimEnv,
    env: Env,
    settings: Settings,
}

impl World {
    fn new(seed: u64, content: &[u8], settings: Settings) -> World {
        let sim = SimEnv::new(seed);
        let disk = &sim.disk;
        for dir in ["/mail", DIR] {
            disk.create_dir_all_durable(Path::new(dir)).unwrap();
        }
        let file = disk.open(Path::new(FILE), OpenMode::Create).unwrap();
        file.write_at(content, 0).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("/mail")).unwrap();
        World { env: sim.env(), sim, settings }
    }

    fn content(&self) -> Vec<u8> {
        self.sim.disk.read(Path::new(FILE)).unwrap()
    }

    /// Appends as a delivery agent does.
    fn deliver(&self, bytes: &[u8]) {
        let file = self.sim.disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
        file.write_at(bytes, file.len().unwrap()).unwrap();
        file.sync_data().unwrap();
    }

    fn locker(&self) -> Locker {
        let policy = LockPolicy { write: vec![Method::Fcntl], wait_max: Duration::ZERO, ..LockPolicy::default() };
        Locker::new(self.env.clone(), policy)
    }

    /// `None`: it is no mbox.
    fn look(&self) -> Option<Vec<Seen>> {
        look(&self.content())
    }

    fn recover(&self) -> Result<Recovered> {
        recover(&self.env, &self.locker(), &self.settings, Path::new(FILE), Path::new(DIR), MAILBOX)
    }

    fn write_back(&self, places: &[Place], work: &Work) -> Result<(Written, Vec<Place>)> {
        let lock = self.locker().lock(Path::new(FILE), Access::Write)?;
        let target = Target {
            env: &self.env,
            path: Path::new(FILE),
            lock: &lock,
            dir: Path::new(DIR),
            mailbox: MAILBOX,
            is_doubtful: false,
            has_intents: false,
        };
        let fates = &work.fates;
        let removed_bytes = places.iter().zip(fates).filter(|(_, fate)| **fate == Fate::Remove);
        let removed_bytes = removed_bytes.map(|(place, _)| place.next - place.start).sum();
        let mut placed = Vec::new();
        let mut append = work.append.iter().map(|message| message.outgoing());
        let job = Job {
            places: &mut places.iter().copied(),
            fate: &mut |number, place, _| {
                assert_eq!(*place, places[number]);
                Ok(fates[number].clone())
            },
            removed_bytes,
            base: &work.base,
            append: &mut append,
            placed: &mut |place| {
                placed.push(place);
                Ok(())
            },
        };
        let written = write_back(target, &self.settings, job)?;
        Ok((written, placed))
    }
}

fn look(content: &[u8]) -> Option<Vec<Seen>> {
    let sim = SimEnv::new(0);
    let file = sim.disk.open(Path::new("/x"), OpenMode::Create).unwrap();
    file.write_at(content, 0).unwrap();
    let mut messages = Vec::new();
    let ended = Reader::new(&*file, 0).unwrap().for_each(&mut |message| messages.push(message)).unwrap();
    if ended.step == crate::format::mbox::scan::Step::NotMbox {
        return None;
    }
    let seen = messages.into_iter().enumerate().map(|(n, message)| {
        let octets = &content[message.header as usize..message.end as usize];
        let header = (message.body - message.header) as usize;
        Seen { message, measured: WholeMeasure::default().measure(octets, header, message.form(), true, n == 0) }
    });
    Some(seen.collect())
}

/// A message that is added.
#[derive(Clone, Debug)]
struct New {
    id: u64,
    served: Vec<u8>,
    wanted: Wanted,
    date: DateTime,
    /// Octets of a piece.
    piece: usize,
}

impl New {
    fn outgoing(&self) -> Outgoing<'_> {
        Outgoing {
            email_id: EmailId(self.id),
            wanted: self.wanted.clone(),
            internal_date: self.date,
            size: self.served.len() as u64,
            read: Box::new(|take| self.served.chunks(self.piece).try_for_each(&mut *take)),
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = DigestOfServed::new();
        digest.push(&self.served);
        digest.finish()
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
struct Work {
    fates: Vec<Fate>,
    append: Vec<New>,
    base: ImapBase,
}

fn wanted(random: &mut Prng, uid: u32) -> Wanted {
    const KEYWORDS: [&str; 5] =
        ["$Forwarded", "a", "Junk", "b", "a-long-keyword-that-takes-room-in-the-header-of-a-message"];
    let keywords = KEYWORDS.iter().filter(|_| random.one_in(4)).map(|name| Keyword::new(name).unwrap());
    let keywords = keywords.collect();
    Wanted { uid, flags: FileFlags::from_bits(random.below(64) as u8), keywords }
}

fn settings(random: &mut Prng) -> Settings {
    let window_bytes = 1 << random.below(9);
    Settings {
        padding_bytes: [50, 0, 7, 200][random.index(4)],
        filler_bytes_message_max: [64 << 10, 100, 1000][random.index(3)],
        batch_bytes: [4 << 20, 1, 300][random.index(3)],
        rewrite: Limits {
            window_bytes,
            redo_bytes_max: window_bytes + random.below(500),
            chunk_bytes_max: 1 + random.below(4000),
            copy_bytes: 1 + random.index(300),
        },
    }
}
