//! From the text of a configuration file to a [`Config`]: every complaint names the line and, for an unknown name, the nearest known one.

use std::fmt;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{Config, SECTIONS};

/// Everything that is wrong with a configuration file, each with its line.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where the text came from, for the message.
    pub source: String,
    /// Line (from 1) and what is wrong there.
    pub complaints: Vec<(usize, String)>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (line, complaint)) in self.complaints.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            if *line == 0 {
                write!(f, "{separator}{}: {complaint}", self.source)?;
            } else {
                write!(f, "{separator}{}:{line}: {complaint}", self.source)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Reads a configuration file. Relative paths in it are taken from the directory of the file.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    let source = path.display().to_string();
    let fail = |complaint: String| ConfigError { source: source.clone(), complaints: vec![(0, complaint)] };
    let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
    let mut config = parse(&text, &source)?;
    if let Some(directory) = path.parent() {
        config.resolve_paths(directory);
    }
    Ok(config)
}

/// Reads the text of a configuration file.
pub fn parse(text: &str, source: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    let mut complaints = Vec::new();
    match DeTable::parse(text) {
        Ok(table) => read_file(&mut config, table.get_ref(), &mut |at, complaint| {
            complaints.push((line_of(text, at), complaint));
        }),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            complaints.push((line_of(text, at), error.message().to_owned()));
        }
    }
    if complaints.is_empty() {
        return Ok(config);
    }
    complaints.sort();
    Err(ConfigError { source: source.to_owned(), complaints })
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

fn read_file(config: &mut Config, file: &DeTable<'_>, complain: &mut dyn FnMut(usize, String)) {
    for (name, value) in file {
        let at = name.span().start;
        let name = name.get_ref().as_ref();
        match value.get_ref() {
            DeValue::Table(table) if SECTIONS.iter().any(|section| section.name == name) => {
                read_section(config, name, table, complain);
            }
            DeValue::Table(_) => {
                let known = SECTIONS.iter().map(|section| section.name);
                complain(at, unknown("section", &format!("[{name}]"), nearest(name, known).map(|n| format!("[{n}]"))));
            }
            _ => complain(at, key_outside_sections(name)),
        }
    }
}

fn key_outside_sections(name: &str) -> String {
    let homes: Vec<String> = SECTIONS
        .iter()
        .filter(|section| section.keys.iter().any(|key| key.name == name))
        .map(|section| format!("[{}]", section.name))
        .collect();
    if homes.is_empty() {
        unknown("key", name, None)
    } else {
        format!("the key \"{name}\" belongs into the section {}", homes.join(" or "))
    }
}

fn read_section(config: &mut Config, section: &str, table: &DeTable<'_>, complain: &mut dyn FnMut(usize, String)) {
    for (name, value) in table {
        match config.set(section, name.get_ref(), value.get_ref()) {
            Some(Ok(())) => {}
            Some(Err(error)) => complain(start(value), format!("{section}.{}: {error}", name.get_ref())),
            None => complain(name.span().start, unknown_key(section, name.get_ref())),
        }
    }
}

fn start(value: &Spanned<DeValue<'_>>) -> usize {
    value.span().start
}

fn unknown_key(section: &str, name: &str) -> String {
    let here = SECTIONS.iter().filter(|s| s.name == section).flat_map(|s| s.keys).map(|key| key.name);
    let suggestion = nearest(name, here).map(str::to_owned).or_else(|| {
        // A key in the wrong section is a likelier slip than a key that never existed.
        let home = SECTIONS.iter().find(|s| s.keys.iter().any(|key| key.name == name))?;
        Some(format!("{}.{name}", home.name))
    });
    unknown("key", &format!("{section}.{name}"), suggestion)
}

fn unknown(what: &str, name: &str, suggestion: Option<String>) -> String {
    match suggestion {
        Some(suggestion) => format!("unknown {what} {name}; did you mean {suggestion}?"),
        None => format!("unknown {what} {name}; `mailyard config --defaults` lists them all"),
    }
}

/// The known name that is nearest to `name`, if one is near enough to be meant.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |candidate: &str| (strsim::jaro_winkler(name, candidate) * 1000.0) as u32;
    let best = known.max_by_key(|candidate| similarity(candidate))?;
    (similarity(best) >= 800).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn complaints(text: &str) -> Vec<(usize, String)> {
        parse(text, "test").expect_err("the text is wrong").complaints
    }

    #[test]
    fn nothing_is_a_configuration() {
        assert_eq!(parse("", "test"), Ok(Config::default()));
    }

    #[test]
    fn the_sample_is_the_defaults() {
        assert_eq!(parse(&sample(), "test"), Ok(Config::default()));
        // Every line that is commented out is a key with its default.
        let active: String = sample()
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| is_assignment(rest)).unwrap_or(line).to_owned() + "\n")
            .collect();
        assert!(active.lines().filter(|line| is_assignment(line)).count() >= 30);
        assert_eq!(parse(&active, "test"), Ok(Config::default()));
    }

    fn is_assignment(line: &str) -> bool {
        line.split_once(" = ").is_some_and(|(key, _)| key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
    }

    #[test]
    fn unknown_names_get_the_nearest_one() {
        assert_eq!(
            complaints("[limits]\n\nconection_max = 1\n"),
            [(3, "unknown key limits.conection_max; did you mean connections_max?".to_owned())]
        );
        assert_eq!(complaints("[listn]\n"), [(1, "unknown section [listn]; did you mean [listen]?".to_owned())]);
        assert_eq!(
            complaints("[server]\nimap = []\n"),
            [(2, "unknown key server.imap; did you mean listen.imap?".to_owned())]
        );
        assert_eq!(
            complaints("data = \"x\"\n"),
            [(1, "the key \"data\" belongs into the section [server]".to_owned())]
        );
        assert!(complaints("[server]\nzzz = 1").first().is_some_and(|(_, text)| text.contains("--defaults")));
    }

    #[test]
    fn wrong_values_are_refused_with_their_line() {
        assert_eq!(
            complaints("[limits]\nconnections_max = 0\n"),
            [(2, "limits.connections_max: 0 is outside 1 to 1_000_000".to_owned())]
        );
        assert_eq!(
            complaints("[log]\nformat = \"yaml\"\n"),
            [(2, "log.format: expected \"text\" or \"json\"".to_owned())]
        );
        assert!(complaints("[listen]\nimap = [\"here\"]").first().is_some_and(|(_, t)| t.contains("no address")));
        assert!(complaints("[listen]\nimap = 1").first().is_some_and(|(_, t)| t.contains("expected list")));
        assert_eq!(complaints("[a\n").len(), 1);
        assert_eq!(complaints("[limits]\nconnections_max = -1\nx = 1\n").len(), 2, "all complaints at once");
    }

    #[test]
    fn values_are_taken() {
        let config = parse("[listen]\nimap = [\"[::1]:0\"]\n[limits]\nconnections_max = 0x10\n", "test").unwrap();
        assert_eq!(config.listen.imap, ["[::1]:0".parse().unwrap()]);
        assert_eq!(config.limits.connections_max, 16);
    }
}
