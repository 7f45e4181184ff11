//! Mail from another server, which tells UIDs, flags and dates: what the account remembers of it, so that the next run goes on where
//! the last one ended.
//!
//! For each pair of a mailbox there and one here the account keeps an annotation: the UIDVALIDITY there, the highest UID that was brought,
//! the modseq up to which changes are known, and which UID there became which here. It changes in the transaction that adds
//! the messages: whatever kills an import, the two agree.
//!
//! A mailbox that never had a message takes over UIDVALIDITY and UIDs (RFC 9051 §2.3.1.1), so that clients need not load anything again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use index::{NewEntry, Transaction};
use model::{
    DateTime, ErrorKind, FlagChange, Flags, MailboxId, MailboxName, Result, SpecialUse, Uid, UidSet, UidValidity,
};
use sha2::{Digest, Sha256};

use super::ledger::{checksum, hex};
use crate::account::{Account, FlagNames};
use crate::edit::flags_of;
use crate::message::PendingMessage;

/// The longest annotation value that the account keeps (`annotation_value_bytes_max`), octets.
const VALUE_BYTES_MAX: usize = index::ANNOTATION_VALUE_BYTES_MAX;

/// A message of the other server.
pub struct RemoteMessage {
    /// Its UID there.
    pub uid: Uid,
    /// Its bytes.
    pub message: PendingMessage,
    /// Its flags.
    pub flags: FlagNames,
    /// Its internal date.
    pub internal_date: DateTime,
    /// When it came into its mailbox there, seconds since 1970 (RFC 8514); `None`: not known.
    pub save_date: Option<i64>,
}

/// A mailbox here that is filled from one there.
#[derive(Debug)]
pub struct RemoteMailbox {
    id: MailboxId,
    key: String,
    place: Place,
}

/// What [`Account::adopt`] found.
#[derive(Debug)]
pub enum Adopted {
    /// The mailbox that can be filled.
    Ready(RemoteMailbox),
    /// The UIDVALIDITY there is another one than at the last import: what was brought then cannot be told from what is there now.
    OtherUidValidity,
}

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    uid_validity: u32,
    /// Everything there up to this UID was brought, or was no longer there.
    done: u32,
    /// Changes up to this modseq are known (RFC 7162); 0: not known.
    modseq: u64,
    /// Whether UIDs here are those there: the mailbox was made for them. That both have the same UIDVALIDITY can be chance.
    keeps_uids: bool,
    /// UIDs there and here, pair by pair; those there rise. `None`: there were too many to remember.
    pairs: Option<Pairs>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pairs {
    there: Vec<u32>,
    here: Vec<u32>,
}

impl Pairs {
    fn here(&self, there: u32) -> Option<u32> {
        self.there.binary_search(&there).ok().and_then(|at| self.here.get(at).copied())
    }
}

/// What became of a batch.
#[derive(Debug, Default)]
pub struct Added {
    /// Messages whose UID could not be kept though the mailbox keeps UIDs: it is taken here.
    pub other_uids: u64,
    /// Messages that lost a keyword: the mailbox has all that it can have.
    pub lost_keywords: Vec<Uid>,
}

impl Account {
    /// Makes a mailbox ready for messages from a mailbox of another server; `origin` says which, the same in every run. One that is not there
    /// is made; one that never had a message gets the UIDVALIDITY.
    pub fn adopt(
        &self,
        name: &MailboxName,
        special_use: &[SpecialUse],
        origin: &str,
        uid_validity: UidValidity,
    ) -> Result<Adopted> {
        let there = uid_validity.get();
        let mut hash = Sha256::new();
        hash.update(origin.as_bytes());
        let origin = hex(&checksum(hash));
        self.commit(|transaction| {
            let found = transaction.state().mailbox_named(name).map(|mailbox| mailbox.id());
            if let Some(id) = found {
                let key = key(id, &origin);
                if let Some(place) = transaction.state().annotation(&key).and_then(Place::from_value) {
                    if place.uid_validity != there {
                        return Ok(Adopted::OtherUidValidity);
                    }
                    return Ok(Adopted::Ready(RemoteMailbox { id, key, place }));
                }
            }
            let (id, keeps_uids) = match found {
                Some(id) if transaction.mailbox(id)?.uidnext() != Some(Uid::FIRST) => (id, false),
                found => {
                    // UIDs were never given: nobody can miss the mailbox that it was.
                    let mut uses = special_use.to_vec();
                    if let Some(id) = found {
                        uses.extend(transaction.mailbox(id)?.special_uses());
                        transaction.delete_mailbox(id)?;
                    }
                    uses.sort_unstable();
                    uses.dedup();
                    crate::mailboxes::create_parents(transaction, name)?;
                    (transaction.create_mailbox_with(name, &uses, there)?, true)
                }
            };
            let place = Place { uid_validity: there, keeps_uids, pairs: Some(Pairs::default()), ..Place::default() };
            Ok(Adopted::Ready(RemoteMailbox { id, key: key(id, &origin), place }))
        })
    }
}

