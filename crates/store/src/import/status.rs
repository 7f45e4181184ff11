//! What a header says about its message's entry: flags (Status, X-Status, X-Keywords of mbox files; the Mozilla fields), dates, and
//! the fields that our own export put on top.

use mime::HeaderBlock;
use model::{CivilDate, DateTime, Keyword, SystemFlag};

use crate::FlagNames;

/// The field that ends the block that our export puts on top of a message.
pub(crate) const EXPORT_FIELD: &str = "X-Mailyard";
/// Other fields that the block may have, each once.
const EXPORT_BLOCK: [&str; 3] = ["Status", "X-Status", "X-Keywords"];
/// In [`EXPORT_FIELD`]: the line ends are the message's own.
pub(crate) const RAW: &str = "raw";
/// In [`EXPORT_FIELD`]: the last line end is not the message's.
pub(crate) const CUT: &str = "cut";

/// What our own export said about a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExportBlock {
    /// Octets of the block: not part of the message.
    pub(super) len: usize,
    pub(super) date: Option<DateTime>,
    /// Line ends are not to be changed.
    pub(super) is_raw: bool,
    /// The last line end is not part of the message.
    pub(super) is_cut: bool,
}

/// The block on top of `header`, when there is one: nothing but fields of the block, and then [`EXPORT_FIELD`].
pub(super) fn export_block(header: &[u8]) -> Option<ExportBlock> {
    for (n, field) in HeaderBlock::new(header).fields().enumerate() {
        let is = |name: &str| field.name == name.as_bytes();
        if is(EXPORT_FIELD) {
            let value = std::str::from_utf8(field.value).ok()?;
            let (date, rest) = value.trim().split_once(';').unwrap_or((value.trim(), ""));
            let words: Vec<&str> = rest.split_ascii_whitespace().collect();
            return Some(ExportBlock {
                len: field.offset + field.full.len(),
                date: parse_date_time(date),
                is_raw: words.contains(&RAW),
                is_cut: words.contains(&CUT),
            });
        }
        if n >= EXPORT_BLOCK.len() || !EXPORT_BLOCK.iter().any(|name| is(name)) {
            return None;
        }
    }
    None
}

/// Reads what [`DateTime`]'s `Display` wrote (RFC 9051 §9 date-time).
fn parse_date_time(text: &str) -> Option<DateTime> {
    let mut words = text.split_ascii_whitespace();
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    let mut date = date.split('-');
    let day = date.next()?.parse().ok()?;
    let month = CivilDate::month_from_name(date.next()?)?;
    let date = CivilDate::new(date.next()?.parse().ok()?, month, day)?;
    let mut time = time.split(':').map(|number| number.parse::<u8>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let zone: i16 = zone.parse().ok()?;
    DateTime::from_civil(date, hour, minute, second, zone / 100 * 60 + zone % 100)
}

/// The flags that a header claims, and whether it says that the message is expunged already.
pub(super) fn flags(header: &[u8]) -> (FlagNames, bool) {
    let block = HeaderBlock::new(header);
    let value = |name: &str| block.first(name).unwrap_or_default();
    let mut names = FlagNames::default();
    let mut add = |flag: SystemFlag| {
        if !names.system.contains(&flag) {
            names.system.push(flag);
        }
    };
    // Status: R(ead), O(ld), D(eleted); X-Status: A(nswered), F(lagged), D(eleted), T (draft).
    for letter in value("Status") {
        match letter {
            b'R' => add(SystemFlag::Seen),
            b'D' => add(SystemFlag::Deleted),
            _ => {}
        }
    }
    for letter in value("X-Status") {
        match letter {
            b'A' => add(SystemFlag::Answered),
            b'F' => add(SystemFlag::Flagged),
            b'D' => add(SystemFlag::Deleted),
            b'T' => add(SystemFlag::Draft),
            _ => {}
        }
    }
    // Mozilla: 1 read, 2 replied, 4 marked, 8 expunged and waiting for compaction, 0x1000 forwarded.
    let mozilla = value("X-Mozilla-Status").trim_ascii();
    let mozilla = std::str::from_utf8(mozilla).ok().and_then(|hex| u16::from_str_radix(hex, 16).ok()).unwrap_or(0);
    for (bit, flag) in [(1, SystemFlag::Seen), (2, SystemFlag::Answered), (4, SystemFlag::Flagged)] {
        if mozilla & bit != 0 {
            add(flag);
        }
    }
    if mozilla & 0x1000 != 0 {
        names.keywords.extend(Keyword::new("$Forwarded"));
    }
    for name in ["X-Keywords", "X-Mozilla-Keys"] {
        for word in String::from_utf8_lossy(value(name)).split([' ', '\t', ',', '\r', '\n']) {
            // What is no keyword cannot be kept.
            if let Some(keyword) = Keyword::new(word).ok().filter(|keyword| !names.keywords.contains(keyword)) {
                names.keywords.push(keyword);
            }
        }
    }
    (names, mozilla & 8 != 0)
}

/// When a message came, from its first Received field, else its Date.
pub(super) fn date(header: &[u8]) -> Option<DateTime> {
    let block = HeaderBlock::new(header);
    // RFC 5321 §4.4: the date-time comes behind the last semicolon.
    let received = block.first("Received").and_then(|value| value.rsplit(|byte| *byte == b';').next());
    let date = received.and_then(mime::parse_date).or_else(|| block.first("Date").and_then(mime::parse_date))?;
    Some(DateTime { unix_seconds: date.unix_seconds(), offset_minutes: date.offset_minutes })
}

/// Whether this is the message that some programs keep in an mbox for themselves.
pub(super) fn is_internal_data(header: &[u8]) -> bool {
    let block = HeaderBlock::new(header);
    let subject = block.first("Subject").unwrap_or_default().trim_ascii();
    block.first("X-IMAP").is_some() && subject.starts_with(b"DON'T DELETE THIS MESSAGE")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_of_all_writers() {
        let (names, expunged) = flags(b"Status: RO\r\nX-Status: AF\r\nX-Keywords: a $b, (bad\r\n\r\n");
        assert_eq!(names.system, [SystemFlag::Seen, SystemFlag::Answered, SystemFlag::Flagged]);
        assert_eq!(names.keywords, [Keyword::new("a").unwrap(), Keyword::new("$b").unwrap()]);
        assert!(!expunged);
        let (names, expunged) = flags(b"X-Mozilla-Status: 1009\r\nX-Mozilla-Keys: $label1   \r\n\r\n");
        assert_eq!(names.system, [SystemFlag::Seen]);
        assert_eq!(names.keywords.len(), 2);
        assert!(expunged);
    }

    #[test]
    fn the_export_block_is_on_top_or_not_at_all() {
        let block =
            export_block(b"Status: R\nX-Keywords: a\nX-Mailyard:  1-Feb-2003 04:05:06 -0130; raw cut\nSubject: x\n\n");
        let block = block.unwrap();
        assert!(block.is_raw && block.is_cut);
        assert_eq!(block.date.unwrap().to_string(), " 1-Feb-2003 04:05:06 -0130");
        assert_eq!(block.len, 72);
        assert_eq!(export_block(b"Subject: x\nX-Mailyard: 1-Feb-2003 04:05:06 -0130\n\n"), None);
        assert_eq!(export_block(b"Status: R\nSubject: x\n\n"), None);
    }
}
