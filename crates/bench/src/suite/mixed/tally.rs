//! What a load came to: how many commands, how long each took, which failed or were wrong, and when news of messages arrived.

use super::script::Kind;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Figures of one kind of command.
#[derive(Clone, Debug, Default)]
pub struct OfKind {
    /// Answered within the time that counts.
    pub answered: u64,
    /// How long each of them took, and those that were still waiting when that time was over: leaving those out would leave out the
    /// slowest.
    pub latencies: Vec<Duration>,
    /// Answered with NO or BAD.
    pub failed: u64,
    /// Answered with OK, but not with what was right.
    pub wrong: u64,
}

/// Of all connections of a load.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By kind of command.
    pub kinds: BTreeMap<Kind, OfKind>,
    /// Connections that the server closed.
    pub closed: u64,
    /// The first failed command, wrong answer or closed connection.
    pub trouble: Option<String>,
    /// Which answers are counted now.
    pub counting: Counting,
    news: Vec<News>,
}

/// Which part of a load it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counting {
    /// Getting under way: nothing is counted but trouble.
    #[default]
    No,
    /// Everything is counted.
    Yes,
    /// The time is over; the answers that still come give their latencies.
    Late,
}

/// Of one user: messages that were added, and when the idling connection was told.
#[derive(Clone, Debug, Default)]
struct News {
    /// Messages in the mailbox before.
    before: u32,
    /// When each APPEND was acknowledged.
    acknowledged: Vec<Instant>,
    /// When EXISTS had counted so many.
    seen: Vec<Instant>,
}

impl Tally {
    /// For users whose watched mailboxes have so many messages.
    pub fn new(before: &[u32]) -> Tally {
        let news = before.iter().map(|before| News { before: *before, ..News::default() }).collect();
        Tally { news, ..Tally::default() }
    }

    /// A command was answered, in whatever way.
    pub fn answered(&mut self, kind: Kind, took: Duration) {
        let of_kind = self.kinds.entry(kind).or_default();
        of_kind.answered += u64::from(self.counting == Counting::Yes);
        if self.counting != Counting::No {
            of_kind.latencies.push(took);
        }
    }

    /// A command was refused.
    pub fn failed(&mut self, kind: Kind, text: &str) {
        self.kinds.entry(kind).or_default().failed += 1;
        self.trouble.get_or_insert_with(|| format!("{}: {text}", kind.name()));
    }

    /// An answer was not right.
    pub fn wrong(&mut self, kind: Kind, text: &str) {
        self.kinds.entry(kind).or_default().wrong += 1;
        self.trouble.get_or_insert_with(|| text.to_string());
    }

    /// A connection is no more.
    pub fn closed(&mut self, text: &str) {
        self.closed += 1;
        self.trouble.get_or_insert_with(|| text.to_string());
    }

    /// An APPEND of the user was acknowledged.
    pub fn appended(&mut self, user: usize, now: Instant) {
        if let Some(news) = self.news.get_mut(user) {
            news.acknowledged.push(now);
        }
    }

    /// The user's idling connection was told of so many messages.
    pub fn seen(&mut self, user: usize, exists: u32, now: Instant) {
        if let Some(news) = self.news.get_mut(user) {
            let added = exists.saturating_sub(news.before) as usize;
            news.seen.resize(added.max(news.seen.len()), now);
        }
    }

    /// Messages that were acknowledged and that the idling connections do not know of yet.
    pub fn unseen(&self) -> usize {
        self.news.iter().map(|news| news.acknowledged.len().saturating_sub(news.seen.len())).sum()
    }

    /// From the acknowledgement of each APPEND to the idling connection's EXISTS; zero when that came first.
    pub fn news_latencies(&self) -> Vec<Duration> {
        let pairs = self.news.iter().flat_map(|news| news.acknowledged.iter().zip(&news.seen));
        pairs.map(|(acknowledged, seen)| seen.saturating_duration_since(*acknowledged)).collect()
    }

    /// Failed and wrong ones, of all kinds.
    pub fn failed_and_wrong(&self) -> (u64, u64) {
        self.kinds.values().fold((0, 0), |(failed, wrong), kind| (failed + kind.failed, wrong + kind.wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::{Counting, Tally};
    use crate::suite::mixed::script::Kind;
    use std::time::{Duration, Instant};

    #[test]
    fn news_are_matched_by_count() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut tally = Tally::new(&[10, 0]);
        tally.appended(0, at(1));
        tally.appended(0, at(2));
        tally.appended(1, at(3));
        assert_eq!(tally.unseen(), 3);
        tally.seen(0, 10, at(4));
        assert_eq!(tally.unseen(), 3, "what was there before is no news");
        tally.seen(0, 12, at(5));
        tally.seen(1, 1, at(2));
        assert_eq!(tally.unseen(), 0);
        tally.seen(0, 11, at(6));
        let ms: Vec<u128> = tally.news_latencies().iter().map(Duration::as_millis).collect();
        assert_eq!(ms, [4, 3, 0], "the last was told before its acknowledgement");
    }

    #[test]
    fn only_the_time_that_counts() {
        let mut tally = Tally::new(&[]);
        for counting in [Counting::No, Counting::Yes, Counting::Late] {
            tally.counting = counting;
            tally.answered(Kind::List, Duration::from_millis(1));
        }
        tally.failed(Kind::List, "NO");
        tally.wrong(Kind::Body, "short");
        assert_eq!((tally.kinds[&Kind::List].answered, tally.kinds[&Kind::List].latencies.len()), (1, 2));
        assert_eq!(tally.failed_and_wrong(), (1, 1));
        assert_eq!(tally.trouble.as_deref(), Some("LIST: NO"), "the first");
    }
}