fn key(mailbox: MailboxId, origin: &str) -> String {
    format!("import/imap/{mailbox}/{origin}")
}

impl RemoteMailbox {
    /// The highest UID there that is done; 0: none is.
    pub fn done(&self) -> u32 {
        self.place.done
    }

    /// Up to which modseq there changes are known; 0: not known.
    pub fn modseq(&self) -> u64 {
        self.place.modseq
    }

    /// Whether it is known which messages here came from there, so that their changes can be brought.
    pub fn knows_pairs(&self) -> bool {
        self.place.pairs.is_some()
    }

    /// Whether UIDs here are those there: of a mailbox that never had a message before.
    pub fn keeps_uids(&self) -> bool {
        self.place.keeps_uids
    }

    /// The mailbox here.
    pub(super) fn id(&self) -> MailboxId {
        self.id
    }

    /// Whether the message with this UID there was brought, also when it was expunged here since.
    pub(super) fn has_brought(&self, there: u32) -> bool {
        match &self.place.pairs {
            Some(pairs) => pairs.here(there).is_some(),
            None => there <= self.place.done,
        }
    }

    /// Messages have other UIDs there than was thought: `moved` has pairs of the old and the new one, `gone` are UIDs that stand for no message that was
    /// brought.
    pub(super) fn renumber(&mut self, account: &Account, moved: &[(u32, u32)], gone: &[u32]) -> Result<()> {
        let Some(pairs) = self.place.pairs.as_ref().filter(|_| !moved.is_empty() || !gone.is_empty()) else {
            return Ok(());
        };
        let mut all: BTreeMap<u32, u32> = pairs.there.iter().copied().zip(pairs.here.iter().copied()).collect();
        let taken: Vec<(u32, Option<u32>)> = moved.iter().map(|(old, new)| (*new, all.remove(old))).collect();
        // Behind the moves: what has moved away from a UID is no reason to forget it.
        all.retain(|there, _| !gone.contains(there));
        all.extend(taken.into_iter().filter_map(|(new, here)| Some((new, here?))));
        let (there, here) = all.into_iter().unzip();
        let place = Place { pairs: Some(Pairs { there, here }), ..self.place.clone() };
        let key = self.key.clone();
        self.place = account.commit(|transaction| self.remember(transaction, &key, place.clone()))?;
        Ok(())
    }

    /// Adds messages, all or none, with rising UIDs. Everything there up to the last of them, or up to `done` if that is more, counts as done.
    pub fn add(&mut self, account: &Account, messages: Vec<RemoteMessage>, done: u32) -> Result<Added> {
        let keeps_uids = self.place.keeps_uids;
        let (id, key) = (self.id, self.key.clone());
        let (added, place) = account.commit(|transaction| {
            let mut place = self.place.clone();
            place.done = place.done.max(done);
            let mut added = Added::default();
            for message in &messages {
                let (flags, has_lost) = flags_as_far_as_possible(transaction, id, &message.flags)?;
                if has_lost {
                    added.lost_keywords.push(message.uid);
                }
                let is_free = transaction.mailbox(id)?.uidnext().is_some_and(|next| next <= message.uid);
                let uid = Some(message.uid).filter(|_| keeps_uids && is_free);
                added.other_uids += u64::from(keeps_uids && uid.is_none());
                let email_id = transaction.add_message(Arc::clone(&message.message.inner))?;
                let entry = NewEntry { uid, flags, internal_date: message.internal_date, save_date: message.save_date };
                let here = transaction.add_entry(id, email_id, &entry)?;
                place.done = place.done.max(message.uid.get());
                if let Some(pairs) = &mut place.pairs {
                    let at = pairs.there.partition_point(|there| *there < message.uid.get());
                    pairs.there.insert(at, message.uid.get());
                    pairs.here.insert(at, here.get());
                }
            }
            Ok((added, self.remember(transaction, &key, place)?))
        })?;
        self.place = place;
        Ok(added)
    }

