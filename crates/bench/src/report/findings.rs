//! The records of a run, grouped: one line a test, one cell a server.

use super::statistics::{Statistics, geometric_mean};
use crate::results::{
    Better, Key, LIMIT, Limit, Note, Problem, Record, RunInfo, Sample, ServerInfo, State, Unit, Verdict,
};
use std::collections::BTreeMap;

/// Everything that a report shows.
pub struct Findings {
    /// The head of the run.
    pub run: RunInfo,
    /// In the order in which they took part.
    pub servers: Vec<ServerInfo>,
    /// What the machine itself can do.
    pub limits: Vec<Limit>,
    /// How things were done.
    pub notes: Vec<Note>,
    /// What went wrong.
    pub problems: Vec<Problem>,
    /// In the order in which they were first measured.
    pub lines: Vec<Line>,
    /// Every name that has a cell: servers first, then programs; the limit is not among them.
    pub names: Vec<String>,
    /// When it ended, in seconds since 1970; `None` for a run that was cut short.
    pub ended: Option<u64>,
}

/// One test at one size in one state with one set of parameters, and one thing that was counted.
pub struct Line {
    /// Name of the suite.
    pub suite: String,
    /// Name of the test.
    pub test: String,
    /// Name of the mailbox size; may be empty.
    pub size: String,
    /// Before the test.
    pub state: Option<State>,
    /// Others.
    pub parameters: BTreeMap<String, String>,
    /// What was counted.
    pub measure: String,
    /// Of all values.
    pub unit: Unit,
    /// Which way is good.
    pub better: Better,
    /// By server name.
    pub cells: BTreeMap<String, Cell>,
}

/// What one server did in one test.
#[derive(Default)]
pub struct Cell {
    /// By round.
    pub values: Vec<f64>,
    /// What was wrong, once each; empty when every answer was right.
    pub faults: Vec<Verdict>,
}

impl Cell {
    /// `None` without values.
    pub fn statistics(&self) -> Option<Statistics> {
        Statistics::of(&self.values)
    }

    /// Whether the values may be compared: there are some, and every answer was right.
    pub fn counts(&self) -> bool {
        !self.values.is_empty() && self.faults.is_empty()
    }
}

/// How a server did in a suite.
pub struct Standing {
    /// The server.
    pub name: String,
    /// Tests that it was measured in, with a right answer.
    pub tests: usize,
    /// Tests in which nobody was better.
    pub first: usize,
    /// Tests with a wrong answer.
    pub wrong: usize,
    /// Tests that it failed in.
    pub failed: usize,
    /// Geometric mean of its value over the best one's, turned so that 1 is the best and more is worse.
    pub times_best: Option<f64>,
}

impl Findings {
    /// Groups the records.
    pub fn new(records: Vec<Record>) -> Findings {
        let mut findings = Findings {
            run: RunInfo::default(),
            servers: Vec::new(),
            limits: Vec::new(),
            notes: Vec::new(),
            problems: Vec::new(),
            lines: Vec::new(),
            names: Vec::new(),
            ended: None,
        };
        for record in records {
            match record {
                Record::Run(run) => findings.run = run,
                Record::Server(server) => findings.servers.push(server),
                Record::Limit(limit) => findings.limits.push(limit),
                Record::Note(note) => findings.notes.push(note),
                Record::Problem(problem) => findings.problems.push(problem),
                Record::Sample(sample) => findings.add(sample),
                Record::End(end) => findings.ended = Some(end.ended),
            }
        }
        findings.names = findings.servers.iter().map(|server| server.name.clone()).collect();
        let found: Vec<String> = findings.lines.iter().flat_map(|line| line.cells.keys().cloned()).collect();
        for name in found {
            if name != LIMIT && !findings.names.contains(&name) {
                findings.names.push(name);
            }
        }
        findings
    }

    fn add(&mut self, sample: Sample) {
        let known = self.lines.iter_mut().position(|line| line.is_for(&sample.key));
        let number = known.unwrap_or_else(|| {
            self.lines.push(Line::new(&sample));
            self.lines.len() - 1
        });
        let Some(line) = self.lines.get_mut(number) else { return };
        // A missing value has no unit of its own: the first real one decides.
        if sample.value.is_some() && line.cells.values().all(|cell| cell.values.is_empty()) {
            (line.unit, line.better) = (sample.unit, sample.better);
        }
        let cell = line.cells.entry(sample.key.server).or_default();
        cell.values.extend(sample.value);
        if sample.verdict != Verdict::Right && !cell.faults.contains(&sample.verdict) {
            cell.faults.push(sample.verdict);
        }
    }

