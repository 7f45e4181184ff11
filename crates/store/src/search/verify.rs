//! Looking at the messages of which the index does not know enough: by one thread, or by several when there is much to look at.
//!
//! The entries of a batch are cut into as many runs as there are threads, so that neighbours, which lie in the same blocks, stay
//! together; what each run finds does not depend on the others, and what is reported is that of the first run that has it.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};

use model::{Error, ModSeq, Result};

use super::compile::{Answer, Node, Scope};
use super::plan::Plan;
use crate::view::Entry;
use crate::{Reader, View};

/// Threads of one search, at most.
const THREADS_MAX: usize = 4;
/// A thread is worth its beginning when it has so much to look at, octets.
const THREAD_COST_MIN: u64 = 512 << 10;

/// What a look at some entries found.
#[derive(Default)]
pub(super) struct Verified {
    /// Sequence numbers.
    pub(super) found: Vec<u32>,
    /// The highest modseq among them.
    pub(super) highest: Option<ModSeq>,
    /// The first damage that was met.
    pub(super) damage: Option<Error>,
}

/// Entries whose messages have to be read, and what that costs.
#[derive(Default)]
pub(super) struct Pending {
    entries: Vec<(Entry, u64)>,
    cost: u64,
}

impl Pending {
    /// Adds an entry, and what it costs to read it, about, in octets of body.
    pub(super) fn push(&mut self, entry: Entry, cost: u64) {
        self.entries.push((entry, cost));
        self.cost = self.cost.saturating_add(cost);
    }
}

/// Those who look: a reader for each thread.
pub(super) struct Verifier {
    reader: Reader,
    others: Vec<Reader>,
}

impl Verifier {
    pub(super) fn new(reader: Reader) -> Self {
        Verifier { reader, others: Vec::new() }
    }

    /// Looks at all that is pending, which is empty afterwards. Errors are those of the machine.
    pub(super) fn look(
        &mut self,
        pending: &mut Pending,
        root: &Node,
        plan: Option<&Plan>,
        now: i64,
        view: &View,
    ) -> Result<Verified> {
        let Pending { entries, cost } = std::mem::take(pending);
        let threads = usize::try_from(cost / THREAD_COST_MIN).unwrap_or(usize::MAX).clamp(1, threads());
        while self.others.len() + 1 < threads {
            self.others.push(Reader::new(Arc::clone(view.account())));
        }
        let share = cost / threads as u64;
        let mut rest = entries.as_slice();
        let mut next_run = || {
            let mut sum = 0;
            let end = rest.iter().position(|(_, cost)| {
                sum += cost;
                sum > share
            });
            let (run, behind) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, &[]));
            rest = behind;
            run
        };
        let runs: Vec<(&mut Reader, &[(Entry, u64)])> =
            self.others.iter_mut().take(threads - 1).map(|reader| (reader, next_run())).collect();
        let own = rest;
        let all = std::thread::scope(|scope| {
            let others: Vec<_> =
                runs.into_iter().map(|(reader, run)| scope.spawn(move || look(reader, run, root, plan, now))).collect();
            let own = look(&mut self.reader, own, root, plan, now);
            let joined =
                others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            joined.chain([own]).collect::<Result<Vec<Verified>>>()
        })?;
        let mut verified = Verified::default();
        for run in all {
            verified.found.extend(run.found);
            verified.highest = verified.highest.max(run.highest);
            verified.damage = verified.damage.or(run.damage);
        }
        Ok(verified)
    }
}

/// How many threads a search uses when it has much to look at.
fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX))
}

fn look(reader: &mut Reader, run: &[(Entry, u64)], root: &Node, plan: Option<&Plan>, now: i64) -> Result<Verified> {
    let mut verified = Verified::default();
    for (entry, _) in run {
        let mut scope = Scope::new(reader, *entry, now, plan);
        let answer = root.matches(&mut scope);
        if verified.damage.is_none() {
            verified.damage = scope.damage;
        }
        if answer? == Answer::Yes {
            verified.found.push(entry.seq.get());
            verified.highest = verified.highest.max(Some(entry.modseq));
        }
    }
    Ok(verified)
}
