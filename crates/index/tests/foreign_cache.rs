//! What is kept of foreign messages beside their files: when it is made, that it is used, and that it is never believed wrongly.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod model;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ::model::{DateTime, EmailId, Flags, MailboxId, MailboxName, UidSet};
use mailyard_index::{Budget, Derive, Foreign, ForeignMessage, Log, MessageBytes, NewEntry, Options, Reader};
use model::{Files, digest};
use platform::sim::SimEnv;
use platform::{Disk, OpenMode};

const DIR: &str = "/mail/ann";

/// The header itself, made from it alone, and the whole message in capitals; counts what it makes.
#[derive(Debug, Default)]
struct Capitals {
    headers: AtomicU32,
    wholes: AtomicU32,
}

impl Capitals {
    fn made(&self) -> (u32, u32) {
        (self.headers.swap(0, Ordering::Relaxed), self.wholes.swap(0, Ordering::Relaxed))
    }
}

impl Derive for Capitals {
    fn version(&self) -> u32 {
        1
    }

    fn columns(&self) -> usize {
        2
    }

    fn derive(&self, message: &mut MessageBytes<'_>) -> ::model::Result<Vec<Vec<u8>>> {
        let mut whole = Vec::new();
        message.range(0..u64::from(message.info().len), &mut |piece| {
            whole.extend_from_slice(piece);
            Ok(())
        })?;
        self.wholes.fetch_add(1, Ordering::Relaxed);
        Ok(vec![message.header()?.to_vec(), whole.to_ascii_uppercase()])
    }

    fn derive_from_header(&self, column: usize, header: &[u8]) -> Option<Vec<u8>> {
        (column == 0).then(|| {
            self.headers.fetch_add(u32::from(!header.is_empty()), Ordering::Relaxed);
            header.to_vec()
        })
    }
}

/// An account, open.
struct Opened {
    sim: SimEnv,
    files: Arc<Files>,
    derive: Arc<Capitals>,
    log: Arc<Log>,
    inbox: MailboxId,
    ids: Vec<EmailId>,
}

fn open(sim: &SimEnv, files: &Arc<Files>, derive: &Arc<Capitals>) -> Arc<Log> {
    let options = Options { retention_seconds: 0, preallocate_bytes_min: 0, ..Options::default() };
    Log::open(&sim.env(), Path::new(DIR), options, Some(derive.clone()), Some(files.clone())).unwrap()
}

fn text(id: usize, salt: &str) -> Vec<u8> {
    format!("subject: {salt} {id}\r\n\r\nbody of {id}\r\n").into_bytes()
}

fn header_len(bytes: &[u8]) -> u32 {
    bytes.windows(4).position(|at| at == b"\r\n\r\n").unwrap() as u32 + 4
}

impl Opened {
    fn new(messages: usize, salt: &str) -> Self {
        let (sim, files, derive) = (SimEnv::new(5), Arc::default(), Arc::default());
        sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
        let log = open(&sim, &files, &derive);
        let inbox = log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
        let mut opened = Opened { sim, files, derive, log, inbox, ids: Vec::new() };
        opened.add(messages, salt);
        opened
    }

    fn add(&mut self, messages: usize, salt: &str) {
        let internal_date = DateTime::utc(1_000_000_000);
        let entry = NewEntry { uid: None, flags: Flags::NONE, internal_date, save_date: None };
        let (files, inbox, ids) = (&self.files, self.inbox, &mut self.ids);
        let add = |tx: &mut mailyard_index::Transaction| {
            for _ in 0..messages {
                let bytes = text(ids.len(), salt);
                let (octets, header_octets) = (bytes.len() as u32, header_len(&bytes));
                let id = tx.add_foreign(ForeignMessage { octets, header_octets, digest: digest(&bytes) })?;
                files.insert(id, &bytes, header_octets);
                tx.add_entry(inbox, id, &entry)?;
                ids.push(id);
            }
            Ok(())
        };
        self.log.commit(add).unwrap();
    }

    fn reopen(&mut self) {
        self.log.close().unwrap();
        self.log = open(&self.sim, &self.files, &self.derive);
    }

    fn reader(&self) -> Reader {
        self.log.reader()
    }

    /// Asks for a column of some messages and holds it against what it should be.
    fn ask(&self, reader: &mut Reader, column: usize, which: std::ops::Range<usize>, salt: &str) {
        for n in which {
            let bytes = text(n, salt);
            let header = &bytes[..header_len(&bytes) as usize];
            let expected = if column == 0 { header.to_vec() } else { bytes.to_ascii_uppercase() };
            assert_eq!(reader.derived(self.ids[n], column).unwrap(), expected, "message {n}, column {column}");
        }
    }

    fn maintain(&self) -> u32 {
        self.log.maintain(Budget { bytes: u64::MAX }).unwrap().cached
    }

    fn cached(&self) -> Vec<String> {
        let entries = self.sim.disk.list(&Path::new(DIR).join("index")).unwrap_or_default();
        let names = entries.iter().map(|entry| entry.name.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("foreign-")).collect()
    }
}