    /// Names of the suites, in the order in which they were run.
    pub fn suites(&self) -> Vec<&str> {
        let mut suites: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !suites.contains(&line.suite.as_str()) {
                suites.push(&line.suite);
            }
        }
        suites
    }

    /// The lines of a suite that decide who is faster.
    pub fn deciding(&self, suite: &str) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.suite == suite && line.decides())
    }

    /// Everyone's standing in a suite, best first; names without a cell are left out.
    pub fn standings(&self, suite: &str) -> Vec<Standing> {
        let mut standings: Vec<Standing> = self.names.iter().filter_map(|name| self.standing(suite, name)).collect();
        let key = |standing: &Standing| standing.times_best.unwrap_or(f64::INFINITY);
        standings.sort_by(|a, b| key(a).total_cmp(&key(b)));
        standings
    }

    fn standing(&self, suite: &str, name: &str) -> Option<Standing> {
        let mut standing = Standing { name: name.into(), tests: 0, first: 0, wrong: 0, failed: 0, times_best: None };
        let mut ratios = Vec::new();
        let mut there = false;
        for line in self.deciding(suite) {
            let Some(cell) = line.cells.get(name) else { continue };
            there = true;
            standing.wrong += usize::from(cell.faults.iter().any(|fault| matches!(fault, Verdict::Wrong(_))));
            standing.failed += usize::from(cell.faults.iter().any(|fault| matches!(fault, Verdict::Failed(_))));
            let Some(ratio) = line.times_best(name) else { continue };
            standing.tests += 1;
            standing.first += usize::from(ratio <= 1.0);
            ratios.push(ratio);
        }
        standing.times_best = geometric_mean(&ratios);
        there.then_some(standing)
    }
}

impl Line {
    fn new(sample: &Sample) -> Line {
        let key = &sample.key;
        Line {
            suite: key.suite.clone(),
            test: key.test.clone(),
            size: key.size.clone(),
            state: key.state,
            parameters: key.parameters.clone(),
            measure: key.measure.clone(),
            unit: sample.unit,
            better: sample.better,
            cells: BTreeMap::new(),
        }
    }

    fn is_for(&self, key: &Key) -> bool {
        self.suite == key.suite
            && self.test == key.test
            && self.size == key.size
            && self.state == key.state
            && self.parameters == key.parameters
            && self.measure == key.measure
    }

    /// Whether this line tells who is faster; what was read, written or used along the way does not.
    pub fn decides(&self) -> bool {
        ["time", "rate"].contains(&self.measure.as_str())
    }

    /// Test and parameters, for a reader.
    pub fn label(&self) -> String {
        let mut label = self.test.clone();
        for (name, value) in &self.parameters {
            label.push_str(&format!(", {name} {value}"));
        }
        label
    }

    /// The best median of those that may be compared, the limit left out.
    pub fn best(&self) -> Option<f64> {
        let medians = self
            .cells
            .iter()
            .filter(|(name, cell)| *name != LIMIT && cell.counts())
            .filter_map(|(_, cell)| Some(cell.statistics()?.median));
        match self.better {
            Better::Lower => medians.min_by(f64::total_cmp),
            Better::Higher => medians.max_by(f64::total_cmp),
        }
    }

    /// How many times worse than the best this name's median is; `None` when it may not be compared.
    pub fn times_best(&self, name: &str) -> Option<f64> {
        let median = self.cells.get(name).filter(|cell| cell.counts())?.statistics()?.median;
        let ratio = match self.better {
            Better::Lower => median / self.best()?,
            Better::Higher => self.best()? / median,
        };
        ratio.is_finite().then_some(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::Findings;
    use crate::results::{Better, Key, LIMIT, Record, RunInfo, Sample, ServerInfo, Unit, Verdict};

    fn sample(server: &str, test: &str, value: Option<f64>, verdict: Verdict) -> Record {
        let key = Key::new("s", test, server, "time");
        Record::Sample(Sample { key, round: 0, value, unit: Unit::Ms, better: Better::Lower, verdict })
    }

    fn findings() -> Findings {
        let server = |name: &str| Record::Server(ServerInfo { name: name.into(), ..ServerInfo::default() });
        Findings::new(vec![
            Record::Run(RunInfo::default()),
            server("a"),
            server("b"),
            sample("b", "x", Some(8.0), Verdict::Right),
            sample("a", "x", Some(1.0), Verdict::Right),
            sample("a", "x", Some(3.0), Verdict::Right),
            sample(LIMIT, "x", Some(0.5), Verdict::Right),
            sample("a", "y", Some(4.0), Verdict::Right),
            sample("b", "y", Some(1.0), Verdict::Wrong("2 hits missing".into())),
            sample("c", "z", None, Verdict::Failed("gone".into())),
        ])
    }

    #[test]
    fn grouped_in_the_order_of_the_run() {
        let findings = findings();
        assert_eq!(findings.names, ["a", "b", "c"]);
        let tests: Vec<&str> = findings.lines.iter().map(|line| line.test.as_str()).collect();
        assert_eq!(tests, ["x", "y", "z"]);
        assert_eq!(findings.lines[0].cells["a"].values, [1.0, 3.0]);
    }

    #[test]
    fn wrong_answers_and_the_limit_win_nothing() {
        let findings = findings();
        assert_eq!(findings.lines[0].best(), Some(2.0));
        assert_eq!(findings.lines[1].best(), Some(4.0), "a fast wrong answer is not the best");
        let standings = findings.standings("s");
        let of = |name: &str| standings.iter().find(|standing| standing.name == name).expect("takes part");
        assert_eq!((of("a").tests, of("a").first, of("a").times_best), (2, 2, Some(1.0)));
        assert_eq!((of("b").tests, of("b").wrong, of("b").times_best), (1, 1, Some(4.0)));
        assert_eq!((of("c").failed, of("c").times_best), (1, None));
        assert_eq!(standings.first().map(|best| best.name.as_str()), Some("a"));
    }
}
