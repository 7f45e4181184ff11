//! The answer of SEARCH, SORT and ESEARCH, in pieces (RFC 3501 §7.2.5, RFC 5256 §4; RFC 9051 §7.3.4, RFC 5267 §3, RFC 7377 §2.1).

use imap_proto::PartialRange;
use imap_proto::command::SearchReturn;
use imap_proto::encode;
use model::{ModSeq, NumSet, SeqNum};
use store::View;

use crate::Output;
use crate::imap::cmd::fetch::partial;

/// What was found: sequence numbers of a view.
pub(crate) struct Found {
    /// All of them.
    pub seqs: NumSet,
    /// The same in the order of a SORT; `None` for the order of the mailbox.
    pub order: Option<Vec<u32>>,
    /// The highest modseq among them, when the client wants to know (RFC 7162 §3.1.5).
    pub highest: Option<ModSeq>,
}

/// Which response is the answer.
pub(crate) enum Form<'a> {
    /// `* SEARCH` or `* SORT`.
    Plain(&'static str),
    /// `* ESEARCH`, behind the correlator: `(TAG "a")`.
    Extended(&'a [u8]),
}

/// An answer of which the long list is still to be written.
pub(crate) struct Answer {
    /// The ranges of the list, the next one last.
    rest: Vec<(u32, u32)>,
    /// Numbers one by one and with spaces, not a set.
    plain: bool,
    any_written: bool,
    tail: Vec<u8>,
}

impl Found {
    /// The numbers of some of the answer, as ranges in its order; runs of rising neighbours are one (RFC 5267 §3.2).
    fn ranges(&self, view: &View, uid: bool) -> Vec<(u32, u32)> {
        match &self.order {
            None if uid => view.uids_of(&self.seqs).ranges().to_vec(),
            None => self.seqs.ranges().to_vec(),
            Some(order) => runs(order.iter().map(|seq| number(view, *seq, uid))),
        }
    }

    /// A page of the answer (RFC 9394 §3.1, RFC 5267 §4.4).
    fn page(&self, range: PartialRange) -> Found {
        let Some(order) = &self.order else {
            return Found { seqs: partial(&self.seqs, range), order: None, highest: self.highest };
        };
        // Positions as a set of numbers from 1.
        let positions = match u32::try_from(order.len()) {
            Ok(count) if count > 0 => partial(&NumSet::range(1, count), range),
            _ => NumSet::new(),
        };
        let at = |position: u32| order.get(position as usize - 1).copied();
        let page: Vec<u32> = positions.iter().filter_map(at).collect();
        Found { seqs: page.iter().copied().collect(), order: Some(page), highest: self.highest }
    }

    /// The first and the last in order: RFC 5267 §3.1 has "the lowest sorted message" and the highest for MIN and MAX.
    fn ends(&self) -> (Option<u32>, Option<u32>) {
        match &self.order {
            None => (self.seqs.first(), self.seqs.last()),
            Some(order) => (order.first().copied(), order.last().copied()),
        }
    }

    /// What SAVE keeps (the tables of RFC 5182 §2.4 and RFC 9394 §3.2).
    pub fn saved(&self, returns: &SearchReturn) -> NumSet {
        let page = returns.partial.map(|range| self.page(range).seqs);
        let some = returns.min || returns.max || page.is_some();
        if returns.all || returns.count || !some {
            return self.seqs.clone();
        }
        let (min, max) = self.ends();
        let mut kept = page.unwrap_or_default();
        kept.extend(min.filter(|_| returns.min).into_iter().chain(max.filter(|_| returns.max)));
        kept
    }

    /// The MODSEQ of an answer: the highest of all that match; of those named when only MIN or MAX were asked for (RFC 7162 §3.1.10).
    fn reported_modseq(&self, view: &View, returns: &SearchReturn) -> Option<ModSeq> {
        if self.highest.is_none() || returns.all || returns.count || returns.partial.is_some() {
            return self.highest;
        }
        if !(returns.min || returns.max) {
            return self.highest;
        }
        let modseq = |seq: Option<u32>| view.entry(SeqNum::new(seq?)?).map(|entry| entry.modseq);
        let (min, max) = self.ends();
        modseq(min.filter(|_| returns.min)).max(modseq(max.filter(|_| returns.max)))
    }
}

/// A sequence number as the client wants it.
pub(crate) fn number(view: &View, seq: u32, uid: bool) -> u32 {
    if !uid {
        return seq;
    }
    SeqNum::new(seq).and_then(|seq| view.entry(seq)).map_or(0, |entry| entry.uid.get())
}

/// Numbers as ranges that rise by one each.
pub(crate) fn runs(numbers: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
}

impl Answer {
    /// Writes all of the answer but its long list.
    pub fn begin(
        found: &Found,
        view: &View,
        (uid, returns): (bool, &SearchReturn),
        form: &Form<'_>,
        out: &mut Output,
    ) -> Self {
        let correlator = match form {
            Form::Plain(name) => {
                out.push_fmt(format_args!("* {name}"));
                // RFC 7162 §3.1.5, §3.1.9: behind a result that is not empty.
                let tail = found.highest.map_or_else(|| "\r\n".to_owned(), |modseq| format!(" (MODSEQ {modseq})\r\n"));
                return Answer::new(found.ranges(view, uid), true, tail.as_bytes());
            }
            Form::Extended(correlator) => correlator,
        };
        out.push(b"* ESEARCH ");
        out.push(correlator);
        if uid {
            out.push(b" UID");
        }
        let (min, max) = found.ends();
        for (name, wanted, seq) in [("MIN", returns.min, min), ("MAX", returns.max, max)] {
            if let (true, Some(seq)) = (wanted, seq) {
                out.push_fmt(format_args!(" {name} {}", number(view, seq, uid)));
            }
        }
        if returns.count {
            out.push_fmt(format_args!(" COUNT {}", found.seqs.len()));
        }
        if let Some(modseq) = found.reported_modseq(view, returns) {
            out.push_fmt(format_args!(" MODSEQ {modseq}"));
        }
        // RFC 9394 §3.1: PARTIAL and ALL do not stand together.
        if let Some(range) = returns.partial {
            let page = found.page(range);
            let range = match range {
                PartialRange::FromFirst(a, b) => format!("{a}:{b}"),
                PartialRange::FromLast(a, b) => format!("-{a}:-{b}"),
            };
            if page.seqs.is_empty() {
                out.push_fmt(format_args!(" PARTIAL ({range} NIL)\r\n"));
                return Answer::nothing();
            }
            out.push_fmt(format_args!(" PARTIAL ({range}"));
            return Answer::new(page.ranges(view, uid), false, b")\r\n");
        }
        if returns.all && !found.seqs.is_empty() {
            out.push(b" ALL");
            return Answer::new(found.ranges(view, uid), false, b"\r\n");
        }
        out.push(b"\r\n");
        Answer::nothing()
    }

    /// Nothing more is to be said.
    pub fn nothing() -> Self {
        Answer::new(Vec::new(), false, b"")
    }

    fn new(mut rest: Vec<(u32, u32)>, plain: bool, tail: &[u8]) -> Self {
        rest.reverse();
        Answer { rest, plain, any_written: false, tail: tail.to_vec() }
    }

    /// Writes until the output is full; true when all is said.
    pub fn pull(&mut self, out: &mut Output) -> bool {
        while let Some((first, last)) = self.rest.pop() {
            if out.is_full() {
                self.rest.push((first, last));
                return false;
            }
            let bytes = out.bytes_mut();
            if self.plain {
                bytes.push(b' ');
                encode::number(bytes, u64::from(first));
                if first < last {
                    self.rest.push((first + 1, last));
                }
            } else {
                bytes.push(if self.any_written { b',' } else { b' ' });
                range(bytes, first, last);
            }
            self.any_written = true;
        }
        out.push(&std::mem::take(&mut self.tail));
        true
    }
}

/// `4` or `4:7`
fn range(out: &mut Vec<u8>, first: u32, last: u32) {
    encode::number(out, u64::from(first));
    if first < last {
        out.push(b':');
        encode::number(out, u64::from(last));
    }
}

/// Ranges as a sequence set.
pub(crate) fn set(out: &mut Vec<u8>, ranges: &[(u32, u32)]) {
    for (n, (first, last)) in ranges.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        range(out, *first, *last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(order: Option<Vec<u32>>) -> Found {
        Found { seqs: [2, 5, 9].into_iter().collect(), order, highest: None }
    }

    #[test]
    fn what_is_saved_depends_on_what_is_returned() {
        let returns = || SearchReturn { save: true, ..SearchReturn::default() };
        let keeps = |returns| found(None).saved(&returns).to_string();
        // The table of RFC 5182 §2.4.
        assert_eq!(keeps(returns()), "2,5,9");
        assert_eq!(keeps(SearchReturn { min: true, ..returns() }), "2");
        assert_eq!(keeps(SearchReturn { max: true, ..returns() }), "9");
        assert_eq!(keeps(SearchReturn { min: true, max: true, ..returns() }), "2,9");
        assert_eq!(keeps(SearchReturn { min: true, count: true, ..returns() }), "2,5,9");
        assert_eq!(keeps(SearchReturn { max: true, all: true, ..returns() }), "2,5,9");
        // The table of RFC 9394 §3.2.
        let second = std::num::NonZeroU32::new(2).unwrap();
        let returns = || SearchReturn {
            save: true,
            partial: Some(PartialRange::FromFirst(second, second)),
            ..SearchReturn::default()
        };
        assert_eq!(keeps(returns()), "5");
        assert_eq!(keeps(SearchReturn { min: true, max: true, ..returns() }), "2,5,9");
        assert_eq!(keeps(SearchReturn { count: true, ..returns() }), "2,5,9");
        // In the order of a SORT.
        let keeps = |returns| found(Some(vec![9, 2, 5])).saved(&returns).to_string();
        assert_eq!(keeps(returns()), "2");
        assert_eq!(keeps(SearchReturn { min: true, partial: None, ..returns() }), "9");
        assert_eq!(keeps(SearchReturn { max: true, partial: None, ..returns() }), "5");
    }

    #[test]
    fn sorted_numbers_are_ranges_only_where_they_rise() {
        let written = |numbers: &[u32]| {
            let mut out = Vec::new();
            set(&mut out, &runs(numbers.iter().copied()));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&[10, 11, 12]), "10:12");
        assert_eq!(written(&[12, 11, 10]), "12,11,10");
        assert_eq!(written(&[5, 3, 4, 1, 2]), "5,3:4,1:2");
        assert_eq!(written(&[u32::MAX, 1]), "4294967295,1");
        assert_eq!(written(&[]), "");
    }
}
