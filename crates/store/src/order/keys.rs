//! What SORT and THREAD need of a message, as it is kept beside it (see [`crate::derived`]): made from the header alone, so that
//! neither opens a message.
//!
//! Strings are kept as their collation keys. The layouts are in `docs/format-index.md`.

use std::borrow::Cow;

use mime::{Address, HeaderBlock};
use model::{EmailId, Error, ErrorKind, Result, ThreadId};
use sha2::{Digest, Sha256};

use super::message_id::{self, Key};
use super::{collation, subject};

/// Longest collation key that is kept whole, octets.
const SORT_KEY_BYTES_MAX: usize = 4096;

/// Appends the collation key of `text`. Of a longer one the beginning is kept and then half of the SHA-256 of all of it: equal texts stay
/// equal and others different, and only those that differ behind 4096 octets stand in another order than theirs.
fn append_key(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    collation::append_key(text, out);
    if out.len() - start > SORT_KEY_BYTES_MAX {
        let digest = Sha256::digest(out.get(start..).unwrap_or_default());
        out.truncate(start + SORT_KEY_BYTES_MAX);
        out.extend(digest.iter().take(16));
    }
}

/// The sent date of a header in UTC (RFC 5256 §2.2): i64 little-endian, Unix seconds; empty when there is none that can be read.
pub(crate) fn sent_time_column(header: &[u8]) -> Vec<u8> {
    let date = HeaderBlock::new(header).first("Date").and_then(mime::parse_date);
    date.map_or_else(Vec::new, |date| date.unix_seconds().to_le_bytes().to_vec())
}

/// The base subject: an octet that is 1 for a reply or forward and 0 else, then the key of the text.
pub(crate) fn subject_column(header: &[u8]) -> Vec<u8> {
    let value = HeaderBlock::new(header).first("Subject").unwrap_or_default();
    let base = subject::base_subject(value);
    let mut column = Vec::with_capacity(1 + base.text.len());
    column.push(u8::from(base.is_reply_or_forward));
    append_key(&base.text, &mut column);
    column
}

/// The keys of From, To, Cc, and what is displayed of From and To, in this order, each behind its length (u32 little-endian).
pub(crate) fn addresses_column(header: &[u8]) -> Vec<u8> {
    let header = HeaderBlock::new(header);
    let [from, to, cc] = ["From", "To", "Cc"].map(|name| first_address(header, name));
    let mut column = Vec::new();
    let texts = [mailbox(&from), mailbox(&to), mailbox(&cc), display(&from), display(&to)];
    for text in texts {
        let mut key = Vec::with_capacity(text.len());
        append_key(&text, &mut key);
        column.extend_from_slice(&u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
        column.extend_from_slice(&key);
    }
    column
}

/// The first address of all fields of that name, which are taken together as ENVELOPE does.
fn first_address(header: HeaderBlock<'_>, name: &str) -> Option<Address> {
    let mut fields = header.fields().filter(|field| field.name.eq_ignore_ascii_case(name.as_bytes()));
    fields.find_map(|field| mime::parse_addresses(field.value, 1).into_iter().next())
}

/// RFC 5256 §3: the `addr-mailbox` of the first address; a group has its name there (RFC 9051 §7.5.2). No encoded word stands in an
/// address (RFC 2047 §5), so what looks like one is not decoded.
fn mailbox(address: &Option<Address>) -> String {
    let mailbox = address.as_ref().and_then(|address| address.mailbox.as_deref()).unwrap_or_default();
    let is_group = address.as_ref().is_some_and(|address| address.host.is_none());
    let text = if is_group { mime::decode_unstructured(mailbox) } else { octets(mailbox) };
    text.into_owned()
}

/// Octets without encoded words: UTF-8, or what SEARCH takes other octets for.
fn octets(octets: &[u8]) -> Cow<'_, str> {
    mime::decode_charset(b"us-ascii", octets)
}

/// RFC 5957 §3: the display name, decoded; without one the name of a group, or `addr-mailbox "@" addr-host`.
fn display(address: &Option<Address>) -> String {
    let Some(address) = address else { return String::new() };
    match (&address.name, &address.host) {
        (Some(name), _) => mime::decode_unstructured(name).into_owned(),
        (None, None) => mailbox(&Some(address.clone())),
        (None, Some(host)) if host.is_empty() => mailbox(&Some(address.clone())),
        (None, Some(host)) => format!("{}@{}", mailbox(&Some(address.clone())), octets(host)),
    }
}

