//! Rules for the crates: which may use which, and that all of them have the workspace's lints.
//!
//! The table is the one in ARCHITECTURE.md: an arrow only downwards. Tests may use more than the code does (a simulated disk, say), but
//! never a crate above their own.

use serde_json::Value;
use std::path::Path;

const PREFIX: &str = "mailyard-";

/// A crate and what it may use. A crate may only use crates listed before it, so a test dependency cannot make a circle either.
const MAY_USE: [(&str, &[&str]); 12] = [
    ("model", &[]),
    ("platform", &[]),
    ("mime", &[]),
    ("index", &["model", "platform"]),
    ("search", &["model", "platform"]),
    ("store", &["model", "platform", "mime", "index", "search"]),
    ("store-sql", &["store", "index", "model", "platform", "mime"]),
    ("imap-proto", &["model"]),
    ("sessions", &["model", "mime", "imap-proto", "store"]),
    ("jmap", &["model", "mime", "store"]),
    ("bench", &["imap-proto", "model"]),
    (
        "server",
        &[
            "model",
            "platform",
            "mime",
            "index",
            "search",
            "store",
            "store-sql",
            "imap-proto",
            "sessions",
            "jmap",
            "bench",
        ],
    ),
];

/// Complaints about the packages of `cargo metadata --no-deps`.
pub fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut complaints: Vec<String> = packages.iter().flat_map(edges).collect();
    complaints.extend(packages.iter().filter_map(lints));
    if packages.is_empty() {
        complaints.push("cargo metadata lists no packages".to_string());
    }
    complaints
}

fn edges(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let used = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ours = used.iter().filter_map(|dependency| {
        let name = dependency["name"].as_str()?.strip_prefix(PREFIX)?;
        Some((name, dependency["kind"].as_str() == Some("dev")))
    });
    let Some(name) = name.strip_prefix(PREFIX) else {
        return ours.map(|(other, _)| format!("{name}: may not use {other}; it is no part of the product")).collect();
    };
    let Some(place) = MAY_USE.iter().position(|(row, _)| *row == name) else {
        return vec![format!("crate {name}: not in the table of crates")];
    };
    let allowed = MAY_USE.get(place).map(|(_, allowed)| *allowed).unwrap_or_default();
    ours.filter(|(other, for_tests)| {
        let below = MAY_USE.iter().take(place).any(|(row, _)| row == other);
        !(allowed.contains(other) || *for_tests && below)
    })
    .map(|(other, _)| format!("crate {name}: may not use {other}; see the table of crates in ARCHITECTURE.md"))
    .collect()
}

/// Without `[lints] workspace = true` a crate escapes every lint of the workspace.
fn lints(package: &Value) -> Option<String> {
    let manifest = Path::new(package["manifest_path"].as_str()?);
    let text = std::fs::read_to_string(manifest).ok()?;
    let mut lines = text.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    if lines.next() == Some("workspace = true") {
        return None;
    }
    Some(format!("{}: has no `[lints] workspace = true`", manifest.display()))
}

#[cfg(test)]
mod tests {
    use super::edges;
    use serde_json::{Value, json};

    fn package(name: &str, uses: &str, kind: Value) -> Value {
        json!({ "name": name, "dependencies": [{ "name": uses, "kind": kind }, { "name": "memchr", "kind": null }] })
    }

    #[test]
    fn arrows_point_down() {
        assert!(edges(&package("mailyard-store", "mailyard-index", Value::Null)).is_empty());
        assert_eq!(edges(&package("mailyard-index", "mailyard-store", Value::Null)).len(), 1);
        assert_eq!(edges(&package("mailyard-sessions", "mailyard-platform", Value::Null)).len(), 1);
        assert!(edges(&package("mailyard-sessions", "mailyard-platform", json!("dev"))).is_empty());
        assert_eq!(edges(&package("mailyard-model", "mailyard-platform", json!("dev"))).len(), 1);
        assert_eq!(edges(&package("mailyard-extra", "mailyard-model", Value::Null)).len(), 1);
        assert_eq!(edges(&package("xtask", "mailyard-model", Value::Null)).len(), 1);
    }
}
