//! The licences of everything that is linked in.
//!
//! A new licence is a decision, so the list below is closed: an expression that cannot be satisfied from it fails the check with the
//! names of the packages.

use crate::step::{Log, Outcome, Result};
use crate::tree::Tree;
use serde_json::Value;
use spdx::{AdditionItem, Expression, LicenseReq, ParseMode};
use std::collections::BTreeMap;

/// Permissive licences, and MPL-2.0, whose copyleft stays within its own files.
const ALLOWED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Exceptions only ever add permissions; this is the one that occurs.
const ALLOWED_ADDITIONS: [&str; 1] = ["LLVM-exception"];

/// Checks the licence of every package in the lock file, on every platform.
pub fn check(tree: &Tree, log: &mut Log) -> Result<Outcome> {
    let metadata = tree.metadata(false)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata lists no packages")?;
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    let mut denied = Vec::new();
    for package in packages {
        match judge(package) {
            Ok(licence) => *used.entry(licence).or_default() += 1,
            Err(why) => denied.push(format!("  {} {}: {why}", text(package, "name"), text(package, "version"))),
        }
    }
    for (licence, count) in &used {
        log.say(&format!("{count:5}  {licence}"));
    }
    if denied.is_empty() {
        return Ok(Outcome::PassedWith(format!("{} packages", packages.len())));
    }
    Err(format!("{} packages have a licence that is not in the list\n{}", denied.len(), denied.join("\n")))
}

fn judge(package: &Value) -> std::result::Result<String, String> {
    let Some(licence) = package["license"].as_str() else {
        return Err("no licence expression".to_string());
    };
    // Lax: older packages write "MIT/Apache-2.0".
    let expression =
        Expression::parse_mode(licence, ParseMode::LAX).map_err(|e| format!("{licence:?}: {}", e.reason))?;
    if expression.evaluate(allowed) { Ok(licence.to_string()) } else { Err(licence.to_string()) }
}

fn allowed(requirement: &LicenseReq) -> bool {
    let licence = requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name));
    let addition = requirement
        .addition
        .as_ref()
        .is_none_or(|addition| AdditionItem::id(addition).is_some_and(|id| ALLOWED_ADDITIONS.contains(&id.name)));
    licence && addition
}

fn text<'v>(package: &'v Value, key: &str) -> &'v str {
    package[key].as_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::judge;
    use serde_json::json;

    #[test]
    fn expressions() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR LGPL-2.1-or-later",
            "Apache-2.0 AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(judge(&json!({ "license": good })).is_ok(), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND AGPL-3.0-only", "GPL-2.0-only WITH Classpath-exception-2.0", "nonsense"] {
            assert!(judge(&json!({ "license": bad })).is_err(), "{bad}");
        }
        assert!(judge(&json!({})).is_err());
    }
}
