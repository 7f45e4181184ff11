//! The parts of an account's search index, and the list of those that are files. Byte table of the list: `docs/format-search.md`.
//!
//! A part has examined a range of ids and covers those messages in it that could be read; ranges of parts do not overlap. Messages do not
//! change and ids are not reused, so a part stays right for as long as the log is the same log. That is what the list says: with the
//! files it names ends of sealed segments, each with the checksum of all frames up to there. A part is believed if the log still has such
//! an end at or behind the part's last id.
//!
//! All of it is derived: what is missing, damaged, of another version or of another log is passed over and made again.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use index::{Finding, Log, Sealed};
use model::Result;
use platform::{Disk, OpenMode};
use search::{DocSet, Index};

/// The file's name in `index/`.
pub(crate) const LIST_FILE: &str = "search";
/// The first bytes of the list.
pub(crate) const LIST_MAGIC: u64 = u64::from_le_bytes(*b"MYSLST\x01\n");
/// Bytes of the list before its entries.
pub(crate) const LIST_HEADER_BYTES: usize = 24;
/// Bytes of an entry for the end of a sealed segment.
pub(crate) const LIST_END_BYTES: usize = 24;
/// Bytes of an entry for a part.
pub(crate) const LIST_PART_BYTES: usize = 40;
/// Changes whenever some message would be indexed differently, or needles be folded differently.
pub(super) const TEXT_VERSION: u32 = 5;

/// The version of what is indexed, that of the tables of Unicode included.
pub(super) fn text_version() -> u32 {
    mime::fold_version().wrapping_mul(31).wrapping_add(TEXT_VERSION)
}

/// One image, and the messages that it speaks of.
#[derive(Debug)]
pub(super) struct Part {
    /// The ids that were looked at: no other part covers any of them.
    pub(super) examined: Range<u64>,
    pub(super) index: Index,
    /// The number in the file's name; `None`: in memory only.
    pub(super) file: Option<FileName>,
}

/// A part's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    pub(super) serial: u64,
    /// CRC32C of the file's footer: tells the file from another one of that name.
    pub(super) crc: u32,
}

/// Parts by rising ids, as they are at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) list: Vec<Arc<Part>>,
}

impl Parts {
    /// Ranges of ids below `end` that no part has examined, rising.
    pub(super) fn gaps(&self, from: u64, end: u64) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = from;
        for part in &self.list {
            if at < part.examined.start.min(end) {
                gaps.push(at..part.examined.start.min(end));
            }
            at = at.max(part.examined.end);
        }
        if at < end {
            gaps.push(at..end);
        }
        gaps
    }

    /// Puts a part in its place.
    pub(super) fn insert(&mut self, part: Arc<Part>) {
        let at = self.list.partition_point(|other| other.examined.start < part.examined.start);
        self.list.insert(at, part);
    }

    /// Takes these parts out.
    pub(super) fn remove(&mut self, parts: &[Arc<Part>]) {
        self.list.retain(|part| !parts.iter().any(|other| Arc::ptr_eq(part, other)));
    }

    /// The messages that are covered, in a set of that range.
    pub(super) fn covered(&self, range: Range<u64>) -> DocSet {
        let mut covered = DocSet::new(range);
        for range in self.list.iter().flat_map(|part| part.index.covered()) {
            covered.insert_range(range.clone());
        }
        covered
    }

    /// Bytes of the parts in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.list.iter().filter(|part| part.file.is_none()).map(|part| part.index.bytes()).sum()
    }
}

/// Where a part's file is.
pub(super) fn path_of(index_dir: &Path, serial: u64) -> PathBuf {
    index_dir.join(format!("search-{serial:016x}"))
}

/// The number in a part's file name.
fn serial_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix("search-")?, 16).ok()
}

/// The part in a file; `None` when it cannot be used. Its blocks are verified when they are read.
pub(super) fn open_part(disk: &dyn Disk, index_dir: &Path, examined: Range<u64>, file: FileName) -> Option<Part> {
    let image = disk.map(&path_of(index_dir, file.serial)).ok()?;
    let is_ours = crc_of(&image) == file.crc;
    let index = Index::open(image).ok().filter(|_| is_ours)?;
    let range = index.range();
    let is_inside = index.documents() == 0 || (examined.start <= range.start && range.end <= examined.end);
    (is_inside && index.cuts() == super::fields::CUTS).then_some(Part { examined, index, file: Some(file) })
}

/// The checksum that tells an image.
pub(super) fn crc_of(image: &[u8]) -> u32 {
    crc32c::crc32c(image.get(image.len().saturating_sub(search::FOOTER_BYTES)..).unwrap_or_default())
}

/// The end of a sealed segment, and where its ids end.
type End = (u64, u32, u64);

fn ends(sealed: &[Sealed]) -> Vec<End> {
    sealed.iter().map(|sealed| (sealed.end().0, sealed.end().1, sealed.ids().end)).collect()
}

