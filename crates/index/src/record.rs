//! The events of the log: what a transaction did, as results, so that applying one twice changes nothing.
//!
//! Wire: a kind byte, the body's length as a varint, the body. The byte tables are in `docs/format-log.md`. An unknown
//! kind means that a newer Mailyard wrote the log: it is refused, never skipped.

use model::{DateTime, EmailId, Flags, Keyword, MailboxId, MailboxName, Uid, UidSet};

use crate::ForeignMessage;
use crate::codec::{Input, put_bytes, put_signed, put_varint, put_varint_wide};

/// An entry as a record has it; its modseq is that of its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// Its number in the mailbox.
    pub uid: Uid,
    /// Its flags; what the keyword bits mean is the mailbox's keyword table.
    pub flags: Flags,
    /// INTERNALDATE.
    pub internal_date: DateTime,
    /// SAVEDATE, seconds since 1970 UTC.
    pub save_date: i64,
    /// Octets of the message.
    pub size: u32,
    /// The message.
    pub email_id: EmailId,
}

/// One thing that a transaction did, as its result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the byte tables in docs/format-log.md")]
pub enum Event {
    /// A mailbox is new.
    MailboxCreated { id: MailboxId, name: MailboxName, uidvalidity: u32, special_use: u16 },
    /// A mailbox has another name.
    MailboxRenamed { id: MailboxId, name: MailboxName },
    /// A mailbox is gone, with what it held; it can be brought back for a while.
    MailboxDeleted { id: MailboxId },
    /// A deleted mailbox is back.
    MailboxUndeleted { id: MailboxId, name: MailboxName },
    /// What a mailbox is for: bit n is the special use with code n.
    SpecialUse { id: MailboxId, bits: u16 },
    /// A name is subscribed.
    Subscribed { name: MailboxName },
    /// A name is no longer subscribed.
    Unsubscribed { name: MailboxName },
    /// A mailbox has one more keyword, with the next number.
    KeywordAdded { mailbox: MailboxId, keyword: Keyword },
    /// A message is new. The bytes follow the events of the frame, in the order of these records. Only in tails.
    Message { email_id: EmailId, len: u32, header_len: u32, crc: u32 },
    /// A mailbox has new entries.
    Entries { mailbox: MailboxId, rows: Vec<NewRow> },
    /// Entries have these flags now.
    FlagsSet { mailbox: MailboxId, flags: Flags, uids: UidSet },
    /// Entries are gone; they can be brought back for a while.
    Expunged { mailbox: MailboxId, uids: UidSet },
    /// Entries that were gone have come back as others: they cannot be brought back again.
    Restored { mailbox: MailboxId, uids: UidSet },
    /// Entries below this UID are \\Recent to nobody.
    RecentFloor { mailbox: MailboxId, uid: u32 },
    /// A value is kept with a mailbox; without one, it is removed.
    MailboxAnnotated { mailbox: MailboxId, key: String, value: Option<Vec<u8>> },
    /// A value is kept with the account; without one, it is removed.
    AccountAnnotated { key: String, value: Option<Vec<u8>> },
    /// What compaction must not lose of a mailbox when it drops records; and what a restore leaves out. A later one adds to it.
    MailboxCounters { mailbox: MailboxId, uidnext: u64, highest_modseq: u64 },
    /// Messages whose bytes lie elsewhere; ids rise strictly.
    ForeignMessages { messages: Vec<(EmailId, ForeignMessage)> },
    /// Expunged, and not to be brought back: the entries of foreign messages.
    Discarded { mailbox: MailboxId, uids: UidSet },
    /// Foreign messages whose bytes are in the log from here on; ids rise strictly. In a tail the message record of each is in the
    /// same frame.
    BytesHere { ids: Vec<EmailId> },
    /// Messages whose bytes lie elsewhere from here on, ids rise strictly; and the entries that have them.
    BytesElsewhere { messages: Vec<(EmailId, ForeignMessage)>, entries: Vec<(MailboxId, UidSet)> },
}

const MESSAGE_KIND: u8 = 9;
const BYTES_HERE_KIND: u8 = 20;

