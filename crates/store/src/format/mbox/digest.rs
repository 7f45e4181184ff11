//! What says which message a message is, wherever it stands and whatever programs note in it; and how large it is when IMAP serves it.
//!
//! The digest is XXH3 (64 bits) over a message's canonical octets: those that IMAP serves (fields of [`MetaName`] left out, the header ended by an empty
//! line, unquoted as the message's dialect wants it) with a LF for each CRLF, and a LF at the end if there is none. A message of the log and the same message in a
//! file have the same: [`DigestOfServed`] and `WholeMeasure`.
//!
//! There are two ways to the same result. `Measure` takes octets in any pieces. `WholeMeasure` has the message whole, and for one with LF
//! line ends and nothing quoted, which is nearly every message, it hashes the file's own octets and copies nothing.
//!
//! Invariant: both give the same for the same octets, however these were cut.

use std::hash::Hasher;
use std::sync::Arc;

use index::Log;
use model::{EmailId, ErrorKind, Result};
use twox_hash::XxHash3_64;

use super::fields::{Filter, Part};
use super::meta::{LineStart, MetaField, MetaName, meta_field_at, meta_fields};
use super::place::Meta;
use super::scan::lines::each_line_start;
use super::values;
use crate::format::served::{Form, Normaliser};

/// Octets of the fields of one message that are looked at for what they say; those behind are hidden but not read.
pub const FIELD_BYTES_MAX: usize = 64 << 10;

/// What a message's octets come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// See the module.
    pub digest: u64,
    /// Octets as served, every LF counted as CRLF.
    pub octets: u64,
    /// Those of them that are the header's, the empty line included.
    pub header_octets: u64,
    /// What its fields say.
    pub meta: Meta,
}

/// The digest of a message as it is served, of any pieces.
#[derive(Debug)]
pub struct DigestOfServed(Measure);

impl DigestOfServed {
    /// Of a message that begins.
    pub fn new() -> Self {
        DigestOfServed(Measure::new(false))
    }

    /// Takes the next octets.
    pub fn push(&mut self, octets: &[u8]) {
        self.0.push(octets);
    }

    /// The message ends.
    pub fn finish(self) -> u64 {
        self.0.finish(false).digest
    }