#[test]
fn made_when_many_were_asked_about_and_used_then() {
    let mut opened = Opened::new(500, "x");
    let derive = Arc::clone(&opened.derive);
    assert_eq!(opened.maintain(), 0);
    opened.ask(&mut opened.reader(), 0, 0..20, "x");
    opened.ask(&mut opened.reader(), 0, 0..20, "x");
    assert_eq!(derive.made(), (20, 0), "in memory meanwhile");
    assert_eq!(opened.maintain(), 0, "nobody asks");
    assert_eq!((opened.cached(), derive.made()), (vec![], (0, 0)));
    opened.ask(&mut opened.reader(), 0, 20..60, "x");
    derive.made();
    assert_eq!(opened.maintain(), 1);
    assert_eq!(derive.made(), (500, 0), "from the headers alone");
    let mut reader = opened.reader();
    opened.ask(&mut reader, 0, 0..500, "x");
    assert_eq!(derive.made(), (0, 0));
    // Whoever asks for more has that made too, and keeps what there was.
    opened.ask(&mut reader, 1, 100..140, "x");
    assert_eq!((derive.made(), opened.maintain(), derive.made()), ((0, 40), 1, (0, 500)));
    opened.ask(&mut reader, 1, 0..500, "x");
    opened.ask(&mut reader, 0, 0..500, "x");
    opened.reopen();
    opened.ask(&mut opened.reader(), 1, 0..500, "x");
    assert_eq!((derive.made(), opened.maintain()), ((0, 0), 0));
    // New messages: those before are not made again.
    opened.add(40, "x");
    let mut reader = opened.reader();
    opened.ask(&mut reader, 0, 500..540, "x");
    assert_eq!((derive.made(), opened.maintain(), derive.made()), ((40, 0), 1, (0, 40)));
    opened.ask(&mut reader, 1, 0..540, "x");
    assert_eq!(derive.made(), (0, 0));
    assert_eq!(opened.cached(), ["foreign-0"]);
    // Messages that are gone take it along.
    opened.log.commit(|tx| tx.expunge(opened.inbox, &UidSet::range(1, 540))).unwrap();
    opened.reopen();
    assert_eq!(opened.cached(), [""; 0]);
}

/// Gives bytes as [`Files`] does, and writes to the log each time, as one does that finds a file changed.
#[derive(Debug, Default)]
struct Busy {
    files: Files,
    log: OnceLock<Weak<Log>>,
}

impl Busy {
    fn write(&self) {
        if let Some(log) = self.log.get().and_then(Weak::upgrade) {
            log.commit(|tx| tx.create_mailbox(&MailboxName::new(&format!("m{}", log.state().modseq().0))?, &[]))
                .unwrap();
            log.checkpoint().unwrap();
        }
    }
}

impl Foreign for Busy {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> ::model::Result<()> {
        self.write();
        self.files.header(id, message, out)
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> ::model::Result<()>,
    ) -> ::model::Result<()> {
        self.write();
        self.files.range(id, message, range, sink)
    }
}

#[test]
fn whoever_gives_the_bytes_may_write_to_the_log() {
    let (sim, busy) = (SimEnv::new(6), Arc::new(Busy::default()));
    sim.disk.create_dir_all_durable(Path::new("/mail")).unwrap();
    let derive = Arc::new(Capitals::default());
    let log =
        Log::open(&sim.env(), Path::new(DIR), Options::default(), Some(derive.clone()), Some(busy.clone())).unwrap();
    let mut opened = Opened { sim, files: Arc::default(), derive, log, inbox: MailboxId(0), ids: Vec::new() };
    opened.inbox = opened.log.commit(|tx| tx.create_mailbox(&MailboxName::inbox(), &[])).unwrap();
    opened.add(60, "x");
    for (n, id) in opened.ids.iter().enumerate() {
        let bytes = text(n, "x");
        busy.files.insert(*id, &bytes, header_len(&bytes));
    }
    busy.log.set(Arc::downgrade(&opened.log)).unwrap();
    opened.ask(&mut opened.reader(), 1, 0..40, "x");
    assert_eq!(opened.maintain(), 1);
    opened.ask(&mut opened.reader(), 1, 0..60, "x");
    assert_eq!(opened.derive.made(), (0, 100));
}

#[test]
fn several_groups() {
    let mut opened = Opened::new(9000, "x");
    opened.add(9000, "x");
    let mut reader = opened.reader();
    opened.ask(&mut reader, 0, 0..18_000, "x");
    // Whoever goes through them all makes them on the way.
    let (headers, _) = opened.derive.made();
    assert!((18_000..18_000 + 3 * 1100).contains(&headers), "{headers}");
    assert_eq!((opened.maintain(), opened.derive.made()), (0, (0, 0)));
    opened.ask(&mut reader, 0, 0..18_000, "x");
    let mut both = opened.reader();
    for n in 8100..8300 {
        opened.ask(&mut both, 0, n..n + 1, "x");
        opened.ask(&mut both, 0, 100..101, "x");
    }
    assert_eq!(opened.derive.made(), (0, 0));
    assert_eq!(opened.cached(), ["foreign-0", "foreign-1", "foreign-2"]);
}

#[test]
fn blobs_of_other_messages_are_not_used() {
    let [one, mut other] = ["x", "y"].map(|salt| {
        let opened = Opened::new(100, salt);
        opened.ask(&mut opened.reader(), 1, 0..100, salt);
        assert_eq!(opened.maintain(), 1);
        opened
    });
    let path = Path::new(DIR).join("index/foreign-0");
    let bytes = one.sim.disk.read(&path).unwrap();
    let there = |opened: &Opened, bytes: &[u8]| {
        let file = opened.sim.disk.open(&path, OpenMode::Create).unwrap();
        file.set_len(0).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    there(&other, &bytes);
    other.reopen();
    other.derive.made();
    other.ask(&mut other.reader(), 1, 0..100, "y");
    assert_eq!(other.derive.made(), (0, 100));
    // Nor damaged ones.
    let mut one = one;
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        there(&one, &damaged);
        one.reopen();
        let mut reader = one.reader();
        one.ask(&mut reader, 1, 0..100, "x");
        one.ask(&mut reader, 0, 0..100, "x");
    }
    there(&one, &bytes[..bytes.len() / 2]);
    one.reopen();
    one.ask(&mut one.reader(), 1, 0..100, "x");
}