/// The kinds on disk, with their names in `docs/format-log.md`. A number never changes its meaning.
pub(crate) const KINDS: [(u8, &str); 21] = [
    (1, "mailbox created"),
    (2, "mailbox renamed"),
    (3, "mailbox deleted"),
    (4, "mailbox undeleted"),
    (5, "special use"),
    (6, "subscribed"),
    (7, "unsubscribed"),
    (8, "keyword added"),
    (MESSAGE_KIND, "message"),
    (10, "entries"),
    (11, "flags set"),
    (12, "expunged"),
    (13, "restored"),
    (14, "recent floor"),
    (15, "mailbox annotated"),
    (16, "account annotated"),
    (17, "mailbox counters"),
    (18, "foreign messages"),
    (19, "discarded"),
    (BYTES_HERE_KIND, "bytes here"),
    (21, "bytes elsewhere"),
];

/// Why bytes are no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadEvent {
    /// A newer version wrote it.
    UnknownKind(u8),
    /// The bytes do not follow the format.
    Malformed,
}

fn put_uids(out: &mut Vec<u8>, uids: &UidSet) {
    put_varint(out, uids.ranges().len() as u64);
    let mut from = 0;
    for &(first, last) in uids.ranges() {
        put_varint(out, u64::from(first - from));
        put_varint(out, u64::from(last - first));
        from = last;
    }
}

fn uids(input: &mut Input<'_>) -> Option<UidSet> {
    let mut set = UidSet::new();
    let mut from = 0u32;
    for _ in 0..input.varint()? {
        let first = from.checked_add(input.varint32()?)?;
        from = first.checked_add(input.varint32()?)?;
        if first == 0 {
            return None;
        }
        set.insert_range(first, from);
    }
    Some(set)
}

fn put_rows(out: &mut Vec<u8>, time: i64, rows: &[NewRow]) {
    put_varint(out, rows.len() as u64);
    let (mut uid, mut email_id) = (0u32, 0u64);
    for row in rows {
        put_signed(out, i64::from(row.uid.get()) - i64::from(uid));
        put_signed(out, row.email_id.0.wrapping_sub(email_id) as i64);
        put_varint_wide(out, row.flags.0);
        put_signed(out, row.internal_date.unix_seconds.wrapping_sub(time));
        put_signed(out, i64::from(row.internal_date.offset_minutes));
        put_signed(out, row.save_date.wrapping_sub(time));
        put_varint(out, u64::from(row.size));
        (uid, email_id) = (row.uid.get(), row.email_id.0);
    }
}

fn rows(input: &mut Input<'_>, time: i64) -> Option<Vec<NewRow>> {
    let count = usize::try_from(input.varint()?).ok()?;
    // A row has 7 bytes at least: a count that cannot be true asks for no memory.
    let mut rows = Vec::with_capacity(count.min(input.0.len() / 7));
    let (mut uid, mut email_id) = (0i64, 0u64);
    for _ in 0..count {
        uid = uid.checked_add(input.signed()?)?;
        email_id = email_id.wrapping_add(input.signed()? as u64);
        let flags = Flags(input.varint_wide()?);
        let unix_seconds = time.wrapping_add(input.signed()?);
        let offset_minutes = i16::try_from(input.signed()?).ok().filter(|zone| (-1439..=1439).contains(zone))?;
        rows.push(NewRow {
            uid: Uid::new(u32::try_from(uid).ok()?)?,
            flags,
            internal_date: DateTime { unix_seconds, offset_minutes },
            save_date: time.wrapping_add(input.signed()?),
            size: input.varint32()?,
            email_id: EmailId(email_id),
        });
    }
    Some(rows)
}

/// Column by column: sealed segments compress what is alike when it stands together.
fn put_foreign(out: &mut Vec<u8>, messages: &[(EmailId, ForeignMessage)]) {
    put_varint(out, messages.len() as u64);
    let mut before = 0;
    for (id, _) in messages {
        put_varint(out, id.0.wrapping_sub(before));
        before = id.0;
    }
    for (_, message) in messages {
        put_varint(out, u64::from(message.octets));
    }
    for (_, message) in messages {
        put_varint(out, u64::from(message.header_octets));
    }
    for (_, message) in messages {
        out.extend_from_slice(&message.digest.to_le_bytes());
    }
}

