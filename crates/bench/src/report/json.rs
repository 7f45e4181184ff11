//! The figures as JSON, for other programs.

use super::csv::verdict;
use super::findings::{Findings, Line};
use serde_json::{Map, Value, json};

/// Everything that was measured, with its statistics.
pub fn text(findings: &Findings) -> String {
    let suites: Vec<Value> = findings.suites().into_iter().map(|suite| suite_value(findings, suite)).collect();
    let value = json!({
        "run": findings.run,
        "ended": findings.ended,
        "servers": findings.servers,
        "limits": findings.limits,
        "suites": suites,
        "notes": findings.notes,
        "problems": findings.problems,
    });
    format!("{value:#}\n")
}

fn suite_value(findings: &Findings, suite: &str) -> Value {
    let lines: Vec<Value> = findings.lines.iter().filter(|line| line.suite == suite).map(line_value).collect();
    let standings: Vec<Value> = findings
        .standings(suite)
        .iter()
        .map(|standing| {
            json!({
                "server": standing.name,
                "tests": standing.tests,
                "first": standing.first,
                "wrong": standing.wrong,
                "failed": standing.failed,
                "times_best": standing.times_best,
            })
        })
        .collect();
    json!({ "suite": suite, "standings": standings, "tests": lines })
}

fn line_value(line: &Line) -> Value {
    let cells: Map<String, Value> = line
        .cells
        .iter()
        .map(|(server, cell)| {
            let mut value = json!({
                "values": cell.values,
                "faults": cell.faults.iter().map(verdict).collect::<Vec<_>>(),
                "times_best": line.times_best(server),
            });
            if let Some(found) = cell.statistics() {
                value["mean"] = json!(found.mean);
                value["deviation"] = json!(found.deviation);
                value["median"] = json!(found.median);
                value["min"] = json!(found.min);
                value["max"] = json!(found.max);
            }
            (server.clone(), value)
        })
        .collect();
    json!({
        "test": line.test,
        "size": line.size,
        "state": line.state,
        "parameters": line.parameters,
        "measure": line.measure,
        "unit": line.unit,
        "better": line.better,
        "servers": cells,
    })
}
