//! A load's figures as samples.

use super::tally::{OfKind, Tally};
use crate::error::Result;
use crate::results::{Better, Key, Recorder, Unit, Verdict};
use crate::suite::times::{ms, quantile};
use crate::usage::{Memory, Usage};
use std::time::Duration;

/// What one round on one server came to.
pub struct Figures {
    /// Commands and news.
    pub tally: Tally,
    /// Commands that were not answered even late.
    pub unanswered: usize,
    /// The time that counts.
    pub time: Duration,
    /// What the server's processes took in that time, where they are ours.
    pub server: Option<Usage>,
    /// Their memory at its end.
    pub memory: Option<Memory>,
    /// What the client took in that time.
    pub client: Usage,
}

/// The test that stands for all kinds of commands together.
const ALL: &str = "all";
/// The test of the idling connections.
const NEWS: &str = "IDLE";

impl Figures {
    /// Writes them all; `key` gives the key of a test and a measure.
    pub fn record(self, recorder: &mut Recorder, key: &dyn Fn(&str, &str) -> Key, round: usize) -> Result<()> {
        let verdict = self.verdict();
        let mut all = OfKind::default();
        for (kind, of_kind) in &self.tally.kinds {
            let own = of_kind_verdict(of_kind);
            commands(recorder, &|measure| key(kind.name(), measure), round, of_kind, self.time, own)?;
            all.answered += of_kind.answered;
            all.latencies.extend(&of_kind.latencies);
            all.failed += of_kind.failed;
            all.wrong += of_kind.wrong;
        }
        commands(recorder, &|measure| key(ALL, measure), round, &all, self.time, verdict)?;
        let news = OfKind { latencies: self.tally.news_latencies(), ..OfKind::default() };
        let missed = self.tally.unseen();
        let verdict = if missed == 0 {
            Verdict::Right
        } else {
            Verdict::Wrong(format!("{missed} messages were acknowledged that the idling connections were not told of"))
        };
        latencies(recorder, &|measure| key(NEWS, measure), round, &news.latencies, &verdict)?;
        let mut add = |measure, value, unit| {
            recorder.sample(key(ALL, measure), round, value, unit, Better::Lower, Verdict::Right)
        };
        add("closed", self.tally.closed as f64, Unit::Count)?;
        add("missed", missed as f64, Unit::Count)?;
        add("client_cpu", ms(self.client.cpu()), Unit::Ms)?;
        if let Some(memory) = self.memory {
            add("resident_memory", memory.resident as f64, Unit::Bytes)?;
            if let Some(share) = memory.proportional {
                add("proportional_memory", share as f64, Unit::Bytes)?;
            }
        }
        match self.server {
            Some(server) => server.record(recorder, &key(ALL, ""), round),
            None => Ok(()),
        }
    }

    /// Of the whole round.
    fn verdict(&self) -> Verdict {
        let (failed, wrong) = self.tally.failed_and_wrong();
        let counts = [
            (failed, "commands failed"),
            (wrong, "answers were wrong"),
            (self.tally.closed, "connections were closed"),
            (self.unanswered as u64, "commands were not answered"),
            (self.tally.unseen() as u64, "messages were not announced"),
        ];
        let told: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if told.is_empty() {
            return Verdict::Right;
        }
        let first = self.tally.trouble.as_ref().map(|text| format!("; first: {text}")).unwrap_or_default();
        Verdict::Wrong(format!("{}{first}", told.join(", ")))
    }
}

fn of_kind_verdict(of_kind: &OfKind) -> Verdict {
    match (of_kind.failed, of_kind.wrong) {
        (0, 0) => Verdict::Right,
        (failed, wrong) => Verdict::Wrong(format!("{failed} failed, {wrong} answers were wrong")),
    }
}

fn commands(
    recorder: &mut Recorder,
    key: &dyn Fn(&str) -> Key,
    round: usize,
    of_kind: &OfKind,
    time: Duration,
    verdict: Verdict,
) -> Result<()> {
    let rate = of_kind.answered as f64 / time.as_secs_f64().max(1e-9);
    recorder.sample(key("rate"), round, rate, Unit::PerSecond, Better::Higher, verdict.clone())?;
    for (measure, count) in [("failed", of_kind.failed), ("wrong", of_kind.wrong)] {
        recorder.sample(key(measure), round, count as f64, Unit::Count, Better::Lower, Verdict::Right)?;
    }
    latencies(recorder, key, round, &of_kind.latencies, &verdict)
}

fn latencies(
    recorder: &mut Recorder,
    key: &dyn Fn(&str) -> Key,
    round: usize,
    times: &[Duration],
    verdict: &Verdict,
) -> Result<()> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    for (measure, share) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
        if sorted.is_empty() {
            let none = Verdict::Failed("nothing was measured".into());
            recorder.missing(key(measure), round, none)?;
            continue;
        }
        let value = ms(quantile(&sorted, share));
        recorder.sample(key(measure), round, value, Unit::Ms, Better::Lower, verdict.clone())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Figures, Tally};
    use crate::results::{Key, Record, Recorder, Verdict, read};
    use crate::suite::mixed::script::Kind;
    use crate::suite::mixed::tally::Counting;
    use crate::usage::Usage;
    use std::time::{Duration, Instant};

    fn figures(tally: Tally) -> Figures {
        Figures {
            tally,
            unanswered: 0,
            time: Duration::from_secs(2),
            server: None,
            memory: None,
            client: Usage::default(),
        }
    }

    #[test]
    fn whatever_went_wrong_is_said() {
        assert_eq!(figures(Tally::new(&[])).verdict(), Verdict::Right);
        let mut tally = Tally::new(&[0]);
        tally.failed(Kind::Store, "NO");
        tally.appended(0, Instant::now());
        let Verdict::Wrong(why) = figures(tally).verdict() else { panic!("something was wrong") };
        assert_eq!(why, "1 commands failed, 1 messages were not announced; first: STORE: NO");
    }

    #[test]
    fn rates_are_of_the_counted_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut recorder = Recorder::create(folder.path()).expect("a new folder");
        recorder.add(&Record::Run(Default::default())).expect("written");
        let mut tally = Tally::new(&[]);
        tally.counting = Counting::Yes;
        for took in 1..=100 {
            tally.answered(Kind::List, Duration::from_millis(took));
        }
        let key = |test: &str, measure: &str| Key::new("mixed", test, "a", measure);
        figures(tally).record(&mut recorder, &key, 0).expect("written");
        let records = read(folder.path()).expect("whole");
        let value = |test: &str, measure: &str| {
            records.iter().find_map(|record| match record {
                Record::Sample(sample) if sample.key == key(test, measure) => sample.value,
                _ => None,
            })
        };
        assert_eq!((value("LIST", "rate"), value("all", "rate")), (Some(50.0), Some(50.0)));
        assert_eq!((value("LIST", "p99"), value("LIST", "max")), (Some(99.0), Some(100.0)));
        assert_eq!(value("IDLE", "p50"), None, "nobody was told of anything");
    }
}
