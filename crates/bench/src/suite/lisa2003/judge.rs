//! Whether an answer is right: hits of a search, messages that an EXPUNGE took.

use crate::results::Verdict;

/// Whether a message belongs into the answer to a search. Rising: of two keys of which one suffices the larger counts, of two that are both
/// wanted the smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expect {
    /// Nothing in it has it: a server that finds it is wrong.
    Not,
    /// Reasonable servers differ (see the oracle): neither is wrong.
    May,
    /// Its text has it: a server that leaves it out is wrong.
    Must,
}

impl Expect {
    /// Of the contrary.
    pub fn not(self) -> Expect {
        match self {
            Expect::Not => Expect::Must,
            Expect::May => Expect::May,
            Expect::Must => Expect::Not,
        }
    }
}

/// What a search found, held against what it should find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Hits, each message counted once.
    pub hits: u64,
    /// Messages that must be found.
    pub must: u64,
    /// Of those, not found.
    pub missing: u64,
    /// Messages that may be found.
    pub may: u64,
    /// Of those, found.
    pub given: u64,
    /// Found and wrong: not in the message, no such message, or named twice.
    pub extra: u64,
    /// A few of the messages that are missing or wrong, by sequence number.
    pub examples: Vec<u32>,
}

/// So many messages are named when an answer is wrong.
const EXAMPLES_MAX: usize = 5;

/// Judges the sequence numbers that a search gave; `expected` is by sequence number, the first is number 1.
pub fn judge(expected: &[Expect], hits: &[u32]) -> Judgement {
    let mut found = vec![false; expected.len()];
    let mut judgement = Judgement::default();
    for hit in hits {
        match (*hit as usize).checked_sub(1).and_then(|at| found.get_mut(at)) {
            Some(seen) if !*seen => *seen = true,
            _ => judgement.wrong(*hit, true),
        }
    }
    for ((number, expect), found) in (1..).zip(expected).zip(found) {
        judgement.hits += u64::from(found);
        match expect {
            Expect::Must => {
                judgement.must += 1;
                if !found {
                    judgement.wrong(number, false);
                }
            }
            Expect::May => {
                judgement.may += 1;
                judgement.given += u64::from(found);
            }
            Expect::Not if found => judgement.wrong(number, true),
            Expect::Not => {}
        }
    }
    judgement
}

impl Judgement {
    fn wrong(&mut self, number: u32, found: bool) {
        let count = if found { &mut self.extra } else { &mut self.missing };
        *count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(number);
        }
    }

    /// For the sample.
    pub fn verdict(&self) -> Verdict {
        if self.missing == 0 && self.extra == 0 {
            return Verdict::Right;
        }
        let examples: Vec<String> = self.examples.iter().map(u32::to_string).collect();
        Verdict::Wrong(format!(
            "{} of {} hits missing, {} hits too many (such as message {})",
            self.missing,
            self.must,
            self.extra,
            examples.join(", ")
        ))
    }
}

/// Whether the answer to SORT (REVERSE DATE) has every message once, and those with a date without doubt in order: the latest first, of the
/// same second the first of the mailbox first, since "REVERSE only reverses a single criterion, and does not affect the implicit "sequence
/// number" sort criterion" (RFC 5256 §3). `dates` is by sequence number, in seconds.
pub fn sorted(dates: &[Option<i64>], answer: &[u32]) -> Verdict {
    if !each_once(dates.len(), answer) {
        return Verdict::Wrong(format!("{} numbers, not each of the {} messages once", answer.len(), dates.len()));
    }
    let dated = |number: &u32| dates.get(*number as usize - 1).copied().flatten().map(|date| (date, *number));
    let known: Vec<(i64, u32)> = answer.iter().filter_map(dated).collect();
    let wrong = known.windows(2).find(|pair| matches!(pair, [(a, n), (b, m)] if a < b || a == b && n > m));
    match wrong {
        Some([(_, first), (_, second)]) => Verdict::Wrong(format!("message {first} stands before message {second}")),
        _ => Verdict::Right,
    }
}

/// Whether the answer to THREAD has every message once. How they hang together is not judged: servers are compared.
pub fn threaded(messages: usize, answer: &[u32]) -> Verdict {
    match each_once(messages, answer) {
        true => Verdict::Right,
        false => Verdict::Wrong(format!("{} numbers, not each of the {messages} messages once", answer.len())),
    }
}

fn each_once(messages: usize, answer: &[u32]) -> bool {
    let mut sorted = answer.to_vec();
    sorted.sort_unstable();
    sorted.len() == messages && sorted.iter().zip(1..).all(|(number, expected)| *number == expected)
}

/// Whether the numbers of the EXPUNGE responses, in the order they came, take exactly the chosen messages (rising numbers of `1..=all`)
/// out of the mailbox: each response renumbers what follows (RFC 9051 §7.5.1).
pub fn expunged_exactly(all: u32, chosen: &[u32], responses: &[u32]) -> bool {
    let mut left = Left::new(all as usize);
    let mut gone: Vec<u32> = responses.iter().map_while(|number| left.take(*number as usize)).collect();
    gone.sort_unstable();
    responses.len() == chosen.len() && gone == chosen
}

