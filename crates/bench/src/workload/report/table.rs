//! The report as text, one line an operation.

use super::{Goal, Report, Row, Samples, Unit};
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![self.heading()];
        lines.extend(self.rows.iter().map(|row| self.line(row)));
        let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        writeln!(f, "{}", self.title)?;
        for line in &lines {
            let mut text = String::new();
            for (number, (cell, width)) in line.iter().zip(&widths).enumerate() {
                // Names and explanations to the left, figures to the right.
                let cell = if number == 0 || number + 1 == columns {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                };
                text.push_str(&cell);
                text.push_str("  ");
            }
            writeln!(f, "  {}", text.trim_end())?;
        }
        Ok(())
    }
}

impl Report {
    fn heading(&self) -> Vec<String> {
        let mut cells = vec!["operation".to_string()];
        for server in &self.servers {
            cells.push(server.clone());
            cells.push("(min-max)".to_string());
            cells.push("x limit".to_string());
        }
        cells.extend(["limit", "", "goal", "the limit is"].map(str::to_string));
        cells
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let mut cells = vec![row.name.clone()];
        for number in 0..self.servers.len() {
            match row.results.get(number).filter(|samples| !samples.is_empty()) {
                Some(result) => {
                    cells.push(shown(result.median(), row.unit));
                    cells.push(spread(result));
                    cells.push(row.ratio(number).map_or(String::new(), |ratio| format!("{ratio:.2}")));
                }
                None => cells.extend(["-".to_string(), String::new(), String::new()]),
            }
        }
        let (limit, what) = match &row.limit {
            Some((limit, what)) => (shown(limit.median(), row.unit), what.clone()),
            None => (String::new(), String::new()),
        };
        cells.push(limit);
        cells.push(row.unit.name().to_string());
        cells.push(goal(row));
        cells.push(what);
        cells
    }
}

fn goal(row: &Row) -> String {
    let wanted = match row.goal {
        Some(Goal::AtMost(bound)) => shown(bound, row.unit),
        Some(Goal::TimesLimit(bound)) => format!("{bound:.2} x"),
        None => return String::new(),
    };
    let word = match row.reached() {
        Some(true) => "reached",
        Some(false) => "MISSED",
        None => "",
    };
    format!("<= {wanted} {word}")
}

fn spread(samples: &Samples) -> String {
    let bound = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
    format!("({}-{})", bound(samples.min()), bound(samples.max()))
}

/// Three digits or more that mean something.
fn shown(value: f64, unit: Unit) -> String {
    let places = match value.abs() {
        _ if unit == Unit::Ratio => 2,
        small if small < 1.0 => 3,
        small if small < 10.0 => 2,
        middle if middle < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}