fn foreign(input: &mut Input<'_>) -> Option<Vec<(EmailId, ForeignMessage)>> {
    let count = usize::try_from(input.varint()?).ok()?;
    // A message has 11 bytes at least: a count that cannot be true asks for no memory.
    if count > input.0.len() / 11 {
        return None;
    }
    let mut messages = Vec::with_capacity(count);
    let mut id = 0u64;
    for n in 0..count {
        let distance = input.varint()?;
        id = id.checked_add(distance).filter(|_| n == 0 || distance > 0)?;
        messages.push((EmailId(id), ForeignMessage { octets: 0, header_octets: 0, digest: 0 }));
    }
    for (_, message) in &mut messages {
        message.octets = input.varint32()?;
    }
    for (_, message) in &mut messages {
        message.header_octets = input.varint32().filter(|header| *header <= message.octets)?;
    }
    for (_, message) in &mut messages {
        message.digest = input.u64()?;
    }
    Some(messages)
}

fn put_ids(out: &mut Vec<u8>, ids: &[EmailId]) {
    put_varint(out, ids.len() as u64);
    let mut before = 0;
    for id in ids {
        put_varint(out, id.0.wrapping_sub(before));
        before = id.0;
    }
}

fn ids(input: &mut Input<'_>) -> Option<Vec<EmailId>> {
    let count = usize::try_from(input.varint()?).ok()?;
    // An id has a byte at least: a count that cannot be true asks for no memory.
    let mut ids = Vec::with_capacity(count.min(input.0.len()));
    let mut id = 0u64;
    for n in 0..count {
        let distance = input.varint()?;
        id = id.checked_add(distance).filter(|_| n == 0 || distance > 0)?;
        ids.push(EmailId(id));
    }
    Some(ids)
}

fn put_entries(out: &mut Vec<u8>, entries: &[(MailboxId, UidSet)]) {
    put_varint(out, entries.len() as u64);
    for (mailbox, uids) in entries {
        put_varint(out, mailbox.0);
        put_uids(out, uids);
    }
}

fn entries(input: &mut Input<'_>) -> Option<Vec<(MailboxId, UidSet)>> {
    let count = usize::try_from(input.varint()?).ok()?;
    let mut entries = Vec::with_capacity(count.min(input.0.len()));
    for _ in 0..count {
        entries.push((mailbox_id(input)?, uids(input)?));
    }
    Some(entries)
}

fn put_value(out: &mut Vec<u8>, key: &str, value: Option<&[u8]>) {
    put_bytes(out, key.as_bytes());
    out.push(u8::from(value.is_some()));
    out.extend_from_slice(value.unwrap_or_default());
}

fn value(input: &mut Input<'_>) -> Option<(String, Option<Vec<u8>>)> {
    let key = input.text()?.to_owned();
    let is_there = input.u8()?;
    let value = input.take(input.0.len())?;
    match is_there {
        0 if value.is_empty() => Some((key, None)),
        1 => Some((key, Some(value.to_vec()))),
        _ => None,
    }
}

fn mailbox_id(input: &mut Input<'_>) -> Option<MailboxId> {
    input.varint().map(MailboxId)
}

fn mailbox_name(input: &mut Input<'_>) -> Option<MailboxName> {
    MailboxName::stored(input.text()?).ok()
}

impl Event {
    fn kind(&self) -> u8 {
        match self {
            Event::MailboxCreated { .. } => 1,
            Event::MailboxRenamed { .. } => 2,
            Event::MailboxDeleted { .. } => 3,
            Event::MailboxUndeleted { .. } => 4,
            Event::SpecialUse { .. } => 5,
            Event::Subscribed { .. } => 6,
            Event::Unsubscribed { .. } => 7,
            Event::KeywordAdded { .. } => 8,
            Event::Message { .. } => MESSAGE_KIND,
            Event::Entries { .. } => 10,
            Event::FlagsSet { .. } => 11,
            Event::Expunged { .. } => 12,
            Event::Restored { .. } => 13,
            Event::RecentFloor { .. } => 14,
            Event::MailboxAnnotated { .. } => 15,
            Event::AccountAnnotated { .. } => 16,
            Event::MailboxCounters { .. } => 17,
            Event::ForeignMessages { .. } => 18,
            Event::Discarded { .. } => 19,
            Event::BytesHere { .. } => BYTES_HERE_KIND,
            Event::BytesElsewhere { .. } => 21,
        }
    }

