//! Quotas (RFC 9208): how much an account holds, and how much it may.
//!
//! Decisions:
//! * What counts is entries: their number, and the sum of their sizes (RFC822.SIZE). A message that was copied counts with each copy, so
//!   that what EXPUNGE gives back is what STATUS DELETED-STORAGE says; what was expunged and can still be restored does not count.
//! * An account's limits are kept with the account, in its log; what it has no limit of its own for is what [`crate::Options::quota`] says.
//! * **A limit is looked at within the transaction** that adds: however many add at once, the sum is never over it. A change that does not
//!   add to a resource that is over its limit goes through: flags, EXPUNGE, MOVE within the account.
//! * Import, conversion, restore and what other programs write into mbox files are never refused: mail that is there must not be lost
//!   between two places. The account may be over its limit afterwards; then nothing can be added until it is below.

use index::{State, Transaction, Usage};
use model::{Error, ErrorKind, Result};

use crate::{Account, Edit};

/// Under which key the account keeps its own limits: words of `storage=KIB` and `messages=NUMBER`, `none` for no limit. A resource that
/// is not named follows the store's options.
pub(crate) const KEY: &str = "quota";

/// Octets in the unit of the resource STORAGE (RFC 9208 §5.1).
pub const STORAGE_UNIT_BYTES: u64 = 1024;

/// How much an account may hold. `None`: as much as there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaLimits {
    /// Of all entries together, units of 1024 octets (RFC 9208 §5.1).
    pub storage_kib: Option<u64>,
    /// Entries (RFC 9208 §5.2).
    pub messages: Option<u64>,
}

/// What an account has been told itself about one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnLimit {
    /// Nothing: what the store's options say holds.
    #[default]
    Default,
    /// As much as there is room for.
    None,
    /// So much.
    Limit(u64),
}

/// The limits of one account's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimits {
    /// Units of 1024 octets.
    pub storage_kib: OwnLimit,
    /// Entries.
    pub messages: OwnLimit,
}

/// What an account holds and may hold, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Octets of all entries.
    pub octets: u64,
    /// Entries.
    pub messages: u64,
    /// What it may hold.
    pub limits: QuotaLimits,
}

impl Quota {
    /// What it holds, units of 1024 octets, a beginning one counted whole.
    pub fn storage_kib(&self) -> u64 {
        self.octets.div_ceil(STORAGE_UNIT_BYTES)
    }
}

impl OwnLimit {
    fn or(self, default: Option<u64>) -> Option<u64> {
        match self {
            OwnLimit::Default => default,
            OwnLimit::None => None,
            OwnLimit::Limit(limit) => Some(limit),
        }
    }

    fn word(self, name: &str) -> Option<String> {
        match self {
            OwnLimit::Default => None,
            OwnLimit::None => Some(format!("{name}=none")),
            OwnLimit::Limit(limit) => Some(format!("{name}={limit}")),
        }
    }
}

impl OwnLimits {
    /// What holds where `defaults` are the store's.
    pub fn resolve(self, defaults: QuotaLimits) -> QuotaLimits {
        QuotaLimits {
            storage_kib: self.storage_kib.or(defaults.storage_kib),
            messages: self.messages.or(defaults.messages),
        }
    }

    /// Words that a later version may have added are left alone, and change nothing here.
    fn parse(value: Option<&[u8]>) -> OwnLimits {
        let text = value.and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        let mut own = OwnLimits::default();
        for (name, value) in text.split(' ').filter_map(|word| word.split_once('=')) {
            let limit = match value {
                "none" => OwnLimit::None,
                number => number.parse().map_or(OwnLimit::Default, OwnLimit::Limit),
            };
            match name {
                "storage" => own.storage_kib = limit,
                "messages" => own.messages = limit,
                _ => {}
            }
        }
        own
    }

