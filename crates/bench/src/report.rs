//! The report of a run: one HTML page that needs nothing else, and the same figures as CSV and JSON.
//!
//! Invariants:
//! - the page, the CSV and the JSON are made from the same [`Findings`], so they cannot disagree;
//! - a value is never shown without what was wrong with the answer;
//! - a server has one colour and one mark on the whole page, and on every page.

mod csv;
mod findings;
mod html;
mod json;
mod shown;
mod statistics;

pub use findings::{Cell, Findings, Line};
pub use statistics::Statistics;

use crate::error::{Doing, Result};
use crate::results;
use std::path::{Path, PathBuf};

/// Reads the results in a folder and writes `report.html`, `report.csv`, `report.json` and every plot as an SVG beside them; gives
/// their paths.
pub fn write(folder: &Path) -> Result<Vec<PathBuf>> {
    let findings = Findings::new(results::read(folder)?);
    let mut files = vec![
        ("report.html".to_string(), html::page(&findings)),
        ("report.csv".to_string(), csv::text(&findings)),
        ("report.json".to_string(), json::text(&findings)),
    ];
    files.extend(html::pictures(&findings));
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).doing(path.display())?;
        written.push(path);
    }
    Ok(written)
}