    /// Writes the event of a frame made at `time` (seconds since 1970), to which dates are relative.
    pub(crate) fn write(&self, out: &mut Vec<u8>, time: i64) {
        let mut body = Vec::new();
        self.write_body(&mut body, time);
        out.push(self.kind());
        put_bytes(out, &body);
    }

    fn write_body(&self, out: &mut Vec<u8>, time: i64) {
        match self {
            Event::MailboxCreated { id, name, uidvalidity, special_use } => {
                put_varint(out, id.0);
                put_varint(out, u64::from(*uidvalidity));
                put_varint(out, u64::from(*special_use));
                put_bytes(out, name.as_str().as_bytes());
            }
            Event::MailboxRenamed { id, name } | Event::MailboxUndeleted { id, name } => {
                put_varint(out, id.0);
                put_bytes(out, name.as_str().as_bytes());
            }
            Event::MailboxDeleted { id } => put_varint(out, id.0),
            Event::SpecialUse { id, bits } => {
                put_varint(out, id.0);
                put_varint(out, u64::from(*bits));
            }
            Event::Subscribed { name } | Event::Unsubscribed { name } => put_bytes(out, name.as_str().as_bytes()),
            Event::KeywordAdded { mailbox, keyword } => {
                put_varint(out, mailbox.0);
                put_bytes(out, keyword.as_str().as_bytes());
            }
            Event::Message { email_id, len, header_len, crc } => {
                put_varint(out, email_id.0);
                put_varint(out, u64::from(*len));
                put_varint(out, u64::from(*header_len));
                out.extend_from_slice(&crc.to_le_bytes());
            }
            Event::Entries { mailbox, rows } => {
                put_varint(out, mailbox.0);
                put_rows(out, time, rows);
            }
            Event::FlagsSet { mailbox, flags, uids } => {
                put_varint(out, mailbox.0);
                put_varint_wide(out, flags.0);
                put_uids(out, uids);
            }
            Event::Expunged { mailbox, uids }
            | Event::Restored { mailbox, uids }
            | Event::Discarded { mailbox, uids } => {
                put_varint(out, mailbox.0);
                put_uids(out, uids);
            }
            Event::RecentFloor { mailbox, uid } => {
                put_varint(out, mailbox.0);
                put_varint(out, u64::from(*uid));
            }
            Event::MailboxAnnotated { mailbox, key, value } => {
                put_varint(out, mailbox.0);
                put_value(out, key, value.as_deref());
            }
            Event::AccountAnnotated { key, value } => put_value(out, key, value.as_deref()),
            Event::MailboxCounters { mailbox, uidnext, highest_modseq } => {
                put_varint(out, mailbox.0);
                put_varint(out, *uidnext);
                put_varint(out, *highest_modseq);
            }
            Event::ForeignMessages { messages } => put_foreign(out, messages),
            Event::BytesHere { ids } => put_ids(out, ids),
            Event::BytesElsewhere { messages, entries } => {
                put_foreign(out, messages);
                put_entries(out, entries);
            }
        }
    }

    /// Reads one event of a frame made at `time`.
    pub(crate) fn read(input: &mut Input<'_>, time: i64) -> Result<Event, BadEvent> {
        let kind = input.u8().ok_or(BadEvent::Malformed)?;
        if !KINDS.iter().any(|known| known.0 == kind) {
            return Err(BadEvent::UnknownKind(kind));
        }
        let mut body = Input(input.bytes().ok_or(BadEvent::Malformed)?);
        let event = Self::read_body(kind, &mut body, time).ok_or(BadEvent::Malformed)?;
        if body.is_empty() { Ok(event) } else { Err(BadEvent::Malformed) }
    }