/// The message's id and then its references, oldest first, 16 octets each; an id of zeros stands for none that is valid.
pub(crate) fn references_column(header: &[u8]) -> Vec<u8> {
    let header = HeaderBlock::new(header);
    let own = header.first("Message-ID").and_then(message_id::first_id).unwrap_or(0);
    // RFC 5256 §3: the ids of References, or the first of In-Reply-To when there are none.
    let mut references = header.first("References").map(message_id::all_ids).unwrap_or_default();
    if references.is_empty() {
        references.extend(header.first("In-Reply-To").and_then(message_id::first_id));
    }
    let ids = std::iter::once(own).chain(references);
    ids.flat_map(Key::to_le_bytes).collect()
}

/// The thread that a message names itself, from [`references_column`] (RFC 8474 §5.2): that of its oldest reference, or its own when it
/// has none. A message without any id is a thread alone.
///
/// It depends on the message and on nothing else, so that it never changes, is the same in every mailbox and after every rebuild, and
/// costs no bookkeeping. The price: a reply that names its parent only, itself a reply, begins a thread of its own.
pub(crate) fn thread_id(column: &[u8], id: EmailId) -> Result<ThreadId> {
    let (own, mut references) = references(column)?;
    let oldest = references.next().or(own).unwrap_or_else(|| message_id::unique(id));
    Ok(ThreadId(oldest as u64))
}

/// Reads [`sent_time_column`].
pub(super) fn sent_time(column: &[u8]) -> Option<i64> {
    column.try_into().ok().map(i64::from_le_bytes)
}

/// Reads [`subject_column`]: whether it is a reply or forward, and the key.
pub(super) fn subject(column: &[u8]) -> Result<(bool, &[u8])> {
    let (first, key) = column.split_first().ok_or_else(|| damaged("subject"))?;
    Ok((*first != 0, key))
}

/// A key of [`addresses_column`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressKey {
    From,
    To,
    Cc,
    DisplayFrom,
    DisplayTo,
}

/// Reads one key of [`addresses_column`].
pub(super) fn address(column: &[u8], which: AddressKey) -> Result<&[u8]> {
    let mut rest = column;
    for n in 0..=which as usize {
        let (length, after) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("addresses"))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (key, after) = after.split_at_checked(length).ok_or_else(|| damaged("addresses"))?;
        if n == which as usize {
            return Ok(key);
        }
        rest = after;
    }
    Err(damaged("addresses"))
}

