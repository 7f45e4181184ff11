//! The manifest of a snapshot: lines of text, the last of which has the digest of the others.

use model::{AccountName, CivilDate, DateTime};
use sha2::{Digest, Sha256};

/// The first line.
const FIRST_LINE: &str = "mailyard snapshot 1";
/// The first line of one with octets beside the log.
const FIRST_LINE_OCTETS: &str = "mailyard snapshot 2";
/// The first line of one whose files are encrypted.
const FIRST_LINE_ENCRYPTED: &str = "mailyard snapshot 3";
/// Ends the name of a file that is encrypted.
pub(super) const ENCRYPTED: &str = ".age";

/// A file of the account's log, as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Its name in `log/`.
    pub name: String,
    /// Octets of its copy.
    pub len: u64,
    /// SHA-256 of the octets of its copy, 64 hexadecimal digits.
    pub sha256: String,
    /// What stands behind the digest in the name of the copy: nothing, or, where it is encrypted, `.age` or `.MARK.age`, with the mark by
    /// which the account knows it again.
    pub ending: String,
}

impl SnapshotFile {
    /// The name of the copy.
    pub fn stored_name(&self) -> String {
        let SnapshotFile { name, sha256, ending, .. } = self;
        format!("{name}.{sha256}{ending}")
    }

    /// Whether the copy is encrypted.
    pub fn is_encrypted(&self) -> bool {
        !self.ending.is_empty()
    }
}

/// One account at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name: the time in UTC, with a number when there were several in one second.
    pub id: String,
    /// Whose it is.
    pub account: AccountName,
    /// When it was made, Unix seconds.
    pub time: i64,
    /// The last frame of the log that is in it.
    pub frame: u64,
    /// The files of the log, in the order of their frames.
    pub files: Vec<SnapshotFile>,
    /// Octets of messages that its log has not: they were in mbox files or Maildirs.
    pub octets: Vec<SnapshotFile>,
}

impl Snapshot {
    /// Every file that it needs.
    pub fn all_files(&self) -> impl Iterator<Item = &SnapshotFile> {
        self.files.iter().chain(&self.octets)
    }

    /// Octets of all its files.
    pub fn bytes(&self) -> u64 {
        self.all_files().fold(0, |sum, file| sum.saturating_add(file.len))
    }

    /// The name of the `nth` snapshot (from 0) of a second: `20261122T051700Z`, then `20261122T051700Z-1`.
    pub(super) fn id_of(time: i64, nth: u32) -> String {
        let when = DateTime::utc(time);
        let CivilDate { year, month, day } = when.civil_date();
        let (hour, minute, second) = when.time_of_day();
        let mut id = format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z");
        if nth > 0 {
            id.push_str(&format!("-{nth:02}"));
        }
        id
    }

    /// Whether a snapshot of this name was made at `time` or before.
    pub(super) fn is_id_until(id: &str, time: i64) -> bool {
        // Names sort like times, and the number stands behind the time.
        id.split('-').next().is_some_and(|second| *second <= *Snapshot::id_of(time, 0))
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let Snapshot { id, account, time, frame, files, octets } = self;
        let first_line = match (self.all_files().any(SnapshotFile::is_encrypted), octets.is_empty()) {
            (true, _) => FIRST_LINE_ENCRYPTED,
            (false, false) => FIRST_LINE_OCTETS,
            (false, true) => FIRST_LINE,
        };
        let mut text = format!("{first_line}\nid {id}\naccount {account}\ntime {time}\nframe {frame}\n");
        for (word, files) in [("file", files), ("octets", octets)] {
            for SnapshotFile { name, len, sha256, ending } in files {
                let space = if ending.is_empty() { "" } else { " " };
                text.push_str(&format!("{word} {name} {len} {sha256}{space}{ending}\n"));
            }
        }
        let digest = super::hex(&Sha256::digest(text.as_bytes()));
        text.push_str(&format!("sha256 {digest}\n"));
        text.into_bytes()
    }

