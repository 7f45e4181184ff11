//! SORT (RFC 5256 §3, RFC 5957): the entries of a search result in the order that was asked for.
//!
//! The work is cut into steps as that of a search is. First the keys are gathered, from columns and from what is kept beside the
//! messages; then they are sorted. Equal entries stand in the order of the mailbox.

use std::cmp::Ordering;

use model::{Error, ErrorKind, NumSet, Result};

use super::keys::{self, AddressKey};
use super::merge::MergeSort;
use crate::view::Entry;
use crate::{Reader, View};

/// What entries are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// Internal date.
    Arrival,
    /// Local part of the first Cc address.
    Cc,
    /// The sent date in UTC, or the internal date where there is none.
    Date,
    /// Local part of the first From address.
    From,
    /// Octets.
    Size,
    /// The base subject.
    Subject,
    /// Local part of the first To address.
    To,
    /// What is displayed of the first From address (RFC 5957).
    DisplayFrom,
    /// What is displayed of the first To address (RFC 5957).
    DisplayTo,
}

/// A key and its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortCriterion {
    /// The key.
    pub key: SortKey,
    /// Whether the order is descending.
    pub reverse: bool,
}

/// Octets that the keys of one sort may take: ten million subjects of usual length. Over it, the limit `sort_bytes_max` is met.
pub const SORT_BYTES_MAX: usize = 512 << 20;

/// Entries whose keys are gathered in one step.
const STEP_ENTRIES: u32 = 4096;

/// A sort that is under way; made of bounded steps, so that a session can be cancelled and others get their turn.
pub struct Sort {
    view: View,
    reader: Reader,
    columns: Vec<(SortCriterion, Column)>,
    /// The sequence numbers to sort, and how many of them were gathered.
    seqs: Vec<(u32, u32)>,
    gathered: Vec<u32>,
    order: MergeSort<Item>,
    damage: Option<Error>,
}

/// The place of an entry among those gathered, and the beginning of its first key, which decides most comparisons.
#[derive(Clone, Copy)]
struct Item {
    first: u64,
    place: u32,
}

/// The keys of all entries for one criterion.
enum Column {
    Numbers(Vec<u64>),
    Strings { octets: Vec<u8>, ends: Vec<usize> },
}

impl Sort {
    /// Starts it for `seqs` of `view`. A key that comes a second time decides nothing and is left out.
    pub fn new(view: View, reader: Reader, criteria: &[SortCriterion], seqs: &NumSet) -> Self {
        let mut columns: Vec<(SortCriterion, Column)> = Vec::new();
        for criterion in criteria {
            if !columns.iter().any(|(known, _)| known.key == criterion.key) {
                columns.push((*criterion, Column::new(criterion.key)));
            }
        }
        let mut seqs = seqs.ranges().to_vec();
        seqs.reverse();
        Sort { view, reader, columns, seqs, gathered: Vec::new(), order: MergeSort::new(), damage: None }
    }

    /// Does a bounded piece of work; `Some` when finished: the sequence numbers in order.
    ///
    /// The keys of a damaged message are empty; see [`Sort::damage`]. Other errors are those of the machine, and the limit
    /// `sort_bytes_max`.
    pub fn step(&mut self) -> Result<Option<Vec<u32>>> {
        if let Some((first, last)) = self.seqs.pop() {
            let end = last.min(first.saturating_add(STEP_ENTRIES - 1));
            if end < last {
                self.seqs.push((end + 1, last));
            }
            let view = self.view.clone();
            for entry in view.rows(first..=end) {
                self.gather(&entry)?;
            }
            return Ok(None);
        }
        let columns = &self.columns;
        let sorted = self.order.step(|a, b| compare(columns, a, b));
        let seq = |item: Item| self.gathered.get(item.place as usize).copied();
        Ok(sorted.map(|sorted| sorted.into_iter().filter_map(seq).collect()))
    }

