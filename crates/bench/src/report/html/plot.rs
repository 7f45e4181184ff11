//! Plots as SVG: marks on a logarithmic axis, with error bars of one standard deviation.
//!
//! A bar would have to begin at zero, which a logarithmic axis does not have; so each value is a mark at the end of a thin line. Every
//! server has a lane of its own, so that marks do not cover each other.

use super::legend;
use super::scale::Scale;
use super::text::escaped;
use crate::report::findings::{Cell, Findings, Line};
use crate::report::shown;
use crate::results::{Better, LIMIT};
use std::fmt::Write;

const WIDTH: f64 = 520.0;
const LEFT: f64 = 12.0;
const RIGHT: f64 = 508.0;
const LANE: f64 = 13.0;
const LABEL: f64 = 20.0;
const AXIS: f64 = 34.0;
/// A parameter with so many numeric values or more makes a curve.
const CURVE_POINTS: usize = 3;
const CURVE_HEIGHT: f64 = 300.0;
/// Names side by side in a picture that stands alone.
const LEGEND_COLUMNS: usize = 4;
const LEGEND_ROW: f64 = 18.0;
/// The parameter that curves run over.
const ALONG: &str = "connections";

/// One plot.
pub struct Plot {
    caption: String,
    height: f64,
    inside: String,
}

impl Plot {
    /// For the page.
    pub fn figure(&self) -> String {
        let caption = escaped(&self.caption);
        format!(
            "<figure><figcaption>{caption}</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{caption}\">\n{}</svg></figure>\n",
            self.height, self.inside
        )
    }

    /// A picture that stands alone, with its caption and the names of the marks.
    pub fn picture(&self, findings: &Findings, names: &[&str]) -> String {
        let rows = names.len().div_ceil(LEGEND_COLUMNS);
        let head = 26.0 + LEGEND_ROW * rows as f64;
        let mut legend = format!("<text class=\"label\" x=\"{LEFT}\" y=\"18\">{}</text>\n", escaped(&self.caption));
        for (number, name) in names.iter().enumerate() {
            let x = LEFT + 8.0 + (number % LEGEND_COLUMNS) as f64 * (WIDTH / LEGEND_COLUMNS as f64);
            let y = 34.0 + LEGEND_ROW * (number / LEGEND_COLUMNS) as f64;
            let place = legend::place(&findings.names, name);
            let _ = writeln!(
                legend,
                "<path class=\"s{place}\" transform=\"translate({x:.1} {y:.1})\" d=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                legend::shape(place),
                x + 10.0,
                y + 4.0,
                escaped(name)
            );
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" width=\"{WIDTH}\">\n<style>\n{}{}</style>\n\
             <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n{legend}<g transform=\"translate(0 {head})\">\n{}</g>\n</svg>\n",
            self.height + head,
            super::STYLE,
            legend::colours(&findings.names),
            self.inside
        )
    }
}

/// Plots of lines that have unit and measure in common: curves where there is something to run over, marks for the rest.
pub fn figures(findings: &Findings, names: &[&str], lines: &[&Line]) -> Vec<Plot> {
    let mut figures = Vec::new();
    let mut rest: Vec<&Line> = Vec::new();
    let mut families: Vec<Vec<&Line>> = Vec::new();
    for line in lines {
        match families.iter_mut().find(|family| family.first().is_some_and(|other| same_but_along(other, line))) {
            Some(family) => family.push(line),
            None => families.push(vec![line]),
        }
    }
    for family in families {
        let numeric = family.iter().all(|line| along(line).is_some());
        if numeric && family.len() >= CURVE_POINTS {
            figures.extend(curve(findings, names, &family));
        } else {
            rest.extend(family);
        }
    }
    figures.extend(marks(findings, names, &rest));
    figures
}

fn along(line: &Line) -> Option<f64> {
    line.parameters.get(ALONG)?.parse().ok()
}

fn same_but_along(one: &Line, other: &Line) -> bool {
    let others = |line: &Line| {
        let mut parameters = line.parameters.clone();
        parameters.remove(ALONG);
        parameters
    };
    one.test == other.test && one.unit == other.unit && others(one) == others(other)
}

fn way(better: Better) -> &'static str {
    match better {
        Better::Lower => "less is better",
        Better::Higher => "more is better",
    }
}

