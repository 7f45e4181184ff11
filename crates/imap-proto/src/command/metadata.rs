//! GETMETADATA and SETMETADATA (RFC 5464).

use super::parse::mailbox;
use super::write::CommandWriter;
use crate::error::Parse;
use crate::scan::Scan;
use crate::{MailboxArg, limits};

/// GETMETADATA (RFC 5464 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetMetadata {
    /// Whose entries; an empty name: the server's.
    pub mailbox: MailboxArg,
    /// `MAXSIZE`: larger values are left out, octets.
    pub max_size: Option<u32>,
    /// `DEPTH`: how far below the entries others are wanted.
    pub depth: MetadataDepth,
    /// The entries; one or more.
    pub entries: Vec<MetadataEntry>,
}

/// How far below an entry GETMETADATA looks (RFC 5464 §4.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetadataDepth {
    /// `0`: the entry itself.
    #[default]
    Zero,
    /// `1`: and those immediately below.
    One,
    /// `infinity`: and all below.
    Infinity,
}

/// SETMETADATA (RFC 5464 §4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetMetadata {
    /// Whose entries; an empty name: the server's.
    pub mailbox: MailboxArg,
    /// The entries and their values, `None` for those that are to go; one or more.
    pub values: Vec<(MetadataEntry, Option<Vec<u8>>)>,
}

/// The name of an entry, in lower case: names are case-insensitive (RFC 5464 §3.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetadataEntry(String);

