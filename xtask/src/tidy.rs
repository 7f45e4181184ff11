//! The repository's own rules, as code: what a reviewer would otherwise have to look for every time.
//!
//! Each rule is a function from the tree's text to a list of complaints, so that it can be tested on text that breaks it.

mod crates;
mod links;
mod source;

use crate::step::{Outcome, Report};
use crate::tree::{self, Tree};
use std::path::PathBuf;

/// All rules, one step.
pub fn steps(report: &mut Report) {
    report.step("tidy", |tree, _| {
        let rust = load(tree, "rs")?;
        let mut complaints = Vec::new();
        complaints.extend(source::check(&rust));
        complaints.extend(crates::check(&tree.metadata(true)?));
        complaints.extend(links::check(&tree.root, &load(tree, "md")?));
        if complaints.is_empty() {
            return Ok(Outcome::PassedWith(format!("{} Rust files", rust.len())));
        }
        Err(format!("{} complaints\n{}", complaints.len(), complaints.join("\n")))
    });
}

/// A file of the tree: its path relative to the root, and its text.
type Text = (PathBuf, String);

fn load(tree: &Tree, extension: &str) -> Result<Vec<Text>, String> {
    tree.files(extension)?
        .into_iter()
        .map(|path| {
            let text = tree::read(&tree.root, &path)?;
            Ok((path, text))
        })
        .collect()
}
