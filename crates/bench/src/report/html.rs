//! The page: summary, a part for each suite, the machine, how to repeat it.
//!
//! One file with its style and script inside. Without the script everything is there but the hover box (a plain title takes its place)
//! and the button for the colours.

mod legend;
mod part;
mod plot;
mod scale;
mod summary;
mod text;

use super::findings::Findings;
use super::shown;
use crate::suite;
use text::escaped;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// The whole page.
pub fn page(findings: &Findings) -> String {
    let sizes = suite_sizes(findings);
    let title = "Mail servers, side by side";
    let mut body = format!(
        "<header><h1>{title}</h1><button id=\"theme\" type=\"button\">Dark / light</button></header>\n<main>\n"
    );
    body.push_str(&lead(findings, &sizes));
    body.push_str(&summary::section(findings));
    for name in findings.suites() {
        let about = suite::all().into_iter().find(|suite| suite.name() == name);
        body.push_str(&part::section(findings, name, about.as_deref()));
    }
    body.push_str(&machine(findings));
    body.push_str(&repeat(findings));
    body.push_str("</main>\n<div id=\"hover\" hidden></div>\n");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n{body}<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        legend::colours(&findings.names),
    )
}

/// Every plot as a picture that stands alone: the name of its file, and its text.
pub fn pictures(findings: &Findings) -> Vec<(String, String)> {
    let mut pictures = Vec::new();
    for suite in findings.suites() {
        for (number, text) in part::pictures(findings, suite).into_iter().enumerate() {
            pictures.push((format!("plot-{suite}-{}.svg", number + 1), text));
        }
    }
    pictures
}

/// What was run, in one paragraph, and whether it may be trusted.
fn lead(findings: &Findings, sizes: &[&str]) -> String {
    let run = &findings.run;
    let mut text = format!(
        "<p class=\"lead\">{} servers, {} suites{}, each test up to {} times. {} to {}.</p>\n",
        findings.servers.len(),
        findings.suites().len(),
        if sizes.is_empty() { String::new() } else { format!(", mailboxes {}", escaped(&sizes.join(", "))) },
        run.repeat,
        shown::instant(run.began),
        findings.ended.map_or("not finished".to_string(), shown::instant),
    );
    if run.quick {
        text.push_str(
            "<p class=\"warning\">This was a trial of the benchmark itself (--quick): its figures mean nothing.</p>\n",
        );
    }
    if findings.ended.is_none() {
        text.push_str("<p class=\"warning\">The run was cut short: these are the results until then.</p>\n");
    }
    text
}

fn suite_sizes(findings: &Findings) -> Vec<&str> {
    let mut sizes: Vec<&str> = Vec::new();
    for line in &findings.lines {
        if !line.size.is_empty() && !sizes.contains(&line.size.as_str()) {
            sizes.push(&line.size);
        }
    }
    sizes
}

/// The machine and its limits, the servers and their settings.
fn machine(findings: &Findings) -> String {
    let machine = &findings.run.machine;
    let mut text = String::from("<section id=\"machine\"><h2>Machine and servers</h2>\n");
    let rows = [
        ("Processor", format!("{}, {} in use", machine.processor, machine.processors)),
        ("Memory", shown::value(machine.memory_bytes as f64, crate::results::Unit::Bytes)),
        ("System", format!("{}, {}", machine.system, machine.kernel)),
        ("File system", machine.file_system.clone()),
    ];
    text.push_str("<div class=\"wide\"><table>\n");
    for (name, value) in rows {
        text.push_str(&format!("<tr><th>{name}</th><td>{}</td></tr>\n", escaped(&value)));
    }
    text.push_str("</table></div>\n");
    if !findings.limits.is_empty() {
        text.push_str("<h3>What the machine can do</h3>\n<div class=\"wide\"><table>\n<tr><th>Limit</th><th>Median</th><th>How it was measured</th></tr>\n");
        for limit in &findings.limits {
            let median = super::Statistics::of(&limit.values).map_or(f64::NAN, |found| found.median);
            let shown = shown::value(median, limit.unit);
            text.push_str(&format!(
                "<tr><td>{}</td><td class=\"number\">{shown}</td><td>{}</td></tr>\n",
                escaped(&limit.name),
                escaped(&limit.how)
            ));
        }
        text.push_str("</table></div>\n");
    }
    text.push_str("<h3>Servers</h3>\n");
    for server in &findings.servers {
        text.push_str(&format!(
            "<details><summary>{}{} <span class=\"quiet\">{}</span></summary><p>Format: {}. Durability: {}.</p><pre>{}</pre></details>\n",
            legend::mark(&findings.names, &server.name),
            escaped(&server.name),
            escaped(&server.version),
            escaped(if server.format.is_empty() { "not known" } else { &server.format }),
            escaped(if server.durability.is_empty() { "not known" } else { &server.durability }),
            escaped(&server.settings.join("\n")),
        ));
    }
    text.push_str("</section>\n");
    text
}

/// The command, the seed, and everything that was said along the way.
fn repeat(findings: &Findings) -> String {
    let run = &findings.run;
    let command: Vec<String> = run.command.iter().map(|word| text::shell(word)).collect();
    let mut text = format!(
        "<section id=\"repeat\"><h2>To repeat this</h2>\n<p>Benchmark version {}, seed {}.</p>\n<pre>{}</pre>\n\
         <p>The same figures are in <code>report.csv</code> and <code>report.json</code> beside this page, every single measurement in \
         <code>results.jsonl</code>.</p>\n",
        escaped(&run.version),
        run.seed,
        escaped(&command.join(" "))
    );
    let mut list = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            text.push_str(&format!("<h3>{title}</h3>\n<ul>\n"));
            items.iter().for_each(|item| text.push_str(&format!("<li>{item}</li>\n")));
            text.push_str("</ul>\n");
        }
    };
    let about = |server: &str, suite: &str, said: &str| {
        let who: Vec<&str> = [suite, server].into_iter().filter(|word| !word.is_empty()).collect();
        escaped(&if who.is_empty() { said.to_string() } else { format!("{}: {said}", who.join(", ")) })
    };
    list(
        "How things were done",
        findings.notes.iter().map(|note| about(&note.server, &note.suite, &note.text)).collect(),
    );
    list("What went wrong", findings.problems.iter().map(|one| about(&one.server, &one.suite, &one.text)).collect());
    text.push_str("</section>\n");
    text
}
