//! A block of fields with the room that it has: values, padding behind them, filler lines.

use crate::format::mbox::meta::MetaName;

/// Octets of a line at most, line end included. RFC 5322 §2.1.1 allows 998 without it; other programs may add some.
pub(super) const LINE_BYTES_MAX: usize = 900;
/// Room behind `Status`: it can say everything without touching the line behind it.
const STATUS_BYTES: usize = 2;
/// The same for `X-Status`.
const X_STATUS_BYTES: usize = 4;
const FILLER: &[u8] = b"X-Mailyard-Filler: ";

/// A field and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: MetaName,
    /// Without white space around it; folded where it is long.
    pub(super) value: Vec<u8>,
}

/// How long a block or a header is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As long as it likes: with padding.
    Natural,
    /// So many octets.
    Exactly(usize),
}

impl Line {
    fn text(&self) -> &'static str {
        MetaName::ALL.iter().find(|(name, _)| *name == self.name).map_or("", |(_, text)| text)
    }

    /// Octets that it likes to have behind its value.
    fn padding(&self, padding: usize) -> usize {
        match self.name {
            MetaName::Status => STATUS_BYTES.saturating_sub(self.value.len()),
            MetaName::XStatus => X_STATUS_BYTES.saturating_sub(self.value.len()),
            MetaName::XKeywords | MetaName::ImapBase | MetaName::Imap => {
                let last = self.value.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len);
                padding.min(LINE_BYTES_MAX.saturating_sub(last + 40))
            }
            _ => 0,
        }
    }

    fn write(&self, padding: usize, eol: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.text().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(&self.value);
        out.resize(out.len() + padding, b' ');
        out.extend_from_slice(eol);
    }

    fn bytes(&self, eol: &[u8]) -> usize {
        self.text().len() + 2 + self.value.len() + eol.len()
    }
}

/// The block. `None`: it does not fit, or what is left over is too little for a line of filler and there is no field to pad.
pub(super) fn render(lines: &[Line], eol: &[u8], room: Room, padding: usize) -> Option<Vec<u8>> {
    let least: usize = lines.iter().map(|line| line.bytes(eol)).sum();
    let mut pads: Vec<usize> = lines.iter().map(|line| line.padding(padding)).collect();
    let mut filler = 0;
    match room {
        Room::Natural => {}
        Room::Exactly(len) => {
            let mut left = len.checked_sub(least)?;
            // The last UID's line is the last to get any: it changes seldom, and has its own room in the digits.
            let is_base = |line: &Line| matches!(line.name, MetaName::ImapBase | MetaName::Imap);
            for wants_base in [false, true] {
                for (line, pad) in lines.iter().zip(&mut pads).filter(|(line, _)| is_base(line) == wants_base) {
                    *pad = line.padding(padding).min(left);
                    left -= *pad;
                }
            }
            if left >= FILLER.len() + eol.len() {
                filler = left;
            } else if left > 0 {
                // Too little for a line: the last field has it, as even the largest padding leaves so much of a line.
                *pads.last_mut()? += left;
            }
        }
    }
    let mut out = Vec::with_capacity(least + pads.iter().sum::<usize>() + filler);
    for (line, pad) in lines.iter().zip(pads) {
        line.write(pad, eol, &mut out);
    }
    write_filler(filler, eol, &mut out);
    Some(out)
}

/// Lines of filler, so many octets together: none, or enough for a line.
fn write_filler(mut left: usize, eol: &[u8], out: &mut Vec<u8>) {
    let least = FILLER.len() + eol.len();
    while left > 0 {
        let len = match left {
            ..=LINE_BYTES_MAX => left,
            // What is left is a line again.
            _ => LINE_BYTES_MAX.min(left - least),
        };
        out.extend_from_slice(FILLER);
        out.resize(out.len() + len.saturating_sub(least), b' ');
        out.extend_from_slice(eol);
        left -= len;
    }
}

/// Words behind `start`, with a line end and a tab instead of a space where a line would be too long (RFC 5322 §2.2.3).
pub(super) fn folded<'w>(mut start: Vec<u8>, words: impl Iterator<Item = &'w [u8]>, eol: &[u8]) -> Vec<u8> {
    // The name of the field is on the first line.
    let mut line = start.len() + 20;
    for word in words {
        if line + word.len() > LINE_BYTES_MAX / 2 {
            start.extend_from_slice(eol);
            start.push(b'\t');
            line = 1;
        } else if !start.is_empty() {
            start.push(b' ');
        }
        start.extend_from_slice(word);
        line += word.len() + 1;
    }
    start
}
