//! The figures as comma-separated values (RFC 4180), a line a cell.

use super::findings::Findings;
use super::shown;
use crate::results::Verdict;

const HEADER: &str = "suite,test,size,state,parameters,measure,unit,better,server,count,mean,deviation,median,min,max,verdict,values\r\n";

/// Everything that was measured.
pub fn text(findings: &Findings) -> String {
    let mut text = HEADER.to_string();
    for line in &findings.lines {
        for (server, cell) in &line.cells {
            let parameters: Vec<String> =
                line.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let figures = cell.statistics().map_or(vec![String::new(); 6], |found| {
                let mut figures = vec![found.count.to_string()];
                let values = [found.mean, found.deviation, found.median, found.min, found.max];
                figures.extend(values.map(|value| value.to_string()));
                figures
            });
            let values: Vec<String> = cell.values.iter().map(f64::to_string).collect();
            let mut fields = vec![
                line.suite.clone(),
                line.test.clone(),
                line.size.clone(),
                line.state.map_or("", shown::state).to_string(),
                parameters.join(" "),
                line.measure.clone(),
                name(&line.unit),
                name(&line.better),
                server.clone(),
            ];
            fields.extend(figures);
            fields.push(cell.faults.iter().map(verdict).collect::<Vec<_>>().join("; "));
            fields.push(values.join(" "));
            let fields: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
            text.push_str(&fields.join(","));
            text.push_str("\r\n");
        }
    }
    text
}

/// The name that the results file uses.
fn name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
}

/// One word, then what happened.
pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Right => "right".to_string(),
        Verdict::Wrong(why) => format!("wrong: {why}"),
        Verdict::Unsupported(why) => format!("not offered: {why}"),
        Verdict::Failed(why) => format!("failed: {why}"),
    }
}

/// RFC 4180 §2, 5 to 7.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{quoted, text};
    use crate::report::Findings;
    use crate::results::{Better, Key, Record, RunInfo, Sample, State, Unit, Verdict};

    #[test]
    fn a_line_a_cell() {
        let key = Key::new("s", "a, b", "x", "time").state(State::Cold).with("connections", 20);
        let sample =
            Sample { key, round: 0, value: Some(1.5), unit: Unit::Ms, better: Better::Lower, verdict: Verdict::Right };
        let text = text(&Findings::new(vec![Record::Run(RunInfo::default()), Record::Sample(sample)]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "s,\"a, b\",,cold,connections=20,time,ms,lower,x,1,1.5,0,1.5,1.5,1.5,,1.5");
        assert_eq!(lines[0].split(',').count(), 17);
    }

    #[test]
    fn quoting() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
        assert_eq!(quoted("plain"), "plain");
    }
}