    fn read_body(kind: u8, input: &mut Input<'_>, time: i64) -> Option<Event> {
        Some(match kind {
            1 => {
                let (id, uidvalidity) = (mailbox_id(input)?, input.varint32().filter(|v| *v > 0)?);
                let special_use = u16::try_from(input.varint()?).ok()?;
                Event::MailboxCreated { id, name: mailbox_name(input)?, uidvalidity, special_use }
            }
            2 => Event::MailboxRenamed { id: mailbox_id(input)?, name: mailbox_name(input)? },
            3 => Event::MailboxDeleted { id: mailbox_id(input)? },
            4 => Event::MailboxUndeleted { id: mailbox_id(input)?, name: mailbox_name(input)? },
            5 => Event::SpecialUse { id: mailbox_id(input)?, bits: u16::try_from(input.varint()?).ok()? },
            6 => Event::Subscribed { name: mailbox_name(input)? },
            7 => Event::Unsubscribed { name: mailbox_name(input)? },
            8 => Event::KeywordAdded { mailbox: mailbox_id(input)?, keyword: Keyword::new(input.text()?).ok()? },
            MESSAGE_KIND => {
                let (email_id, len) = (EmailId(input.varint()?), input.varint32()?);
                let header_len = input.varint32().filter(|header| *header <= len)?;
                Event::Message { email_id, len, header_len, crc: input.u32()? }
            }
            10 => Event::Entries { mailbox: mailbox_id(input)?, rows: rows(input, time)? },
            11 => {
                let (mailbox, flags) = (mailbox_id(input)?, Flags(input.varint_wide()?));
                Event::FlagsSet { mailbox, flags, uids: uids(input)? }
            }
            12 => Event::Expunged { mailbox: mailbox_id(input)?, uids: uids(input)? },
            13 => Event::Restored { mailbox: mailbox_id(input)?, uids: uids(input)? },
            14 => Event::RecentFloor { mailbox: mailbox_id(input)?, uid: input.varint32()? },
            15 => {
                let mailbox = mailbox_id(input)?;
                let (key, value) = value(input)?;
                Event::MailboxAnnotated { mailbox, key, value }
            }
            16 => {
                let (key, value) = value(input)?;
                Event::AccountAnnotated { key, value }
            }
            17 => Event::MailboxCounters {
                mailbox: mailbox_id(input)?,
                uidnext: input.varint().filter(|uid| *uid > 0 && *uid <= 1 << 32)?,
                highest_modseq: input.varint()?,
            },
            18 => Event::ForeignMessages { messages: foreign(input)? },
            19 => Event::Discarded { mailbox: mailbox_id(input)?, uids: uids(input)? },
            BYTES_HERE_KIND => Event::BytesHere { ids: ids(input)? },
            21 => Event::BytesElsewhere { messages: foreign(input)?, entries: entries(input)? },
            _ => return None,
        })
    }

    /// Reads all events of a frame.
    pub(crate) fn read_all(bytes: &[u8], time: i64) -> Result<Vec<Event>, BadEvent> {
        let mut input = Input(bytes);
        let mut events = Vec::new();
        while !input.is_empty() {
            events.push(Event::read(&mut input, time)?);
        }
        Ok(events)
    }