/// The messages that are left, by their numbers now (a binary indexed tree: Fenwick, "A new data structure for cumulative frequency
/// tables", 1994): a fifth of a large mailbox would take too long otherwise.
struct Left {
    /// `sums[i]` counts the messages left among the `i & -i` that end with the `i`-th; entry 0 is not used.
    sums: Vec<usize>,
    count: usize,
}

impl Left {
    fn new(all: usize) -> Left {
        Left { sums: (0..=all).map(|at| at & at.wrapping_neg()).collect(), count: all }
    }

    /// Takes the message that has this number now out; gives the number that it had at first.
    fn take(&mut self, number: usize) -> Option<u32> {
        if number == 0 || number > self.count {
            return None;
        }
        self.count -= 1;
        let mut before = 0;
        let mut wanted = number;
        let mut step = self.sums.len().next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.sums.get(before + step).filter(|sum| **sum < wanted) {
                wanted -= sum;
                before += step;
            }
            step /= 2;
        }
        let first = before + 1;
        let mut at = first;
        while let Some(sum) = self.sums.get_mut(at) {
            *sum -= 1;
            at += at & at.wrapping_neg();
        }
        u32::try_from(first).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Expect, expunged_exactly, judge, sorted, threaded};
    use crate::random::Random;
    use crate::results::Verdict;

    #[test]
    fn hits() {
        use Expect::{May, Must, Not};
        let expected = [Must, Not, May, Must, May];
        assert_eq!(judge(&expected, &[4, 1]).verdict(), Verdict::Right);
        let more = judge(&expected, &[1, 3, 4]);
        assert_eq!((more.verdict(), more.hits, more.given, more.may), (Verdict::Right, 3, 1, 2));
        let wrong = judge(&expected, &[1, 1, 2, 9, 0]);
        assert_eq!((wrong.missing, wrong.extra), (1, 4));
        assert_eq!(
            wrong.verdict(),
            Verdict::Wrong("1 of 2 hits missing, 4 hits too many (such as message 1, 9, 0, 2, 4)".into())
        );
        assert_eq!(judge(&[], &[]).verdict(), Verdict::Right);
    }

    #[test]
    fn what_is_wanted_together() {
        use Expect::{May, Must, Not};
        assert_eq!([Must.max(May), May.max(Not), Must.min(May), Must.min(Not)], [Must, May, May, Not]);
        assert_eq!([Must, May, Not].map(Expect::not), [Not, May, Must]);
    }

    #[test]
    fn orders() {
        let dates = [Some(5), None, Some(9), Some(5)];
        for right in [[3, 1, 4, 2], [2, 3, 1, 4], [3, 2, 1, 4]] {
            assert_eq!(sorted(&dates, &right), Verdict::Right, "{right:?}");
        }
        let wrong = |answer: &[u32]| matches!(sorted(&dates, answer), Verdict::Wrong(_));
        assert!(wrong(&[1, 3, 4, 2]) && wrong(&[3, 4, 1, 2]), "order");
        assert!(
            wrong(&[3, 1, 4]) && wrong(&[3, 1, 4, 4]) && wrong(&[3, 1, 4, 2, 2]) && wrong(&[0, 3, 1, 4]),
            "each once"
        );
        assert_eq!(threaded(3, &[2, 3, 1]), Verdict::Right);
        assert!(matches!(threaded(3, &[2, 3, 2]), Verdict::Wrong(_)));
    }

    #[test]
    fn expunges_in_any_order() {
        assert!(expunged_exactly(5, &[2, 3, 5], &[2, 2, 3]), "rising");
        assert!(expunged_exactly(5, &[2, 3, 5], &[5, 3, 2]), "falling");
        assert!(!expunged_exactly(5, &[2, 3, 5], &[2, 3, 5]), "not renumbered");
        assert!(!expunged_exactly(5, &[2, 3, 5], &[2, 2]), "one is left");
        assert!(!expunged_exactly(5, &[2, 3], &[2, 2, 3]), "one too many");
        assert!(!expunged_exactly(5, &[2], &[0]) && !expunged_exactly(5, &[2], &[6]));
        assert!(expunged_exactly(0, &[], &[]));
    }

    #[test]
    fn expunges_as_by_a_list() {
        let mut random = Random::new(3);
        for all in 1..60 {
            let mut list: Vec<u32> = (1..=all).collect();
            let responses: Vec<u32> = (0..all / 2).map(|gone| random.below((all - gone) as usize) as u32 + 1).collect();
            let mut chosen: Vec<u32> = responses.iter().map(|number| list.remove(*number as usize - 1)).collect();
            chosen.sort_unstable();
            assert!(expunged_exactly(all, &chosen, &responses), "{all}: {responses:?}");
        }
    }
}
