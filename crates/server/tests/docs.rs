//! The documentation is in step with the code.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

#[test]
fn every_fixed_limit_is_documented_with_its_value() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(crates.join("../docs/limits.md")).unwrap();
    let mut seen = 0;
    for source in ["model/src/limits.rs", "imap-proto/src/limits.rs"] {
        for line in std::fs::read_to_string(crates.join(source)).unwrap().lines() {
            let Some((name, value)) = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": ")) else {
                continue;
            };
            seen += 1;
            let row = page.lines().find(|row| row.starts_with(&format!("| `{}` |", name.to_lowercase())));
            let row = row.unwrap_or_else(|| panic!("docs/limits.md has no {}", name.to_lowercase()));
            let value = value.rsplit("= ").next().unwrap().trim_end_matches(';').replace('_', "");
            if let Ok(value) = value.parse::<u64>() {
                assert!(row.replace(',', "").contains(&format!("| {value} |")), "{name} is {value}: {row}");
            }
        }
    }
    assert!(seen > 20);
}

#[test]
fn every_limit_of_the_configuration_is_listed() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let [limits, configuration] =
        ["limits.md", "configuration.md"].map(|page| std::fs::read_to_string(docs.join(page)).unwrap());
    let keys = configuration.lines().filter_map(|line| line.strip_prefix("### "));
    for key in keys.filter(|key| key.ends_with("_max")) {
        assert!(limits.contains(&format!("`{key}`")), "docs/limits.md has no {key}");
    }
    // Of those that are listed, the defaults are the true ones.
    for row in limits.lines().filter(|row| row.starts_with("| `") && row.split('`').nth(1).unwrap().contains('.')) {
        let key = row.split('`').nth(1).unwrap();
        let shown = row.split(" | ").nth(1).unwrap().replace(',', "");
        let section = configuration.split(&format!("### {key}\n")).nth(1).unwrap_or_else(|| panic!("no key {key}"));
        let default = section.split("default `").nth(1).unwrap().split('`').next().unwrap().replace('_', "");
        assert_eq!(shown, default, "{key}");
    }
}