/// Reads [`references_column`]: the message's id, and its references.
pub(super) fn references(column: &[u8]) -> Result<(Option<Key>, impl Iterator<Item = Key>)> {
    let (chunks, rest) = column.as_chunks::<16>();
    let Some((own, references)) = chunks.split_first().filter(|_| rest.is_empty()) else {
        return Err(damaged("references"));
    };
    let own = Some(Key::from_le_bytes(*own)).filter(|key| *key != 0);
    Ok((own, references.iter().map(|chunk| Key::from_le_bytes(*chunk))))
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("derived {what}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn columns_are_read_as_they_were_written() {
        let header = b"Date: 31 Dec 2000 16:01:33 -0800\r\nSubject: Re: caf=?utf-8?q?=C3=A9?=\r\nFrom: \"Ann B\" <ann@x>\r\n\
            To: friends: bob@y;\r\nCc: carl@z\r\nCc: dora@z\r\nMessage-ID: <1@x>\r\nReferences: <2@x> <3@x>\r\nIn-Reply-To: <4@x>\r\n\r\n";
        // RFC 5256 §2.2: "equivalent to the UTC date and time of 1 Jan 2001 00:01:33 +0000".
        assert_eq!(sent_time(&sent_time_column(header)), Some(978_307_293));
        let column = subject_column(header);
        assert_eq!(subject(&column).unwrap(), (true, "CAFE\u{301}".as_bytes()));
        let column = addresses_column(header);
        let text = |which| String::from_utf8(address(&column, which).unwrap().to_vec()).unwrap();
        assert_eq!(text(AddressKey::From), "ANN");
        assert_eq!(text(AddressKey::To), "FRIENDS");
        assert_eq!(text(AddressKey::Cc), "CARL");
        assert_eq!(text(AddressKey::DisplayFrom), "ANN B");
        assert_eq!(text(AddressKey::DisplayTo), "FRIENDS");
        let column = references_column(header);
        let (own, rest) = references(&column).unwrap();
        let id = |text: &str| message_id::first_id(text.as_bytes());
        assert_eq!(own, id("<1@x>"));
        assert!(rest.map(Some).eq([id("<2@x>"), id("<3@x>")]));
    }

    #[test]
    fn what_is_invalid_in_a_date_is_left_out() {
        // RFC 5256 §2.2: without a valid zone it is UTC, without a valid time midnight, without a date nothing.
        let time = |date: &str| sent_time(&sent_time_column(format!("Date: {date}\r\n\r\n").as_bytes()));
        let day = 978_307_200;
        assert_eq!(time("Mon, 1 Jan 2001 10:00:00 +0100"), Some(day + 9 * 3600));
        assert_eq!(time("1 Jan 2001 10:00:00 EST"), Some(day + 15 * 3600));
        assert_eq!(time("1 Jan 2001 10:00:00 +9999"), Some(day + 10 * 3600));
        assert_eq!(time("1 Jan 2001 10:00:00 nowhere"), Some(day + 10 * 3600));
        assert_eq!(time("1 Jan 2001 10:00:00"), Some(day + 10 * 3600));
        assert_eq!(time("1 Jan 2001 25:61:00 +0000"), Some(day));
        assert_eq!(time("1 Jan 2001"), Some(day));
        assert_eq!(time("32 Jan 2001 10:00:00 +0000"), None);
        assert_eq!(time("yesterday"), None);
    }

    #[test]
    fn a_thread_is_named_by_its_oldest_message() {
        let thread = |header: &str, id| thread_id(&references_column(header.as_bytes()), EmailId(id)).unwrap();
        let root = thread("Message-ID: <1@x>\r\n\r\n", 1);
        assert_eq!(thread("Message-ID: <2@x>\r\nIn-Reply-To: <1@x>\r\n\r\n", 2), root);
        assert_eq!(thread("Message-ID: <3@x>\r\nReferences: <1@x> <2@x>\r\n\r\n", 3), root);
        assert_ne!(thread("Message-ID: <4@x>\r\n\r\n", 4), root);
        assert_ne!(thread("\r\n", 5), thread("\r\n", 6));
        assert_eq!(thread("\r\n", 5), thread("\r\n", 5));
    }

    #[test]
    fn headers_without_them_have_empty_keys() {
        let header = b"In-Reply-To: your mail <a@b> <c@d>\r\nReferences: none\r\nFrom: carl@z\r\n\r\n";
        assert_eq!(sent_time(&sent_time_column(header)), None);
        assert_eq!(subject(&subject_column(header)).unwrap(), (false, &b""[..]));
        let column = addresses_column(header);
        assert_eq!(address(&column, AddressKey::DisplayFrom).unwrap(), b"CARL@Z");
        assert_eq!(address(&column, AddressKey::DisplayTo).unwrap(), b"");
        let column = addresses_column(b"From: =?utf-8?q?x?=@y\r\nTo: <>\r\n\r\n");
        assert_eq!(address(&column, AddressKey::From).unwrap(), b"=?UTF-8?Q?X?=");
        assert_eq!(address(&column, AddressKey::DisplayFrom).unwrap(), b"=?UTF-8?Q?X?=@Y");
        assert_eq!(address(&column, AddressKey::DisplayTo).unwrap(), b"");
        let column = references_column(header);
        let (own, rest) = references(&column).unwrap();
        assert_eq!(own, None);
        assert!(rest.map(Some).eq([message_id::first_id(b"<a@b>")]));
    }

    #[test]
    fn long_keys_are_cut_and_stay_different() {
        let key =
            |end: &str| subject_column(format!("Subject: {}{end}\r\n\r\n", "x".repeat(SORT_KEY_BYTES_MAX)).as_bytes());
        assert_eq!(key("").len(), 1 + SORT_KEY_BYTES_MAX);
        assert_eq!(key("a").len(), 1 + SORT_KEY_BYTES_MAX + 16);
        assert_eq!(key("a"), key("A"));
        assert_ne!(key("a"), key("b"));
        assert!(key("") < key("a"));
    }

    proptest! {
        #[test]
        fn any_header_has_its_columns(
            names in prop::collection::vec(prop::sample::select(vec!["Subject", "From", "To", "Date", "References", "Message-ID", "In-Reply-To"]), 0..6),
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 6),
        ) {
            let mut header = Vec::new();
            for (name, value) in names.iter().zip(&values) {
                header.extend_from_slice(name.as_bytes());
                header.extend_from_slice(b": ");
                header.extend_from_slice(value);
                header.extend_from_slice(b"\r\n");
            }
            header.extend_from_slice(b"\r\n");
            prop_assert!([0, 8].contains(&sent_time_column(&header).len()));
            prop_assert!(subject(&subject_column(&header)).is_ok());
            prop_assert!(address(&addresses_column(&header), AddressKey::DisplayTo).is_ok());
            prop_assert!(thread_id(&references_column(&header), EmailId(1)).is_ok());
        }
    }

    #[test]
    fn what_is_no_column_is_damage() {
        assert!(subject(b"").is_err());
        assert!(address(&[9, 0, 0, 0, 1], AddressKey::From).is_err());
        assert!(address(b"", AddressKey::To).is_err());
        assert!(references(b"").is_err());
        assert!(references(&[0; 17]).is_err());
    }
}