impl MetadataEntry {
    /// The entry of this name; `None` when no entry may have it. RFC 5464 §3.2: names begin with a slash and do not end with one, and
    /// have no two of them side by side, no `*`, no `%`, no control and no character beyond ASCII. §6: the first component is `/private`
    /// or `/shared`.
    pub fn new(name: &[u8]) -> Option<Self> {
        let is_name_char = |octet: u8| (0x20..0x7f).contains(&octet) && octet != b'*' && octet != b'%';
        if name.len() > limits::METADATA_ENTRY_BYTES_MAX || !name.iter().all(|octet| is_name_char(*octet)) {
            return None;
        }
        let name = String::from_utf8(name.to_vec()).ok()?.to_ascii_lowercase();
        let mut components = name.strip_prefix('/')?.split('/');
        let is_rooted = matches!(components.next(), Some("private" | "shared"));
        (is_rooted && components.all(|component| !component.is_empty())).then_some(MetadataEntry(name))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// RFC 5464 §5 getmetadata = "GETMETADATA" [SP getmetadata-options] SP mailbox SP entries; the examples of §4.2 have the options behind
// the mailbox: both are read.
pub(super) fn get_metadata(scan: &mut Scan) -> Parse<GetMetadata> {
    let mut options = Options::default();
    scan.sp()?;
    if scan.peek() == Some(b'(') {
        options.read(scan)?;
        scan.sp()?;
    }
    let mailbox = mailbox(scan)?;
    scan.sp()?;
    // An entry begins with a slash, perhaps in quotes or in a literal: what begins with a letter is an option.
    let mut ahead = scan.clone();
    if ahead.eat(b'(') && ahead.peek().is_some_and(|octet| octet.is_ascii_alphabetic()) {
        options.read(scan)?;
        scan.sp()?;
    }
    let entries = match scan.peek() {
        Some(b'(') => scan.list1(limits::METADATA_ENTRIES_MAX, "metadata_entries_max", entry)?,
        _ => scan.items(limits::METADATA_ENTRIES_MAX, "metadata_entries_max", entry)?,
    };
    Ok(GetMetadata { mailbox, max_size: options.max_size, depth: options.depth, entries })
}

// RFC 5464 §5 setmetadata = "SETMETADATA" SP mailbox SP entry-values
pub(super) fn set_metadata(scan: &mut Scan) -> Parse<SetMetadata> {
    scan.sp()?;
    let mailbox = mailbox(scan)?;
    scan.sp()?;
    let values = scan.list1(limits::METADATA_ENTRIES_MAX, "metadata_entries_max", |scan| {
        let entry = entry(scan)?;
        scan.sp()?;
        // value = nstring / literal8
        if scan.eat(b'~') {
            return Ok((entry, Some(scan.literal()?.to_vec())));
        }
        Ok((entry, scan.nstring()?))
    })?;
    Ok(SetMetadata { mailbox, values })
}

// RFC 5464 §5 entry = astring
fn entry(scan: &mut Scan) -> Parse<MetadataEntry> {
    let before = scan.clone();
    match MetadataEntry::new(&scan.astring("an entry")?) {
        Some(entry) => Ok(entry),
        None => before.error("an entry below /private or /shared"),
    }
}

enum MetadataOption {
    MaxSize(u32),
    Depth(MetadataDepth),
}

// RFC 5464 §5 maxsize-opt = "MAXSIZE" SP number; scope-opt = "DEPTH" SP ("0" / "1" / "infinity")
fn option(scan: &mut Scan) -> Parse<MetadataOption> {
    let before = scan.clone();
    let name = scan.word("MAXSIZE or DEPTH")?;
    if name != "MAXSIZE" && name != "DEPTH" {
        return before.error("MAXSIZE or DEPTH");
    }
    scan.sp()?;
    if name == "MAXSIZE" {
        return scan.number().map(MetadataOption::MaxSize);
    }
    let before = scan.clone();
    Ok(MetadataOption::Depth(match scan.word("0, 1 or infinity")?.as_str() {
        "0" => MetadataDepth::Zero,
        "1" => MetadataDepth::One,
        "INFINITY" => MetadataDepth::Infinity,
        _ => return before.error("0, 1 or infinity"),
    }))
}

#[derive(Default)]
struct Options {
    max_size: Option<u32>,
    depth: MetadataDepth,
}

impl Options {
    // RFC 5464 §5 getmetadata-options = "(" getmetadata-option *(SP getmetadata-option) ")"
    fn read(&mut self, scan: &mut Scan) -> Parse<()> {
        /// There are two.
        const OPTIONS_MAX: usize = 10;
        for option in scan.list1(OPTIONS_MAX, "metadata_options_max", option)? {
            match option {
                MetadataOption::MaxSize(octets) => self.max_size = Some(octets),
                MetadataOption::Depth(depth) => self.depth = depth,
            }
        }
        Ok(())
    }
}

impl GetMetadata {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let mut options = Vec::new();
        options.extend(self.max_size.map(|size| format!("MAXSIZE {size}")));
        match self.depth {
            MetadataDepth::Zero => {}
            MetadataDepth::One => options.push("DEPTH 1".to_owned()),
            MetadataDepth::Infinity => options.push("DEPTH infinity".to_owned()),
        }
        if !options.is_empty() {
            writer.raw(" ");
            writer.list(&options, |writer, option| writer.raw(option));
        }
        writer.raw(" ");
        writer.astring(&self.mailbox.0);
        writer.raw(" ");
        writer.list(&self.entries, |writer, entry| writer.astring(entry.0.as_bytes()));
    }
}

impl SetMetadata {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        writer.raw(" ");
        writer.astring(&self.mailbox.0);
        writer.raw(" ");
        writer.list(&self.values, |writer, (entry, value)| {
            writer.astring(entry.0.as_bytes());
            writer.raw(" ");
            writer.nstring(value.as_deref());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_entries() {
        for good in
            ["/shared/comment", "/Private/Comment", "/private/vendor/x y/z", "/shared", "/private/filters/values/a"]
        {
            let entry = MetadataEntry::new(good.as_bytes());
            assert_eq!(entry.map(|entry| entry.as_str().to_owned()), Some(good.to_ascii_lowercase()), "{good}");
        }
        for bad in [
            "",
            "/",
            "shared/x",
            "/shared/",
            "/shared//x",
            "/other/x",
            "/sharedx",
            "/shared/*",
            "/shared/%",
            "/shared/\u{e9}",
        ] {
            assert_eq!(MetadataEntry::new(bad.as_bytes()), None, "{bad}");
        }
        for octet in 0..=255u8 {
            let is_good = octet.is_ascii_graphic() && !b"*%/".contains(&octet) || octet == b' ';
            assert_eq!(MetadataEntry::new(&[b"/shared/x", &[octet][..]].concat()).is_some(), is_good, "{octet}");
        }
    }
}
