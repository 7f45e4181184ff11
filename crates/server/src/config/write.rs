//! The configuration as text for people: the annotated sample and the reference page, both from the declaration of the keys.

use std::fmt::Write as _;

use super::keys::{Config, SECTIONS};

/// Column at which comments in the sample are wrapped.
const WIDTH: usize = 100;

/// The annotated sample: every key with its default, commented out, so that the file says only what an administrator changed.
pub fn sample() -> String {
    let defaults = Config::default().values();
    let mut text = String::from("# Mailyard's configuration. Every key is shown with its default.\n");
    for section in SECTIONS {
        let _ = writeln!(text, "\n[{}]", section.name);
        wrap(&mut text, &joined(section.doc));
        for key in section.keys {
            text.push('\n');
            wrap(&mut text, &joined(key.doc));
            let _ = writeln!(text, "# {} = {}", key.name, value_of(&defaults, section.name, key.name));
        }
    }
    text
}

/// The reference page (`docs/configuration.md`).
pub fn reference() -> String {
    let defaults = Config::default().values();
    let mut text = String::from(
        "# Configuration\n\n\
         <!-- Written by `mailyard config --reference`; a test keeps it in step with the program. -->\n\n\
         `mailyard serve` needs no configuration file. What it should do differently stands in a TOML file given with\n\
         `--config FILE`. A key that does not exist is refused, with the nearest name suggested; `mailyard config --check FILE`\n\
         reads a file and says what is wrong with it; `mailyard config --defaults` prints a sample to start from.\n\
         SIGHUP makes a running server read the file again: what is marked \"at start\" below waits for the next start.\n\
         Units stand in the names of the keys.\n",
    );
    for section in SECTIONS {
        let _ = writeln!(text, "\n## [{}]\n\n{}", section.name, joined(section.doc));
        for key in section.keys {
            let range = key.range.map(|range| format!(", {}", range())).unwrap_or_default();
            let _ = writeln!(
                text,
                "\n### {}.{}\n\n{} ({}{range}; default `{}`)",
                section.name,
                key.name,
                joined(key.doc),
                (key.kind)(),
                value_of(&defaults, section.name, key.name)
            );
        }
    }
    text
}

fn value_of<'a>(values: &'a [(&str, &str, String)], section: &str, key: &str) -> &'a str {
    let found = values.iter().find(|(s, k, _)| *s == section && *k == key);
    found.map_or("", |(_, _, value)| value)
}

fn joined(doc: &[&str]) -> String {
    doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn wrap(text: &mut String, paragraph: &str) {
    let mut line = String::from("#");
    for word in paragraph.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        text.push_str(&line);
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_is_in_step() {
        let page = include_str!("../../../../docs/configuration.md");
        assert!(page == reference(), "docs/configuration.md: write it anew with `mailyard config --reference`");
    }

    #[test]
    fn every_key_is_documented() {
        for section in SECTIONS {
            assert!(joined(section.doc).ends_with('.'), "[{}]", section.name);
            for key in section.keys {
                assert!(joined(key.doc).ends_with('.'), "{}.{}", section.name, key.name);
            }
        }
    }
}