    /// Reads only the messages among the events of a frame, and which of them are late; the others may be long and are not looked into.
    pub(crate) fn read_messages(bytes: &[u8], time: i64) -> Result<Vec<Event>, BadEvent> {
        let mut input = Input(bytes);
        let mut events = Vec::new();
        while let Some(&kind) = input.0.first() {
            if kind == MESSAGE_KIND || kind == BYTES_HERE_KIND {
                events.push(Event::read(&mut input, time)?);
                continue;
            }
            if !KINDS.iter().any(|known| known.0 == kind) {
                return Err(BadEvent::UnknownKind(kind));
            }
            input.u8();
            input.bytes().ok_or(BadEvent::Malformed)?;
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uid_set() -> impl Strategy<Value = UidSet> {
        let ranges = proptest::collection::vec((1u32..=u32::MAX, 0u32..50), 0..20);
        ranges.prop_map(|ranges| {
            let mut set = UidSet::new();
            for (first, more) in ranges {
                set.insert_range(first, first.saturating_add(more));
            }
            set
        })
    }

    fn new_row() -> impl Strategy<Value = NewRow> {
        let numbers = (1u32.., any::<u128>(), any::<i64>(), -1439i16..=1439, any::<i64>(), any::<u32>(), any::<u64>());
        numbers.prop_map(|(uid, flags, unix_seconds, offset_minutes, save_date, size, email_id)| NewRow {
            uid: Uid::new(uid).unwrap_or(Uid::FIRST),
            flags: Flags(flags),
            internal_date: DateTime { unix_seconds, offset_minutes },
            save_date,
            size,
            email_id: EmailId(email_id),
        })
    }

    fn event() -> impl Strategy<Value = Event> {
        let id = || any::<u64>().prop_map(MailboxId);
        let name = || {
            proptest::sample::select(vec!["INBOX", "a/b", "ü"])
                .prop_map(|name| MailboxName::new(name).unwrap_or_else(|_| MailboxName::inbox()))
        };
        prop_oneof![
            (id(), name(), 1u32.., any::<u16>()).prop_map(|(id, name, uidvalidity, special_use)| {
                Event::MailboxCreated { id, name, uidvalidity, special_use }
            }),
            (id(), name()).prop_map(|(id, name)| Event::MailboxRenamed { id, name }),
            (id(), name()).prop_map(|(id, name)| Event::MailboxUndeleted { id, name }),
            id().prop_map(|id| Event::MailboxDeleted { id }),
            (id(), any::<u16>()).prop_map(|(id, bits)| Event::SpecialUse { id, bits }),
            name().prop_map(|name| Event::Subscribed { name }),
            name().prop_map(|name| Event::Unsubscribed { name }),
            (any::<u64>(), any::<u32>(), any::<u32>()).prop_map(|(id, len, crc)| Event::Message {
                email_id: EmailId(id),
                len,
                header_len: len / 2,
                crc
            }),
            (id(), proptest::collection::vec(new_row(), 0..9))
                .prop_map(|(mailbox, rows)| Event::Entries { mailbox, rows }),
            (id(), any::<u128>(), uid_set()).prop_map(|(mailbox, flags, uids)| Event::FlagsSet {
                mailbox,
                flags: Flags(flags),
                uids
            }),
            (id(), uid_set()).prop_map(|(mailbox, uids)| Event::Expunged { mailbox, uids }),
            (id(), uid_set()).prop_map(|(mailbox, uids)| Event::Restored { mailbox, uids }),
            (id(), any::<u32>()).prop_map(|(mailbox, uid)| Event::RecentFloor { mailbox, uid }),
            (id(), proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9)))
                .prop_map(|(mailbox, value)| Event::MailboxAnnotated { mailbox, key: "key".to_owned(), value }),
            proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9))
                .prop_map(|value| Event::AccountAnnotated { key: String::new(), value }),
            (id(), 1u64..=1 << 32, any::<u64>()).prop_map(|(mailbox, uidnext, highest_modseq)| {
                Event::MailboxCounters { mailbox, uidnext, highest_modseq }
            }),
            (id(), uid_set()).prop_map(|(mailbox, uids)| Event::Discarded { mailbox, uids }),
            foreign_messages().prop_map(|messages| Event::ForeignMessages { messages }),
            proptest::collection::btree_set(any::<u64>().prop_map(EmailId), 0..20)
                .prop_map(|ids| Event::BytesHere { ids: ids.into_iter().collect() }),
            (foreign_messages(), proptest::collection::vec((id(), uid_set()), 0..4))
                .prop_map(|(messages, entries)| Event::BytesElsewhere { messages, entries }),
        ]
    }

    fn foreign_messages() -> impl Strategy<Value = Vec<(EmailId, ForeignMessage)>> {
        let message = (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(|(octets, header, digest)| ForeignMessage {
            octets,
            header_octets: header.min(octets),
            digest,
        });
        proptest::collection::btree_map(any::<u64>().prop_map(EmailId), message, 0..20)
            .prop_map(|messages| messages.into_iter().collect())
    }

    proptest! {
        #[test]
        fn events_come_back(event in event(), time in any::<i64>(), noise in any::<(u16, u8)>()) {
            let mut bytes = Vec::new();
            event.write(&mut bytes, time);
            prop_assert_eq!(Event::read_all(&bytes, time), Ok(vec![event.clone()]));
            let is_of_messages = [MESSAGE_KIND, BYTES_HERE_KIND].contains(&event.kind());
            let messages = if is_of_messages { vec![event] } else { vec![] };
            prop_assert_eq!(Event::read_messages(&bytes, time), Ok(messages));
            // Cut or changed anywhere: an answer or an error, never a panic.
            let at = usize::from(noise.0) % bytes.len();
            let _ = Event::read_all(&bytes[..at], time);
            let _ = Event::read_messages(&bytes[..at], time);
            bytes[at] = noise.1;
            let _ = Event::read_all(&bytes, time);
            let _ = Event::read_messages(&bytes, time);
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_and_not_skipped() {
        assert_eq!(Event::read_all(&[200, 0], 0), Err(BadEvent::UnknownKind(200)));
    }
}
