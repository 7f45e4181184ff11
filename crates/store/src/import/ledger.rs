//! What an import remembers, so that running it again imports nothing twice.
//!
//! The account keeps one small annotation for each pair of source and mailbox. It says how far the source has been read, and how many
//! messages that were. It is changed in the same transaction that adds the messages: whatever kills the import, the two agree.
//!
//! - An mbox: the offset behind the last message, and a digest of the octets before it.
//! - A Maildir: how many files of the list, and a digest of their names without flags.
//!
//! When the source still agrees with the digest, the import goes on behind that place, at no cost. When it does not (an mbox
//! was rewritten, files were removed) every message of the source is compared, by its octets, with what the mailbox holds and with
//! what was expunged and is still kept: each message there stands for one in the source. A source is known by its kind and
//! path, a mailbox by its identity; the same mail under another path is another source.

use std::collections::HashMap;

use model::{EmailId, MailboxId, Result};
use platform::File;
use sha2::{Digest, Sha256};

use super::source::{Kind, Source};
use crate::Account;

/// Octets before the place in an mbox that are compared.
const TAIL_BYTES: u64 = 64 << 10;

/// A place in a source, as the annotation has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Of an mbox: octets. Of a Maildir: files.
    pub(super) at: u64,
    /// Messages of the source before it that an import has brought; the skipped ones do not count.
    pub(super) messages: u64,
    pub(super) digest: Checksum,
}

/// The first half of a SHA-256.
pub(super) type Checksum = [u8; 16];

/// The digest of some octets.
pub(super) fn checksum(hash: Sha256) -> Checksum {
    let mut out = Checksum::default();
    for (slot, byte) in out.iter_mut().zip(hash.finalize()) {
        *slot = byte;
    }
    out
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Under which key the account keeps the place.
pub(super) fn key(source: &Source, mailbox: MailboxId) -> String {
    let kind = match source.kind {
        Kind::Mbox(_) => "mbox",
        Kind::Maildir(_) => "maildir",
        Kind::Listed(_) => "listed",
    };
    let mut hash = Sha256::new();
    hash.update(source.path.as_os_str().as_encoded_bytes());
    format!("import/{kind}/{mailbox}/{}", hex(&checksum(hash)))
}

impl Place {
    /// As the annotation's value: `2 PLACE MESSAGES DIGEST`; the number in front is the version. Version 1 had no count.
    pub(super) fn to_value(&self) -> Vec<u8> {
        format!("2 {} {} {}", self.at, self.messages, hex(&self.digest)).into_bytes()
    }

    /// `None` for a value that this version does not know: then all is compared.
    pub(super) fn from_value(value: &[u8]) -> Option<Place> {
        let mut words = std::str::from_utf8(value).ok()?.split(' ');
        if words.next() != Some("2") {
            return None;
        }
        let at = words.next()?.parse().ok()?;
        let messages = words.next()?.parse().ok()?;
        let digits = words.next()?;
        let mut digest = Checksum::default();
        for (n, slot) in digest.iter_mut().enumerate() {
            *slot = u8::from_str_radix(digits.get(n * 2..n * 2 + 2)?, 16).ok()?;
        }
        Some(Place { at, messages, digest })
    }

    /// The digest of the place `at` of an mbox.
    pub(super) fn digest_of_mbox(file: &dyn File, at: u64) -> Result<Checksum> {
        let from = at.saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; (at - from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        let mut hash = Sha256::new();
        hash.update(&bytes);
        Ok(checksum(hash))
    }

    /// Whether the mbox still has the same octets before this place.
    pub(super) fn agrees_with(&self, file: &dyn File) -> Result<bool> {
        Ok(self.at <= file.len()? && Place::digest_of_mbox(file, self.at)? == self.digest)
    }
}

/// The messages that a mailbox has already, by the digest of their octets.
pub(super) struct Known {
    counts: HashMap<Checksum, u32>,
}

impl Known {
    /// Reads every message of the mailbox, those that were expunged and are still kept included.
    pub(super) fn read(account: &Account, mailbox: MailboxId) -> Result<Known> {
        let state = account.inner.state();
        let mut counts = HashMap::new();
        let Some(mailbox) = state.mailbox(mailbox) else { return Ok(Known { counts }) };
        let mut reader = account.inner.log().reader();
        let live = mailbox.all_rows().map(|(_, row)| row.email_id);
        let expunged = mailbox.expunged_since(i64::MIN).map(|expunged| expunged.row.email_id);
        for id in live.chain(expunged) {
            // A message that cannot be read is no reason to take the source's for known.
            if let Ok(digest) = message_digest(&mut reader, id) {
                *counts.entry(digest).or_insert(0) += 1;
            }
        }
        Ok(Known { counts })
    }

    /// Whether there is such a message; it stands for one only.
    pub(super) fn take(&mut self, digest: &Checksum) -> bool {
        match self.counts.get_mut(digest) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

fn message_digest(reader: &mut index::Reader, id: EmailId) -> Result<Checksum> {
    let mut hash = Sha256::new();
    reader.range(id, 0..u64::MAX, &mut |piece| {
        hash.update(piece);
        Ok(())
    })?;
    Ok(checksum(hash))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_place_reads_what_it_writes() {
        let place = Place { at: 12, messages: 3, digest: [0xab; 16] };
        assert_eq!(Place::from_value(&place.to_value()), Some(place));
        // Of version 1: compared once more, then counted.
        assert_eq!(Place::from_value(format!("1 12 {}", "ab".repeat(16)).as_bytes()), None);
        for bad in [&b""[..], b"3 1 1 00", b"2 x", b"2 1 ab", b"2 1 1 ab", b"\xff"] {
            assert_eq!(Place::from_value(bad), None);
        }
    }
}