    /// Gives messages that were brought the flags that they have there; the others are left alone. How many have changed.
    pub fn set_flags(&mut self, account: &Account, flags: Vec<(Uid, FlagNames)>) -> Result<u64> {
        let Some(pairs) = &self.place.pairs else { return Ok(0) };
        // Few different sets of flags: one operation each.
        let mut groups: HashMap<FlagKey, (FlagNames, Vec<u32>)> = HashMap::new();
        for (there, names) in flags {
            let Some(here) = pairs.here(there.get()) else { continue };
            groups.entry(FlagKey::of(&names)).or_insert_with(|| (names, Vec::new())).1.push(here);
        }
        let sorted = |(names, mut uids): (FlagNames, Vec<u32>)| {
            uids.sort_unstable();
            (names, uids.into_iter().collect())
        };
        let groups: Vec<(FlagNames, UidSet)> = groups.into_values().map(sorted).collect();
        let id = self.id;
        account.commit(|transaction| {
            let mut changed = 0;
            for (names, uids) in &groups {
                let (flags, _) = flags_as_far_as_possible(transaction, id, names)?;
                let outcome = transaction.set_flags(id, uids, FlagChange::Replace(flags), None)?;
                changed += outcome.changed.len();
            }
            Ok(changed)
        })
    }

    /// Expunges what was brought and is not among `present` there. How many that were.
    pub fn expunge_all_but(&mut self, account: &Account, present: &UidSet) -> Result<u64> {
        let Some(pairs) = self.place.pairs.clone() else { return Ok(0) };
        let (mut kept, mut gone) = (Pairs::default(), Vec::new());
        for (there, here) in pairs.there.into_iter().zip(pairs.here) {
            if present.contains(there) {
                kept.there.push(there);
                kept.here.push(here);
            } else {
                gone.push(here);
            }
        }
        if gone.is_empty() {
            return Ok(0);
        }
        gone.sort_unstable();
        let gone: UidSet = gone.into_iter().collect();
        let (id, key) = (self.id, self.key.clone());
        let place = Place { pairs: Some(kept), ..self.place.clone() };
        let (expunged, place) = account.commit(|transaction| {
            let expunged = transaction.expunge(id, &gone)?.len();
            Ok((expunged, self.remember(transaction, &key, place.clone())?))
        })?;
        self.place = place;
        Ok(expunged)
    }

    /// Remembers that all changes up to a modseq there were brought.
    pub fn reached(&mut self, account: &Account, modseq: u64) -> Result<()> {
        let place = Place { modseq, ..self.place.clone() };
        if place != self.place {
            let key = self.key.clone();
            self.place = account.commit(|transaction| self.remember(transaction, &key, place.clone()))?;
        }
        Ok(())
    }

    /// Writes down a place, without what would be too much; gives it back as it was written.
    fn remember(&self, transaction: &mut Transaction, key: &str, mut place: Place) -> Result<Place> {
        let mut value = place.to_value();
        if value.len() > VALUE_BYTES_MAX {
            place.pairs = None;
            value = place.to_value();
        }
        transaction.annotate_account(key, Some(&value)).map(|()| place)
    }
}

/// The bits of `names`, without those keywords that the mailbox cannot have any more; and whether there are such.
pub(crate) fn flags_as_far_as_possible(
    transaction: &mut Transaction,
    mailbox: MailboxId,
    names: &FlagNames,
) -> Result<(Flags, bool)> {
    let system = FlagNames { system: names.system.clone(), keywords: Vec::new() };
    let mut flags = flags_of(transaction, mailbox, &system)?;
    let mut has_lost = false;
    for keyword in &names.keywords {
        match transaction.keyword(mailbox, keyword) {
            Ok(bit) => flags = flags.with(bit),
            Err(error) if error.kind() == ErrorKind::Limit => has_lost = true,
            Err(error) => return Err(error),
        }
    }
    Ok((flags, has_lost))
}