/// The bytes of the list.
pub(crate) fn write_list(ends: &[End], parts: &[(u64, Range<u64>, u64, u32)]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&LIST_MAGIC.to_le_bytes());
    out.extend_from_slice(&text_version().to_le_bytes());
    out.extend_from_slice(&(ends.len() as u32).to_le_bytes());
    out.extend_from_slice(&(parts.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for (frame, chain, ids_end) in ends {
        out.extend_from_slice(&frame.to_le_bytes());
        out.extend_from_slice(&ids_end.to_le_bytes());
        out.extend_from_slice(&chain.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }
    for (serial, examined, bytes, crc) in parts {
        out.extend_from_slice(&serial.to_le_bytes());
        out.extend_from_slice(&examined.start.to_le_bytes());
        out.extend_from_slice(&examined.end.to_le_bytes());
        out.extend_from_slice(&bytes.to_le_bytes());
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
    }
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// What a list says: the ends, and of each part its file and what it has examined.
#[derive(Debug, Default, PartialEq, Eq)]
struct List {
    ends: Vec<End>,
    parts: Vec<(FileName, Range<u64>)>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether the bytes are a list of this format, of whatever version of what is indexed.
fn is_whole(bytes: &[u8]) -> bool {
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else { return false };
    crc32c::crc32c(body) == u32::from_le_bytes(*crc) && u64_at(body, 0) == Some(LIST_MAGIC)
}

fn read_list(bytes: &[u8]) -> Option<List> {
    let (body, _) = bytes.split_last_chunk::<4>()?;
    let is_ours = is_whole(bytes) && u32_at(body, 8)? == text_version();
    let (ends, parts) = (u32_at(body, 12)? as usize, u32_at(body, 16)? as usize);
    let ends_len = ends.checked_mul(LIST_END_BYTES)?;
    let (end_entries, part_entries) = body.get(LIST_HEADER_BYTES..)?.split_at_checked(ends_len)?;
    if !is_ours || part_entries.len() != parts.checked_mul(LIST_PART_BYTES)? {
        return None;
    }
    let mut list = List::default();
    for entry in end_entries.chunks_exact(LIST_END_BYTES) {
        list.ends.push((u64_at(entry, 0)?, u32_at(entry, 16)?, u64_at(entry, 8)?));
    }
    for entry in part_entries.chunks_exact(LIST_PART_BYTES) {
        let file = FileName { serial: u64_at(entry, 0)?, crc: u32_at(entry, 32)? };
        list.parts.push((file, u64_at(entry, 8)?..u64_at(entry, 16)?));
    }
    Some(list)
}

/// The parts whose files are there and belong to this log; and whether the list is as it would be written now.
pub(super) fn load(disk: &dyn Disk, log: &Log) -> (Parts, bool) {
    let index_dir = log.index_dir();
    let Some(list) = disk.read(&index_dir.join(LIST_FILE)).ok().and_then(|bytes| read_list(&bytes)) else {
        return (Parts::default(), false);
    };
    let now = ends(&log.sealed());
    // What lies before an end that the log has had and still has.
    let known = list.ends.iter().filter(|end| now.contains(end)).map(|(_, _, ids_end)| *ids_end).max().unwrap_or(0);
    let mut parts = Parts::default();
    let mut at = 0;
    let count = list.parts.len();
    for (file, examined) in list.parts {
        if examined.start < at || examined.start > examined.end || examined.end > known {
            continue;
        }
        if let Some(part) = open_part(disk, &index_dir, examined, file) {
            at = part.examined.end;
            parts.list.push(Arc::new(part));
        }
    }
    let is_current = list.ends == now && parts.list.len() == count;
    (parts, is_current)
}

/// What [`check`] found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Parts that are on the disk and would be believed, with their files, opened anew.
    pub(super) parts: Vec<(PathBuf, Part)>,
    /// What is damaged of the others.
    pub(super) findings: Vec<Finding>,
}

/// Opens what the list on the disk names.
pub(super) fn check(disk: &dyn Disk, log: &Log) -> Result<Checked> {
    let index_dir = log.index_dir();
    let path = index_dir.join(LIST_FILE);
    let find = |file: PathBuf, what: &str| Finding { file, offset: 0, email_id: None, what: what.to_owned() };
    let bytes = match disk.read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Checked::default()),
        Err(error) => return Err(error.into()),
    };
    if !is_whole(&bytes) {
        let findings = vec![find(path, "the list of the search index is damaged")];
        return Ok(Checked { parts: Vec::new(), findings });
    }
    let mut checked = Checked::default();
    let list = read_list(&bytes).unwrap_or_default();
    for (file, examined) in list.parts {
        let path = path_of(&index_dir, file.serial);
        match open_part(disk, &index_dir, examined, file) {
            Some(part) => checked.parts.push((path, part)),
            None => checked.findings.push(find(path, "a part of the search index is damaged or missing")),
        }
    }
    Ok(checked)
}

/// Writes the list of those parts that are files, durably, and removes the files of others. Whoever still has one of those open reads on.
pub(super) fn save(disk: &dyn Disk, log: &Log, sealed: &[Sealed], parts: &Parts) -> Result<()> {
    let index_dir = log.index_dir();
    let files = parts.list.iter().filter_map(|part| {
        let file = part.file?;
        Some((file.serial, part.examined.clone(), part.index.bytes(), file.crc))
    });
    let files: Vec<_> = files.collect();
    let path = index_dir.join(LIST_FILE);
    disk.replace_file(&path, &path.with_extension("new"), &write_list(&ends(sealed), &files))?;
    for entry in disk.list(&index_dir)? {
        let serial = serial_of(&entry.name.to_string_lossy());
        if serial.is_some_and(|serial| !files.iter().any(|(listed, ..)| *listed == serial)) {
            disk.remove(&index_dir.join(entry.name))?;
        }
    }
    Ok(())
}

/// Puts an image into the file of that number, durably but for the list.
pub(super) fn write_part(disk: &dyn Disk, index_dir: &Path, serial: u64, image: &ImageSource<'_>) -> Result<FileName> {
    disk.create_dir_all_durable(index_dir)?;
    let path = path_of(index_dir, serial);
    let temporary = path.with_extension("new");
    let file = disk.open(&temporary, OpenMode::Create)?;
    file.set_len(0)?;
    let mut at = 0;
    let mut buffer: Vec<u8> = Vec::new();
    let mut end = Vec::new();
    image(&mut |bytes| {
        buffer.extend_from_slice(bytes);
        if buffer.len() >= WRITE_BYTES {
            file.write_at(&buffer, at)?;
            at += buffer.len() as u64;
            buffer.clear();
        }
        // The last of them holds the footer.
        if bytes.len() >= search::FOOTER_BYTES {
            end.clear();
            end.extend_from_slice(bytes.get(bytes.len() - search::FOOTER_BYTES..).unwrap_or_default());
        }
        Ok(())
    })?;
    file.write_at(&buffer, at)?;
    file.sync_data()?;
    disk.rename(&temporary, &path)?;
    Ok(FileName { serial, crc: crc_of(&end) })
}

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Gives an image in order.
pub(super) type ImageSource<'a> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'a;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lists_come_back_or_are_refused() {
        let ends = [(7, 0xaabb_ccdd, 12), (19, 3, 40)];
        let parts = [(1, 1..12, 5000, 9), (4, 12..40, 77, 8)];
        let bytes = write_list(&ends, &parts);
        let list = read_list(&bytes).unwrap();
        assert_eq!(list.ends, ends);
        assert_eq!(list.parts[1], (FileName { serial: 4, crc: 8 }, 12..40));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(read_list(&damaged), None, "{at}");
            assert_eq!(read_list(&bytes[..at]), None, "{at}");
        }
    }

    /// The byte tables of the document, held against what the code writes.
    #[test]
    fn the_document_has_the_list() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format-search.md");
        let document = std::fs::read_to_string(path).unwrap();
        let bytes = write_list(&[(0x11, 0x12, 0x13)], &[(0x21, 0x22..0x23, 0x24, 0x25)]);
        let mut at = 0;
        for (heading, len, values) in [
            ("## Header of the list", LIST_HEADER_BYTES, vec![LIST_MAGIC, u64::from(text_version()), 1, 1, 0]),
            ("## End in the list", LIST_END_BYTES, vec![0x11, 0x13, 0x12, 0]),
            ("## Part in the list", LIST_PART_BYTES, vec![0x21, 0x22, 0x23, 0x24, 0x25, 0]),
        ] {
            let (_, rest) = document.split_once(heading).expect("the heading is in the document");
            let rows = rest.lines().skip_while(|line| !line.starts_with("| offset |")).skip(2);
            let mut offset = 0;
            let mut values = values.into_iter();
            for row in rows.take_while(|line| line.starts_with('|')) {
                let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
                assert_eq!(cells[0].parse(), Ok(offset), "{heading}: {}", cells[2]);
                let size: usize = cells[1].parse().unwrap();
                let mut wide = [0; 8];
                wide[..size].copy_from_slice(&bytes[at + offset..at + offset + size]);
                assert_eq!(Some(u64::from_le_bytes(wide)), values.next(), "{heading}: {}", cells[2]);
                offset += size;
            }
            assert_eq!((offset, values.next()), (len, None), "{heading}");
            at += len;
        }
        assert_eq!(at + 4, bytes.len());
    }

    #[test]
    fn names_of_parts() {
        let path = path_of(Path::new("/a"), 0x1f);
        assert_eq!(path, Path::new("/a/search-000000000000001f"));
        assert_eq!(serial_of(&path.file_name().unwrap().to_string_lossy()), Some(0x1f));
        assert_eq!((serial_of("search"), serial_of("search-x"), serial_of("cache-1")), (None, None, None));
    }
}