    /// Of a message whose octets are in the log; `None`: they are damaged, or were expunged meanwhile, so that whatever a file has is another message.
    pub(crate) fn in_log(log: &Arc<Log>, id: EmailId) -> Result<Option<u64>> {
        let mut digest = DigestOfServed::new();
        let read = log.reader().range(id, 0..u64::MAX, &mut |piece| {
            digest.push(piece);
            Ok(())
        });
        match read {
            Ok(()) => Ok(Some(digest.finish())),
            Err(error) if matches!(error.kind(), ErrorKind::Expunged | ErrorKind::Corrupt) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Default for DigestOfServed {
    fn default() -> Self {
        Self::new()
    }
}

/// Measures a message that comes in pieces, without its `From ` line.
#[derive(Debug)]
pub(super) struct Measure {
    filter: Filter,
    /// The fields that the filter dropped, one after the other.
    fields: Vec<u8>,
    normaliser: Normaliser,
    /// What the normaliser gave last.
    unquoted: Vec<u8>,
    canonical: Canonical,
    header_octets: Option<u64>,
}

impl Measure {
    /// `unquote`: see [`Form`].
    pub(super) fn new(unquote: bool) -> Self {
        Measure {
            filter: Filter::new(),
            fields: Vec::new(),
            normaliser: Normaliser::new(Form { convert: false, unquote }),
            unquoted: Vec::new(),
            canonical: Canonical::new(),
            header_octets: None,
        }
    }

    pub(super) fn push(&mut self, octets: &[u8]) {
        let Measure { filter, fields, normaliser, unquoted, canonical, header_octets } = self;
        unquoted.clear();
        let rest = filter.push(octets, &mut |part| match part {
            Part::Kept(octets) => normaliser.push(octets, unquoted),
            Part::Dropped(MetaName::Filler, _) => {}
            Part::Dropped(_, octets) => {
                let room = FIELD_BYTES_MAX - fields.len();
                fields.extend_from_slice(octets.get(..room).unwrap_or(octets));
            }
        });
        if header_octets.is_none() && filter.is_in_body() {
            // It ended with a LF, so that the normaliser holds nothing back.
            canonical.push(unquoted);
            unquoted.clear();
            *header_octets = Some(canonical.octets);
        }
        normaliser.push(rest, unquoted);
        canonical.push(unquoted);
    }

    /// The message ends. `is_first`: see [`values::meta`].
    pub(super) fn finish(mut self, is_first: bool) -> Measured {
        self.unquoted.clear();
        let (normaliser, unquoted) = (&mut self.normaliser, &mut self.unquoted);
        self.filter.end_header(&mut |part| {
            if let Part::Kept(octets) = part {
                normaliser.push(octets, unquoted);
            }
        });
        self.normaliser.finish(&mut self.unquoted);
        self.canonical.push(&self.unquoted);
        let octets = self.canonical.octets + u64::from(self.canonical.has_cr);
        let fields: Vec<MetaField> = meta_fields(&self.fields).collect();
        Measured {
            digest: self.canonical.finish(),
            octets,
            header_octets: self.header_octets.unwrap_or(octets),
            meta: values::meta(&self.fields, &fields, is_first),
        }
    }
}

/// Counts and hashes octets that are unquoted.
#[derive(Debug)]
struct Canonical {
    hash: Hash,
    /// Octets as served, but for a CR that waits.
    octets: u64,
    /// The last octet was a CR, which is counted and hashed when it is known whether a LF follows.
    has_cr: bool,
    ends_line: bool,
}

impl Canonical {
    fn new() -> Self {
        Canonical { hash: Hash::default(), octets: 0, has_cr: false, ends_line: false }
    }

    fn push(&mut self, mut octets: &[u8]) {
        let Some(last) = octets.last() else { return };
        self.ends_line = *last == b'\n';
        while !octets.is_empty() {
            if std::mem::take(&mut self.has_cr) {
                self.octets += 1;
                if let Some(rest) = octets.strip_prefix(b"\n") {
                    self.hash.update(b"\n");
                    self.octets += 1;
                    octets = rest;
                    continue;
                }
                self.hash.update(b"\r");
            }
            let cr = memchr::memchr(b'\r', octets);
            let (piece, rest) = octets.split_at(cr.unwrap_or(octets.len()));
            self.hash.update(piece);
            self.octets += piece.len() as u64 + line_ends(piece);
            self.has_cr = cr.is_some();
            octets = rest.get(1..).unwrap_or_default();
        }
    }

    fn finish(mut self) -> u64 {
        // A CR at the end and the LF that is added are a line end.
        if !self.ends_line {
            self.hash.update(b"\n");
        }
        self.hash.0.finish()
    }
}

/// XXH3, which does not say what it has seen.
#[derive(Clone, Default)]
struct Hash(XxHash3_64);

impl Hash {
    fn update(&mut self, octets: &[u8]) {
        self.0.write(octets);
    }
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Hash").finish_non_exhaustive()
    }
}

fn line_ends(octets: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', octets).count() as u64
}

/// Measures messages that are there as a whole.
#[derive(Debug, Default)]
pub(super) struct WholeMeasure {
    /// The message with LF line ends.
    with_lf: Vec<u8>,
}

impl WholeMeasure {
    /// Measures `content`, from behind its `From ` line, of which `header_len` octets are its header. `has_cr` is false only if no CR is in it.
    /// `is_first`: see [`values::meta`].
    pub(super) fn measure(
        &mut self,
        content: &[u8],
        header_len: usize,
        form: Form,
        has_cr: bool,
        is_first: bool,
    ) -> Measured {
        let (header, body) = content.split_at_checked(header_len).unwrap_or((content, &[]));
        let plain = if has_cr && memchr::memchr(b'\r', content).is_some() {
            self.with_lf.clear();
            push_with_lf(header, &mut self.with_lf);
            let header_len = self.with_lf.len();
            push_with_lf(body, &mut self.with_lf);
            let (header, body) = self.with_lf.split_at(header_len);
            // A CR at the end would get a LF.
            let is_fine = content.last() != Some(&b'\r');
            is_fine.then(|| measure_plain(&self.with_lf, header, body, form, is_first)).flatten()
        } else {
            measure_plain(content, header, body, form, is_first)
        };
        plain.unwrap_or_else(|| {
            let mut measure = Measure::new(form.unquote);
            measure.push(content);
            measure.finish(is_first)
        })
    }
}

/// Appends `octets` with a LF for each CRLF.
fn push_with_lf(octets: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    for cr in memchr::memchr_iter(b'\r', octets) {
        if octets.get(cr + 1) == Some(&b'\n') {
            out.extend_from_slice(octets.get(at..cr).unwrap_or_default());
            at = cr + 1;
        }
    }
    out.extend_from_slice(octets.get(at..).unwrap_or_default());
}

/// Measures a message whose line ends are LFs, by its canonical octets where they stand: every LF is served as CRLF. `None` if that is not
/// enough. `content` is `header` and `body`.
fn measure_plain(content: &[u8], header: &[u8], body: &[u8], form: Form, is_first: bool) -> Option<Measured> {
    // One that does not end gets an end.
    if !header.ends_with(b"\n\n") && header != b"\n" {
        return None;
    }
    if form.unquote && QUOTED.find(body).is_some() {
        return None;
    }
    let mut fields: Vec<MetaField> = Vec::new();
    let mut is_quoted = false;
    let mut count = 0_u64;
    let mut look_at = |at: usize| match header.get(at) {
        Some(b'>') => is_quoted = true,
        Some(byte)
            if MetaName::may_begin(*byte)
                && matches!(MetaName::at(header.get(at..).unwrap_or_default()), LineStart::Meta(_)) =>
        {
            fields.extend(meta_field_at(header, at));
        }
        _ => {}
    };
    look_at(0);
    each_line_start(header, 0, |at| {
        count += 1;
        look_at(at);
        true
    });
    if form.unquote && is_quoted {
        return None;
    }
    let mut served = header.len() as u64 + count;
    let mut field_bytes = 0;
    for field in &fields {
        let line = header.get(field.line.clone())?;
        served -= line.len() as u64 + line_ends(line);
        field_bytes += if field.name == MetaName::Filler { 0 } else { line.len() };
    }
    // The CRs that were taken out count as well: too many for them to matter is left to who counts them.
    if field_bytes > FIELD_BYTES_MAX / 2 {
        return None;
    }
    Some(Measured {
        digest: digest_without(content, &fields),
        octets: served + body.len() as u64 + line_ends(body),
        header_octets: served,
        meta: if fields.is_empty() { Meta::default() } else { values::meta(header, &fields, is_first) },
    })
}

/// What a line of the body that may be quoted has.
static QUOTED: std::sync::LazyLock<memchr::memmem::Finder<'static>> =
    std::sync::LazyLock::new(|| memchr::memmem::Finder::new(b">From "));

fn digest_without(content: &[u8], fields: &[MetaField]) -> u64 {
    if fields.is_empty() && content.last() == Some(&b'\n') {
        return XxHash3_64::oneshot(content);
    }
    let mut hash = Hash::default();
    let mut at = 0;
    let mut last = None;
    let mut keep = |kept: &[u8]| {
        hash.update(kept);
        last = kept.last().copied().or(last);
    };
    for field in fields {
        keep(content.get(at..field.line.start).unwrap_or_default());
        at = field.line.end;
    }
    keep(content.get(at..).unwrap_or_default());
    if last != Some(b'\n') {
        hash.update(b"\n");
    }
    hash.0.finish()
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