/// Equal for equal sets of flags.
#[derive(PartialEq, Eq, Hash)]
struct FlagKey(Vec<String>);

impl FlagKey {
    fn of(names: &FlagNames) -> FlagKey {
        let system = names.system.iter().map(|flag| flag.as_str().to_owned());
        let mut all: Vec<String> =
            system.chain(names.keywords.iter().map(|keyword| keyword.as_str().to_owned())).collect();
        all.sort_unstable();
        all.dedup();
        FlagKey(all)
    }
}

impl Place {
    /// `1 UIDVALIDITY DONE MODSEQ KEEPS THERE HERE`: KEEPS is 1 or 0; the last two are lists of ranges in the order of the pairs, `=` for the same
    /// as there, `?` for not known.
    fn to_value(&self) -> Vec<u8> {
        let Place { uid_validity, done, modseq, keeps_uids, pairs } = self;
        let (there, here) = match pairs {
            None => ("?".to_owned(), "?".to_owned()),
            Some(pairs) if pairs.there == pairs.here => (ranges(&pairs.there), "=".to_owned()),
            Some(pairs) => (ranges(&pairs.there), ranges(&pairs.here)),
        };
        format!("1 {uid_validity} {done} {modseq} {} {there} {here}", u8::from(*keeps_uids)).into_bytes()
    }

    fn from_value(value: &[u8]) -> Option<Place> {
        let mut words = std::str::from_utf8(value).ok()?.split(' ');
        if words.next() != Some("1") {
            return None;
        }
        let uid_validity = words.next()?.parse().ok()?;
        let done = words.next()?.parse().ok()?;
        let modseq = words.next()?.parse().ok()?;
        let keeps_uids = words.next()? == "1";
        let pairs = match (words.next()?, words.next()?) {
            ("?", _) => None,
            (there, here) => {
                let there = numbers(there)?;
                let here = if here == "=" { there.clone() } else { numbers(here)? };
                let is_rising = there.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
                Some(Pairs { there, here }).filter(|pairs| is_rising && pairs.there.len() == pairs.here.len())
            }
        };
        Some(Place { uid_validity, done, modseq, keeps_uids, pairs })
    }
}

/// `1:3,5`; `-` for none.
fn ranges(numbers: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let Some((&first, after)) = rest.split_first() {
        let follows = |(n, number): &(usize, &u32)| first.checked_add(*n as u32 + 1) == Some(**number);
        let more = after.iter().enumerate().take_while(follows).count();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if more > 0 {
            text.push_str(&format!(":{}", u64::from(first) + more as u64));
        }
        rest = after.get(more..).unwrap_or_default();
    }
    if text.is_empty() { "-".to_owned() } else { text }
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    if text == "-" {
        return Some(numbers);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once(':').unwrap_or((range, range));
        numbers.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn places_come_back() {
        let pairs = |there: &[u32], here: &[u32]| Some(Pairs { there: there.to_vec(), here: here.to_vec() });
        for (pairs, text) in [
            (pairs(&[], &[]), "1 7 9 3 1 - ="),
            (pairs(&[1, 2, 3, 5], &[1, 2, 3, 5]), "1 7 9 3 1 1:3,5 ="),
            (pairs(&[4, 5, u32::MAX], &[2, 1, 3]), "1 7 9 3 1 4:5,4294967295 2,1,3"),
            (None, "1 7 9 3 1 ? ?"),
        ] {
            let place = Place { uid_validity: 7, done: 9, modseq: 3, keeps_uids: true, pairs };
            assert_eq!(String::from_utf8(place.to_value()).unwrap(), text);
            assert_eq!(Place::from_value(text.as_bytes()), Some(place));
        }
        for bad in ["", "2 7 9 3 1 - =", "1 7 9", "1 x 9 3 1 - ="] {
            assert_eq!(Place::from_value(bad.as_bytes()), None, "{bad}");
        }
        let unusable = Place::from_value(b"1 7 9 3 0 2,1 =").unwrap();
        assert_eq!(unusable.pairs, None, "what does not rise is not believed");
    }

    proptest::proptest! {
        #[test]
        fn ranges_come_back(numbers_in in proptest::collection::vec(1u32..40, 0..20)) {
            proptest::prop_assert_eq!(numbers(&ranges(&numbers_in)), Some(numbers_in));
        }
    }
}