    fn to_value(self) -> Option<String> {
        let words: Vec<String> =
            [self.storage_kib.word("storage"), self.messages.word("messages")].into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

impl Account {
    /// What it holds and may hold. Costs no counting.
    pub fn quota(&self) -> Quota {
        let state = self.inner.state();
        let Usage { messages, octets } = state.usage();
        Quota { octets, messages, limits: limits_of(&state, self.inner.quota_defaults()) }
    }

    /// What it has been told itself.
    pub fn own_limits(&self) -> OwnLimits {
        OwnLimits::parse(self.inner.state().annotation(KEY))
    }

    /// [`Edit::set_own_limits`], durably.
    pub fn set_own_limits(&self, limits: OwnLimits) -> Result<()> {
        self.edit(|edit| edit.set_own_limits(limits))
    }

    /// Whether `octets` more in `messages` messages would be too much now: for who wants to know before the octets come. What counts is
    /// the check within the change.
    pub fn has_room_for(&self, messages: u64, octets: u64) -> Result<()> {
        let quota = self.quota();
        let before = Usage { messages: quota.messages, octets: quota.octets };
        let after =
            Usage { messages: before.messages.saturating_add(messages), octets: before.octets.saturating_add(octets) };
        check(quota.limits, before, after)
    }
}

impl Edit<'_> {
    /// Gives the account limits of its own. They may be below what it holds: then nothing can be added.
    pub fn set_own_limits(&mut self, limits: OwnLimits) -> Result<()> {
        let value = limits.to_value();
        self.transaction.annotate_account(KEY, value.as_deref().map(str::as_bytes))
    }
}

/// What the account held when a change began; see [`Watch::end`].
pub(crate) struct Watch {
    before: Usage,
    defaults: QuotaLimits,
}

impl Watch {
    pub(crate) fn begin(transaction: &Transaction, defaults: QuotaLimits) -> Watch {
        Watch { before: transaction.state().usage(), defaults }
    }

    /// [`ErrorKind::OverQuota`] when the transaction adds to what is over its limit then.
    pub(crate) fn end(self, transaction: &Transaction) -> Result<()> {
        let state = transaction.state();
        let after = state.usage();
        if after.octets <= self.before.octets && after.messages <= self.before.messages {
            return Ok(());
        }
        check(limits_of(state, self.defaults), self.before, after)
    }
}

/// What an account may hold, where `defaults` are the store's.
pub(crate) fn limits_of(state: &State, defaults: QuotaLimits) -> QuotaLimits {
    OwnLimits::parse(state.annotation(KEY)).resolve(defaults)
}

fn check(limits: QuotaLimits, before: Usage, after: Usage) -> Result<()> {
    let is_over = |before: u64, after: u64, limit: Option<u64>| after > before && limit.is_some_and(|max| after > max);
    let storage_max = limits.storage_kib.map(|kib| kib.saturating_mul(STORAGE_UNIT_BYTES));
    if is_over(before.octets, after.octets, storage_max) {
        return Err(over("storage"));
    }
    if is_over(before.messages, after.messages, limits.messages) {
        return Err(over("messages"));
    }
    Ok(())
}

fn over(resource: &str) -> Error {
    Error::new(ErrorKind::OverQuota, format!("the account would be over its limit of {resource}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_limits_come_back() {
        for (limits, value) in [
            (OwnLimits::default(), None),
            (OwnLimits { storage_kib: OwnLimit::Limit(7), messages: OwnLimit::Default }, Some("storage=7")),
            (OwnLimits { storage_kib: OwnLimit::None, messages: OwnLimit::Limit(0) }, Some("storage=none messages=0")),
        ] {
            assert_eq!(limits.to_value().as_deref(), value);
            assert_eq!(OwnLimits::parse(value.map(str::as_bytes)), limits);
        }
        assert_eq!(OwnLimits::parse(Some(b"x=1 storage=-3 \xff")), OwnLimits::default());
    }

    #[test]
    fn at_the_limit_and_one_over() {
        let limits = QuotaLimits { storage_kib: Some(2), messages: Some(3) };
        let usage = |messages, octets| Usage { messages, octets };
        let can = |before, after| check(limits, before, after).is_ok();
        assert!(
            can(usage(0, 0), usage(3, 2048)) && !can(usage(0, 0), usage(3, 2049)) && !can(usage(2, 9), usage(4, 9))
        );
        // Who is over may do what adds nothing, and may get smaller in what is over.
        assert!(can(usage(9, 9000), usage(9, 8999)) && can(usage(9, 0), usage(9, 2048)));
        assert!(!can(usage(9, 0), usage(10, 0)) && !can(usage(0, 9000), usage(0, 9001)));
        assert!(check(QuotaLimits::default(), usage(0, 0), usage(u64::MAX, u64::MAX)).is_ok());
    }
}