/// One row a test, in it one lane a server.
fn marks(findings: &Findings, names: &[&str], lines: &[&Line]) -> Option<Plot> {
    let first = lines.first()?;
    let values = lines.iter().flat_map(|line| line.cells.values()).filter_map(Cell::statistics);
    let scale = Scale::over(values.map(|found| found.median), LEFT + 6.0, RIGHT - 6.0)?;
    let mut inside = String::new();
    let mut top = 4.0;
    for line in lines {
        let shown: Vec<&&str> =
            names.iter().filter(|name| line.cells.get(**name).is_some_and(|cell| !cell.values.is_empty())).collect();
        if shown.is_empty() {
            continue;
        }
        let bottom = top + LABEL + LANE * shown.len() as f64;
        let _ = writeln!(
            inside,
            "<text class=\"label\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
            top + 13.0,
            escaped(&line.label())
        );
        if let Some(limit) = line.cells.get(LIMIT).and_then(Cell::statistics) {
            let x = scale.at(limit.median);
            let said = format!("limit: {}", shown::value(limit.median, line.unit));
            let _ = writeln!(
                inside,
                "<path class=\"limit\" d=\"M{x:.1} {:.1}V{bottom:.1}\" data-say=\"{said}\"><title>{said}</title></path>",
                top + LABEL - 2.0
            );
        }
        for (number, name) in shown.into_iter().enumerate() {
            let y = top + LABEL + LANE * (number as f64 + 0.5);
            if let Some(cell) = line.cells.get(*name) {
                inside.push_str(&mark(findings, line, name, cell, &scale, y));
            }
        }
        top = bottom + 4.0;
    }
    let measure = shown::measure(&first.measure);
    let state = first.state.map_or(String::new(), |state| format!(", {}", shown::state(state)));
    let size = if first.size.is_empty() { String::new() } else { format!(", {}", first.size) };
    let caption = format!("{measure}{size}{state}, logarithmic; {}", way(first.better));
    let mut text = String::new();
    for tick in scale.ticks() {
        let x = scale.at(tick);
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{x:.1} 4V{top:.1}\"/>");
        let _ = writeln!(
            text,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            top + 16.0,
            anchor(x),
            tick_label(tick, first)
        );
    }
    text.push_str(&inside);
    Some(Plot { caption, height: top + AXIS, inside: text })
}

/// Labels at the ends of the axis stay inside the picture.
fn anchor(x: f64) -> &'static str {
    match x {
        left if left < LEFT + 30.0 => "start",
        right if right > RIGHT - 30.0 => "end",
        _ => "middle",
    }
}

fn tick_label(tick: f64, line: &Line) -> String {
    let text = shown::value(tick, line.unit);
    match text.split_once(' ') {
        Some((number, unit)) => format!("{} {unit}", trimmed(number)),
        None => trimmed(&text).to_string(),
    }
}

