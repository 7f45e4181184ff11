//! The records of a run.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of the file. The first is always [`Record::Run`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// What was asked for, and on what machine.
    Run(RunInfo),
    /// A server that takes part.
    Server(ServerInfo),
    /// What the machine itself can do.
    Limit(Limit),
    /// One measured value.
    Sample(Sample),
    /// What a reader of the figures has to know.
    Note(Note),
    /// Something that went wrong; the run went on where it could.
    Problem(Problem),
    /// The run came to its end.
    End(End),
}

/// The head of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The command that repeats this run.
    pub command: Vec<String>,
    /// Version of the benchmark.
    pub version: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    pub began: u64,
    /// Where it ran.
    pub machine: Machine,
    /// For the corpus and all choices of messages.
    pub seed: u64,
    /// How often each test is measured.
    pub repeat: usize,
    /// Only a trial of the benchmark itself: its figures mean nothing.
    pub quick: bool,
}

/// The machine, for the reader.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor (proc(5), cpuinfo).
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Distribution (os-release(5), `PRETTY_NAME`).
    pub system: String,
    /// Type and mount options of the file system that was measured.
    pub file_system: String,
}

/// A server that takes part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name in every other record, such as `dovecot-mdbox`.
    pub name: String,
    /// Product and version, as it says itself.
    pub version: String,
    /// Where messages live: `mbox`, `Maildir`, `sdbox`, ...; empty when unknown.
    pub format: String,
    /// What it does before it acknowledges, in words: which setting, which system call.
    pub durability: String,
    /// The settings that differ from the product's defaults, as written in its configuration.
    pub settings: Vec<String>,
}

/// What the machine itself can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Such as `sequential read`.
    pub name: String,
    /// How it was measured.
    pub how: String,
    /// Of all values.
    pub unit: Unit,
    /// One a repetition.
    pub values: Vec<f64>,
}

/// What a sample is a sample of. Samples with equal keys belong together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Name of the suite.
    pub suite: String,
    /// Name of the test within the suite: `headers`, `expunge 1 %`.
    pub test: String,
    /// Name of the mailbox size or of the corpus file; empty where none matters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub size: String,
    /// Cold or warm; `None` where it makes no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Other parameters, such as `connections` = `20`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Name of the server, or of the program; `limit` for the machine's own limit of this very test.
    pub server: String,
    /// What is counted: one test may have several, such as wall time and bytes written.
    pub measure: String,
}

/// The server's name in a [`Key`] that stands for the physical limit of the same work.
pub const LIMIT: &str = "limit";

/// Before the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The server was just started and its files are not in the page cache, as far as the machine permits.
    Cold,
    /// The same was done before.
    Warm,
}

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Of what.
    #[serde(flatten)]
    pub key: Key,
    /// Counted from 0.
    pub round: usize,
    /// In [`Sample::unit`]; absent when there is nothing to compare (see the verdict).
    pub value: Option<f64>,
    /// Of the value.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
    /// Whether the answer was right.
    pub verdict: Verdict,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Operations (messages, commands, syncs) a second.
    PerSecond,
    /// A plain number.
    Count,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Times, bytes.
    Lower,
    /// Rates.
    Higher,
}

/// Whether the answer was right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// As it should be, or nothing to check.
    Right,
    /// The server answered, and wrongly: in what way.
    Wrong(String),
    /// The server does not offer this: what it said.
    Unsupported(String),
    /// The server failed: what happened.
    Failed(String),
}

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Which server; empty when it is not about one.
    pub server: String,
    /// Which suite; empty when it is not about one.
    pub suite: String,
    /// For a person to read.
    pub text: String,
}

/// What a reader of the figures has to know: how cold was made, how a mailbox was filled. Nothing went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Which suite; empty when it is about the whole run.
    pub suite: String,
    /// Which server; empty when it is about all of them.
    pub server: String,
    /// For a person to read.
    pub text: String,
}

/// The last record of a whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub ended: u64,
}

impl Key {
    /// A key without size, state and parameters.
    pub fn new(suite: &str, test: &str, server: &str, measure: &str) -> Key {
        Key {
            suite: suite.into(),
            test: test.into(),
            size: String::new(),
            state: None,
            parameters: BTreeMap::new(),
            server: server.into(),
            measure: measure.into(),
        }
    }

    /// With the name of the mailbox size.
    pub fn size(mut self, size: &str) -> Key {
        self.size = size.into();
        self
    }

    /// With the state before the test.
    pub fn state(mut self, state: State) -> Key {
        self.state = Some(state);
        self
    }

    /// With one more parameter.
    pub fn with(mut self, name: &str, value: impl ToString) -> Key {
        self.parameters.insert(name.into(), value.to_string());
        self
    }
}
