//! The part of the page for one suite: where it comes from, plots, tables.

use super::legend;
use super::plot;
use super::text::escaped;
use crate::report::csv::verdict;
use crate::report::findings::{Cell, Findings, Line};
use crate::report::shown;
use crate::results::{LIMIT, Verdict};
use crate::suite::Suite;

/// The whole part.
pub fn section(findings: &Findings, suite: &str, about: Option<&dyn Suite>) -> String {
    let lines: Vec<&Line> = findings.lines.iter().filter(|line| line.suite == suite).collect();
    let names = taking_part(findings, &lines);
    let mut text = format!("<section id=\"{0}\"><h2>{0}</h2>\n", escaped(suite));
    if let Some(about) = about {
        text.push_str(&format!(
            "<p>{}</p>\n<p class=\"quiet\">Source: {}</p>\n",
            escaped(about.about()),
            escaped(about.source())
        ));
    }
    text.push_str(&legend::legend(&findings.names, &names));
    for group in groups(&lines, |line| (line.size.clone(), line.measure.clone())) {
        text.push_str(&format!("<h3>{}</h3>\n", escaped(&title(&group))));
        let states = groups(&group, |line| line.state);
        text.push_str("<div class=\"plots\">\n");
        for lines in states.iter().filter(|lines| lines.iter().any(|line| line.decides())) {
            text.extend(plot::figures(findings, &names, lines).iter().map(plot::Plot::figure));
        }
        text.push_str("</div>\n");
        for lines in states {
            text.push_str(&table(findings, &names, &lines));
        }
    }
    text.push_str(&faults(&lines));
    text.push_str("</section>\n");
    text
}

/// The plots of a suite as pictures that stand alone.
pub fn pictures(findings: &Findings, suite: &str) -> Vec<String> {
    let lines: Vec<&Line> = findings.deciding(suite).collect();
    let names = taking_part(findings, &lines);
    let groups = groups(&lines, |line| (line.size.clone(), line.measure.clone(), line.state));
    let plots = groups.iter().flat_map(|lines| plot::figures(findings, &names, lines));
    plots.map(|plot| plot.picture(findings, &names)).collect()
}

/// Everyone who has a cell in one of the lines.
fn taking_part<'f>(findings: &'f Findings, lines: &[&Line]) -> Vec<&'f str> {
    let names = findings.names.iter().map(String::as_str);
    names.filter(|name| lines.iter().any(|line| line.cells.contains_key(*name))).collect()
}

/// What was counted, and at which size.
fn title(lines: &[&Line]) -> String {
    let Some(line) = lines.first() else { return String::new() };
    let measure = shown::measure(&line.measure);
    if line.size.is_empty() { measure } else { format!("{measure}, {}", line.size) }
}

/// The lines that have a key in common, in the order in which the keys first came.
fn groups<'f, K: PartialEq>(lines: &[&'f Line], key: impl Fn(&Line) -> K) -> Vec<Vec<&'f Line>> {
    let mut groups: Vec<(K, Vec<&'f Line>)> = Vec::new();
    for line in lines {
        let key = key(line);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(line),
            None => groups.push((key, vec![line])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Mean and standard deviation as in the papers, the median below; the best in bold.
fn table(findings: &Findings, names: &[&str], lines: &[&Line]) -> String {
    let limited = lines.iter().any(|line| line.cells.contains_key(LIMIT));
    let state = lines.first().and_then(|line| line.state).map_or("", shown::state);
    let mut text = format!("<div class=\"wide\"><table>\n<tr><th>Test {state}</th>");
    for name in names {
        text.push_str(&format!("<th>{}{}</th>", legend::mark(&findings.names, name), escaped(name)));
    }
    if limited {
        text.push_str("<th>Limit</th>");
    }
    text.push_str("</tr>\n");
    for line in lines {
        text.push_str(&format!("<tr><th>{}</th>", escaped(&line.label())));
        for name in names {
            text.push_str(&line.cells.get(*name).map_or("<td>–</td>".to_string(), |cell| field(line, name, cell)));
        }
        if limited {
            let limit = line.cells.get(LIMIT).map_or("<td>–</td>".to_string(), |cell| field(line, LIMIT, cell));
            text.push_str(&limit);
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    text
}

fn field(line: &Line, name: &str, cell: &Cell) -> String {
    let mut inside = match cell.statistics() {
        Some(found) if found.count > 1 => format!(
            "{} ± {}<br><span class=\"quiet\">median {}</span>",
            shown::value(found.mean, line.unit),
            shown::value(found.deviation, line.unit),
            shown::value(found.median, line.unit)
        ),
        Some(found) => shown::value(found.mean, line.unit),
        None => String::new(),
    };
    if name != LIMIT && line.decides() && line.times_best(name) == Some(1.0) {
        inside = format!("<strong>{inside}</strong>");
    }
    for fault in &cell.faults {
        let word = match fault {
            Verdict::Right => continue,
            Verdict::Wrong(_) => "wrong",
            Verdict::Unsupported(_) => "not offered",
            Verdict::Failed(_) => "failed",
        };
        let class = if word == "not offered" { "quiet" } else { "fault" };
        let space = if inside.is_empty() { "" } else { "<br>" };
        inside
            .push_str(&format!("{space}<span class=\"{class}\" title=\"{}\">{word}</span>", escaped(&verdict(fault))));
    }
    format!("<td class=\"number\">{inside}</td>")
}

/// Every wrong or failed answer with its reason.
fn faults(lines: &[&Line]) -> String {
    let mut items: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        for (name, cell) in &line.cells {
            for fault in cell.faults.iter().filter(|fault| !matches!(fault, Verdict::Unsupported(_))) {
                let what = format!("{name}: {}", verdict(fault));
                let place = [line.label(), line.size.clone()].join(" ").trim().to_string();
                match items.iter_mut().find(|(known, _)| *known == what) {
                    Some((_, places)) if places.contains(&place) => {}
                    Some((_, places)) => places.push(place),
                    None => items.push((what, vec![place])),
                }
            }
        }
    }
    if items.is_empty() {
        return String::new();
    }
    let mut text = String::from("<h3>Wrong answers and failures</h3>\n<ul>\n");
    for (what, places) in items {
        text.push_str(&format!(
            "<li>{} <span class=\"quiet\">({})</span></li>\n",
            escaped(&what),
            escaped(&places.join("; "))
        ));
    }
    text.push_str("</ul>\n");
    text
}
