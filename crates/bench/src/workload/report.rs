//! Figures, and how they are shown: a table to read, JSON to keep.

mod table;

use serde_json::{Value, json};
use std::time::Duration;

/// Repeated measurements of one thing.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a measurement.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Adds a time, in milliseconds.
    pub fn push_time(&mut self, time: Duration) {
        self.push(time.as_secs_f64() * 1e3);
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The middle one; of an even number, the lower of the two.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
    }

    /// The smallest.
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The largest.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }
}

impl From<f64> for Samples {
    fn from(value: f64) -> Samples {
        Samples(vec![value])
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// 10^6 bytes.
    Megabytes,
    /// A quotient.
    Ratio,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Ms => "ms",
            Unit::Megabytes => "MB",
            Unit::Ratio => "",
        }
    }
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// The figure itself is at most this.
    AtMost(f64),
    /// The figure is at most this many times the limit.
    TimesLimit(f64),
}

/// One operation: what each server took, and what the machine would take.
#[derive(Clone, Debug)]
pub struct Row {
    /// The operation.
    pub name: String,
    /// Unit of all figures in the row.
    pub unit: Unit,
    /// By server, in the order of the report's servers; empty samples where it was not measured.
    pub results: Vec<Samples>,
    /// The physical limit, and what it is.
    pub limit: Option<(Samples, String)>,
    /// For the first server.
    pub goal: Option<Goal>,
}

impl Row {
    /// The result of a server over the limit.
    pub fn ratio(&self, server: usize) -> Option<f64> {
        let result = self.results.get(server).filter(|samples| !samples.is_empty())?;
        let (limit, _) = self.limit.as_ref()?;
        Some(result.median() / limit.median())
    }

    /// Whether the first server reaches the goal; `None` without a goal or a result.
    pub fn reached(&self) -> Option<bool> {
        let result = self.results.first().filter(|samples| !samples.is_empty())?;
        match self.goal? {
            Goal::AtMost(bound) => Some(result.median() <= bound),
            Goal::TimesLimit(bound) => Some(self.ratio(0)? <= bound),
        }
    }
}

/// The figures of one corpus.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was measured.
    pub title: String,
    /// Names of the servers.
    pub servers: Vec<String>,
    /// In the order they were measured.
    pub rows: Vec<Row>,
}

impl Report {
    /// Everything, for other programs.
    pub fn json(&self) -> Value {
        let samples = |samples: &Samples| json!({ "median": samples.median(), "all": samples.0 });
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let results: serde_json::Map<String, Value> = self
                    .servers
                    .iter()
                    .zip(&row.results)
                    .enumerate()
                    .filter(|(_, (_, result))| !result.is_empty())
                    .map(|(number, (name, result))| {
                        let mut value = samples(result);
                        value["over_limit"] = json!(row.ratio(number));
                        (name.clone(), value)
                    })
                    .collect();
                let limit = row.limit.as_ref().map(|(limit, what)| {
                    let mut value = samples(limit);
                    value["what"] = json!(what);
                    value
                });
                let unit = row.unit.name();
                json!({ "name": row.name, "unit": unit, "results": results, "limit": limit, "reached": row.reached() })
            })
            .collect();
        json!({ "title": self.title, "rows": rows })
    }
}

#[cfg(test)]
mod tests {
    use super::{Goal, Report, Row, Samples, Unit};

    #[test]
    fn medians() {
        let mut samples = Samples::default();
        for value in [5.0, 1.0, 3.0] {
            samples.push(value);
        }
        assert_eq!((samples.median(), samples.min(), samples.max()), (3.0, 1.0, 5.0));
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn goals_and_table() {
        let limit = Some((Samples::from(2.0), "one sync".to_string()));
        let row =
            |goal| Row { name: "STORE".into(), unit: Unit::Ms, results: vec![3.0.into()], limit: limit.clone(), goal };
        assert_eq!(row(None).reached(), None);
        assert_eq!(row(Some(Goal::AtMost(2.5))).reached(), Some(false));
        assert_eq!(row(Some(Goal::TimesLimit(1.5))).reached(), Some(true));
        let report =
            Report { title: "t".into(), servers: vec!["a".into()], rows: vec![row(Some(Goal::TimesLimit(1.5)))] };
        assert_eq!(report.json()["rows"][0]["results"]["a"]["over_limit"], 1.5);
        let table = report.to_string();
        assert!(table.contains("STORE") && table.contains("1.50") && table.contains("one sync"), "{table}");
    }
}