/// Without zeros behind the point.
fn trimmed(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// The thin line, the error bar and the mark of one server.
fn mark(findings: &Findings, line: &Line, name: &str, cell: &Cell, scale: &Scale, y: f64) -> String {
    let Some(found) = cell.statistics() else { return String::new() };
    let place = legend::place(&findings.names, name);
    let x = scale.at(found.median);
    let said = said(line, name, cell);
    let mut text = format!("<g class=\"s{place}\" data-say=\"{said}\"><title>{said}</title>");
    let _ = write!(text, "<path class=\"lead\" d=\"M{LEFT} {y:.1}H{x:.1}\"/>");
    if found.count > 1 {
        let (low, high) = (scale.at(found.mean - found.deviation), scale.at(found.mean + found.deviation));
        let _ = write!(
            text,
            "<path class=\"error\" d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {0:.1}v6M{high:.1} {0:.1}v6\"/>",
            y - 3.0
        );
    }
    let hollow = if cell.faults.is_empty() { "" } else { " class=\"wrong\"" };
    let _ = writeln!(text, "<path{hollow} transform=\"translate({x:.1} {y:.1})\" d=\"{}\"/></g>", legend::shape(place));
    text
}

/// The exact figures, for the hover box.
fn said(line: &Line, name: &str, cell: &Cell) -> String {
    let Some(found) = cell.statistics() else { return String::new() };
    let show = |value: f64| shown::value(value, line.unit);
    let mut text = format!("{name}, {}: median {}", line.label(), show(found.median));
    if found.count > 1 {
        let _ = write!(
            text,
            ", mean {} ± {}, from {} to {}, {} times",
            show(found.mean),
            show(found.deviation),
            show(found.min),
            show(found.max),
            found.count
        );
    }
    if let Some(ratio) = line.times_best(name).filter(|ratio| *ratio > 1.0) {
        let _ = write!(text, "; {} times the best", shown::digits(ratio));
    }
    for fault in &cell.faults {
        let _ = write!(text, "; {}", crate::report::csv::verdict(fault));
    }
    escaped(&text)
}

/// One curve a server, over the parameter.
fn curve(findings: &Findings, names: &[&str], family: &[&Line]) -> Option<Plot> {
    let first = family.first()?;
    let values = family.iter().flat_map(|line| line.cells.values()).filter_map(Cell::statistics);
    let vertical = Scale::over(values.map(|found| found.median), CURVE_HEIGHT - AXIS, 14.0)?;
    let horizontal = Scale::over(family.iter().filter_map(|line| along(line)), LEFT + 58.0, RIGHT - 14.0)?;
    let measure = shown::measure(&first.measure).to_lowercase();
    let caption = format!("{}: {measure} by {ALONG}; {}", caption(first), way(first.better));
    let mut text = String::new();
    let (left, bottom) = (LEFT + 52.0, CURVE_HEIGHT - AXIS + 6.0);
    for tick in vertical.ticks() {
        let y = vertical.at(tick);
        let _ = writeln!(text, "<path class=\"grid\" d=\"M{left} {y:.1}H{RIGHT}\"/>");
        let _ = writeln!(
            text,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 4.0,
            y + 4.0,
            tick_label(tick, first)
        );
    }
    for count in family.iter().filter_map(|line| along(line)) {
        let x = horizontal.at(count);
        let _ = writeln!(
            text,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{count}</text>",
            bottom + 18.0
        );
    }
    let points = |name: &str| -> Vec<(f64, f64, &Line)> {
        let mut points: Vec<(f64, f64, &Line)> = family
            .iter()
            .filter_map(|line| {
                let found = line.cells.get(name)?.statistics()?;
                Some((horizontal.at(along(line)?), vertical.at(found.median), *line))
            })
            .collect();
        points.sort_by(|(a, _, _), (b, _, _)| a.total_cmp(b));
        points
    };
    let path = |points: &[(f64, f64, &Line)]| {
        let steps: Vec<String> = points.iter().map(|(x, y, _)| format!("{x:.1} {y:.1}")).collect();
        format!("M{}", steps.join("L"))
    };
    let limit = points(LIMIT);
    if !limit.is_empty() {
        let _ = writeln!(
            text,
            "<path class=\"limit\" d=\"{}\" data-say=\"limit\"><title>limit</title></path>",
            path(&limit)
        );
    }
    for name in names {
        let points = points(name);
        if points.is_empty() {
            continue;
        }
        let place = legend::place(&findings.names, name);
        let _ = writeln!(text, "<path class=\"curve s{place}\" d=\"{}\"/>", path(&points));
        for (x, y, line) in points {
            let Some(cell) = line.cells.get(*name) else { continue };
            let said = said(line, name, cell);
            let hollow = if cell.faults.is_empty() { "" } else { " class=\"wrong\"" };
            let mut bar = String::new();
            if let Some(found) = cell.statistics().filter(|found| found.count > 1) {
                let (low, high) =
                    (vertical.at(found.mean - found.deviation), vertical.at(found.mean + found.deviation));
                let _ = write!(bar, "<path class=\"error\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
            }
            let _ = writeln!(
                text,
                "<g class=\"s{place}\" data-say=\"{said}\"><title>{said}</title>{bar}<path{hollow} transform=\"translate({x:.1} {y:.1})\" d=\"{}\"/></g>",
                legend::shape(place)
            );
        }
    }
    Some(Plot { caption, height: CURVE_HEIGHT, inside: text })
}

/// The test and its parameters, but for the one that the curve runs over.
fn caption(line: &Line) -> String {
    let others = line.parameters.iter().filter(|(name, _)| *name != ALONG);
    others.fold(line.test.clone(), |text, (name, value)| format!("{text}, {name} {value}"))
}