    fn gather(&mut self, entry: &Entry) -> Result<()> {
        let mut octets = 0;
        for (criterion, column) in &mut self.columns {
            let added = column.push(criterion.key, entry, &mut self.reader);
            match added {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    column.push_nothing(criterion.key, entry);
                    self.damage.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
            octets += column.octets();
        }
        if octets > SORT_BYTES_MAX {
            return Err(Error::over_limit("sort_bytes_max", "the keys of a sort take too much memory"));
        }
        let place = self.gathered.len();
        self.gathered.push(entry.seq.get());
        let first = self.columns.first().map_or(0, |(criterion, column)| {
            let first = column.first(place);
            if criterion.reverse { !first } else { first }
        });
        let columns = &self.columns;
        let item = Item { first, place: u32::try_from(place).unwrap_or(u32::MAX) };
        self.order.push(item, |a, b| compare(columns, a, b));
        Ok(())
    }

    /// The first damage that left an entry without its keys ([`model::ErrorKind::Corrupt`]).
    pub fn damage(&self) -> Option<&Error> {
        self.damage.as_ref()
    }

    /// Runs all steps. Damage is an error here, since nobody can ask for it any more.
    pub fn finish(mut self) -> Result<Vec<u32>> {
        loop {
            if let Some(sorted) = self.step()? {
                return match self.damage {
                    Some(damage) => Err(damage),
                    None => Ok(sorted),
                };
            }
        }
    }
}

fn compare(columns: &[(SortCriterion, Column)], a: &Item, b: &Item) -> Ordering {
    a.first.cmp(&b.first).then_with(|| {
        let (x, y) = (a.place as usize, b.place as usize);
        for (criterion, column) in columns {
            match column.compare(x, y) {
                Ordering::Equal => {}
                order => return if criterion.reverse { order.reverse() } else { order },
            }
        }
        x.cmp(&y)
    })
}

/// The derived columns' addresses key for a sort key.
fn address_key(key: SortKey) -> Option<AddressKey> {
    match key {
        SortKey::Cc => Some(AddressKey::Cc),
        SortKey::From => Some(AddressKey::From),
        SortKey::To => Some(AddressKey::To),
        SortKey::DisplayFrom => Some(AddressKey::DisplayFrom),
        SortKey::DisplayTo => Some(AddressKey::DisplayTo),
        SortKey::Arrival | SortKey::Date | SortKey::Size | SortKey::Subject => None,
    }
}

impl Column {
    fn new(key: SortKey) -> Self {
        match key {
            SortKey::Arrival | SortKey::Date | SortKey::Size => Column::Numbers(Vec::new()),
            _ => Column::Strings { octets: Vec::new(), ends: Vec::new() },
        }
    }

    /// Adds the key of an entry; adds nothing when there is an error.
    fn push(&mut self, key: SortKey, entry: &Entry, reader: &mut Reader) -> Result<()> {
        match self {
            Column::Numbers(numbers) => numbers.push(match key {
                SortKey::Arrival => ordered(entry.internal_date.unix_seconds),
                SortKey::Size => u64::from(entry.size),
                // RFC 5256 §2.2: without a date that can be read, the internal date.
                _ => ordered(
                    keys::sent_time(reader.sent_time(entry.email_id)?).unwrap_or(entry.internal_date.unix_seconds),
                ),
            }),
            Column::Strings { octets, ends } => {
                let string = match address_key(key) {
                    Some(which) => keys::address(reader.sort_addresses(entry.email_id)?, which)?,
                    None => keys::subject(reader.base_subject(entry.email_id)?)?.1,
                };
                octets.extend_from_slice(string);
                ends.push(octets.len());
            }
        }
        Ok(())
    }

    /// Adds the key of an entry that cannot be read: as if the header field were absent.
    fn push_nothing(&mut self, key: SortKey, entry: &Entry) {
        match self {
            Column::Numbers(numbers) if key == SortKey::Size => numbers.push(u64::from(entry.size)),
            Column::Numbers(numbers) => numbers.push(ordered(entry.internal_date.unix_seconds)),
            Column::Strings { octets, ends } => ends.push(octets.len()),
        }
    }

    /// Memory.
    fn octets(&self) -> usize {
        match self {
            Column::Numbers(numbers) => numbers.len() * 8,
            Column::Strings { octets, ends } => octets.len() + ends.len() * 8,
        }
    }

    /// A number that orders as the key does, as far as it goes.
    fn first(&self, place: usize) -> u64 {
        match self {
            Column::Numbers(numbers) => numbers.get(place).copied().unwrap_or_default(),
            Column::Strings { octets, ends } => {
                let mut first = [0; 8];
                for (to, from) in first.iter_mut().zip(string(octets, ends, place)) {
                    *to = *from;
                }
                u64::from_be_bytes(first)
            }
        }
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        match self {
            Column::Numbers(numbers) => numbers.get(a).cmp(&numbers.get(b)),
            Column::Strings { octets, ends } => string(octets, ends, a).cmp(string(octets, ends, b)),
        }
    }
}

fn string<'a>(octets: &'a [u8], ends: &[usize], place: usize) -> &'a [u8] {
    let start = place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    ends.get(place).and_then(|end| octets.get(start..*end)).unwrap_or_default()
}

/// A signed number as an unsigned one of the same order.
fn ordered(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}
