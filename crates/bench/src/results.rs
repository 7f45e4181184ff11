//! What a run found, as it is kept: one JSON record a line in `DIR/results.jsonl`, written as soon as it is known.
//!
//! Invariants:
//! - a file that ends anywhere is a good file of a shorter run: whatever kills the benchmark, the figures so far are there;
//! - a sample says everything that is needed to group it: suite, test, mailbox size, state, server, parameters;
//! - a wrong answer has its time kept and is marked as wrong; a test that a server cannot do is a record too, never a gap.

mod record;
mod recorder;

pub use record::{
    Better, End, Key, LIMIT, Limit, Machine, Note, Problem, Record, RunInfo, Sample, ServerInfo, State, Unit, Verdict,
};
pub use recorder::{FILE_NAME, Recorder, read};
