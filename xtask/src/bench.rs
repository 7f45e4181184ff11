//! `cargo xtask bench`: the release build and the benchmark on it.

use crate::e2e;
use crate::step::Result;
use crate::tree::Tree;

/// Builds the release and runs `mailyard-bench` with the given arguments; true when it succeeded.
pub fn run(tree: &Tree, arguments: &[String]) -> Result<bool> {
    let built = e2e::release_build(tree).status().map_err(|e| format!("cargo build: {e}"))?;
    if !built.success() {
        return Ok(false);
    }
    let program = tree.target().join("release/mailyard-bench");
    let status = std::process::Command::new(&program)
        .args(arguments)
        .current_dir(&tree.root)
        .status()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    Ok(status.success())
}