    /// `None`: it is damaged, or of another version.
    pub(super) fn read(bytes: &[u8]) -> Option<Snapshot> {
        let text = std::str::from_utf8(bytes).ok()?;
        let at = text.rfind("sha256 ")?;
        let (body, last) = text.split_at_checked(at)?;
        let digest = super::hex(&Sha256::digest(body.as_bytes()));
        if last != format!("sha256 {digest}\n") {
            return None;
        }
        let mut lines = body.lines();
        let first_line = lines.next()?;
        let (may_have_octets, is_encrypted) = match first_line {
            FIRST_LINE => (false, false),
            FIRST_LINE_OCTETS => (true, false),
            FIRST_LINE_ENCRYPTED => (true, true),
            _ => return None,
        };
        let id = lines.next()?.strip_prefix("id ")?.to_owned();
        let account = AccountName::new(lines.next()?.strip_prefix("account ")?).ok()?;
        let time = lines.next()?.strip_prefix("time ")?.parse().ok()?;
        let frame = lines.next()?.strip_prefix("frame ")?.parse().ok()?;
        let (mut files, mut octets) = (Vec::new(), Vec::new());
        for line in lines {
            let (word, rest) = line.split_once(' ')?;
            match word {
                "file" => files.push(file(rest, is_encrypted)?),
                "octets" if may_have_octets => octets.push(file(rest, is_encrypted)?),
                _ => return None,
            }
        }
        Some(Snapshot { id, account, time, frame, files, octets })
    }
}

/// `NAME LEN SHA256`, and the ending where it is encrypted. A name that could lead out of the directory is none.
fn file(line: &str, is_encrypted: bool) -> Option<SnapshotFile> {
    let mut words = line.split(' ');
    let (name, len, sha256) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let ending = if is_encrypted { words.next()? } else { "" };
    let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    let is_digest = sha256.len() == 64 && is_hex(sha256);
    let mark = ending.strip_suffix(ENCRYPTED).map(|mark| mark.strip_prefix('.').unwrap_or(mark));
    let is_ending = mark.map_or(ending.is_empty(), is_hex);
    let is_whole = is_name && is_digest && is_ending && words.next().is_none();
    let [name, sha256, ending] = [name, sha256, ending].map(str::to_owned);
    is_whole.then_some(SnapshotFile { name, len, sha256, ending })
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn snapshot() -> Snapshot {
        let file = |name: &str, len| {
            let [sha256, ending] = ["0f".repeat(32), String::new()];
            SnapshotFile { name: name.to_owned(), len, sha256, ending }
        };
        Snapshot {
            id: Snapshot::id_of(1_795_324_620, 0),
            account: AccountName::new("ann@example.org").unwrap(),
            time: 1_795_324_620,
            frame: 7,
            files: vec![file("segment-1", 10), file("tail-2", 0)],
            octets: vec![file("octets-1", 7)],
        }
    }

    #[test]
    fn manifests_come_back() {
        let snapshot = snapshot();
        assert_eq!(snapshot.id, "20261122T051700Z");
        assert_eq!(Snapshot::id_of(snapshot.time, 2), "20261122T051700Z-02");
        assert!(Snapshot::is_id_until("20261122T051700Z-02", snapshot.time));
        assert!(!Snapshot::is_id_until("20261122T051700Z", snapshot.time - 1));
        assert!(snapshot.write().starts_with(b"mailyard snapshot 2\n"));
        assert_eq!(Snapshot::read(&snapshot.write()), Some(snapshot.clone()));
        let plain = Snapshot { octets: Vec::new(), ..snapshot };
        assert!(plain.write().starts_with(b"mailyard snapshot 1\n"), "older versions read it");
        assert_eq!(Snapshot::read(&plain.write()), Some(plain));
        let encrypted = encrypted();
        assert!(encrypted.write().starts_with(b"mailyard snapshot 3\n"));
        assert_eq!(Snapshot::read(&encrypted.write()), Some(encrypted));
    }

    fn encrypted() -> Snapshot {
        let mut snapshot = snapshot();
        let endings = [format!(".{}.age", "5a".repeat(16)), ".age".to_owned(), ".age".to_owned()];
        for (file, ending) in snapshot.files.iter_mut().chain(&mut snapshot.octets).zip(endings) {
            file.ending = ending;
        }
        snapshot
    }

    #[test]
    fn every_damage_is_seen() {
        for bytes in [snapshot().write(), encrypted().write()] {
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert_eq!(Snapshot::read(&damaged), None, "octet {at}");
                assert_eq!(Snapshot::read(&bytes[..at]), None, "cut at {at}");
            }
        }
    }

    #[test]
    fn names_stay_in_the_directory() {
        let digest = "0".repeat(64);
        assert!(file(&format!("tail-1 5 {digest}"), false).is_some());
        assert!(file(&format!("tail-1 5 {digest} .0f.age"), true).is_some());
        for bad in ["../x", "a/b", ".x", "", "a b"] {
            assert_eq!(file(&format!("{bad} 5 {digest}"), false), None, "{bad}");
        }
        for bad in ["../x.age", "/.age", "age", ".xy.age", ".age x"] {
            assert_eq!(file(&format!("tail-1 5 {digest} {bad}"), true), None, "{bad}");
        }
    }
}
