//! Operations that change flags and remove messages.

use super::{Bench, Target};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::wire::{Answer, sequence_sets};
use crate::workload::report::Goal;

/// Set in turn, then taken away in turn, so that every round changes something.
const FLAGS: [&str; 3] = ["\\Flagged", "\\Answered", "\\Draft"];
/// EXPUNGE of a fifth: this many syncs' time, plus the responses.
const EXPUNGE_SYNCS: u32 = 5;
/// Each round of the larger EXPUNGE takes a fifth of what was there at first; one round does not count.
const FIFTHS: usize = 3;

impl Bench<'_> {
    /// STORE of one flag on a random 1 % and on all messages.
    pub(super) fn stores(&mut self) -> Result<()> {
        let rounds = self.plan.repeat;
        self.against_replay("STORE FLAGS on 1 %", 1, None, rounds, |target, random, round| {
            let chosen = random.choose(share(target.exists, 100), target.exists);
            let commands: Vec<String> =
                sequence_sets(&chosen).into_iter().map(|set| format!("STORE {set} {}", flag_change(round))).collect();
            target.connection()?.batch(&commands)
        })?;
        self.against_replay("STORE FLAGS on all", 1, None, rounds, |target, _, round| {
            target.connection()?.command(&format!("STORE 1:* {}", flag_change(round)))
        })
    }

    /// EXPUNGE of a random 1 % and 20 % of the messages.
    pub(super) fn expunges(&mut self) -> Result<()> {
        let at_first: Vec<u32> = self.targets.iter().map(|target| target.exists).collect();
        let all = at_first.first().copied().unwrap_or_default();
        let goal = Some(Goal::TimesLimit(1.0));
        // One more or less in a hundred hardly shrinks the mailbox.
        self.against_replay("EXPUNGE of 1 %", 1, None, self.plan.repeat.min(5), |target, random, _| {
            expunge(target, random, share(all, 100))
        })?;
        self.against_replay("EXPUNGE of 20 %", EXPUNGE_SYNCS, goal, FIFTHS, |target, random, _| {
            expunge(target, random, share(all, 5))
        })
    }
}

fn share(all: u32, part: usize) -> usize {
    (all as usize / part).max(1)
}

fn flag_change(round: usize) -> String {
    let flag = FLAGS.get(round % FLAGS.len()).copied().unwrap_or_default();
    let sign = if (round / FLAGS.len()).is_multiple_of(2) { '+' } else { '-' };
    format!("{sign}FLAGS ({flag})")
}

/// Marks random messages, which is not measured, and expunges them, which is.
fn expunge(target: &mut Target, random: &mut Random, count: usize) -> Result<Answer> {
    let chosen = random.choose(count, target.exists);
    let name = target.name.clone();
    let marks: Vec<String> =
        sequence_sets(&chosen).iter().map(|set| format!("STORE {set} +FLAGS.SILENT (\\Deleted)")).collect();
    let connection = target.connection()?;
    let recording = connection.record(None);
    for mark in &marks {
        connection.command(mark)?;
    }
    connection.record(recording);
    let answer = connection.command("EXPUNGE")?;
    if answer.expunges != chosen.len() as u64 {
        return Err(Error::new(format!("{name}: {} of {} messages expunged", answer.expunges, chosen.len())));
    }
    target.exists -= chosen.len() as u32;
    Ok(answer)
}
