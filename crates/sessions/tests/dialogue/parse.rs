//! Dialogues as text.

use std::fmt;
use std::time::Duration;

/// A scenario: a server of its own and what is said to it.
pub struct Scenario {
    pub name: String,
    pub items: Vec<Item>,
}

/// A line, or an action with all that is expected to follow from it.
pub enum Item {
    /// A comment or an empty line, kept for writing.
    Comment(String),
    Exchange {
        action: Action,
        /// Connection and line.
        expected: Vec<(usize, String)>,
    },
}

pub enum Action {
    Client(usize, String),
    Time(Duration),
    Given(Vec<String>),
    Setting(String, String),
    Connect(usize, Vec<String>),
    As(usize, String, Option<String>),
    Event(usize, String),
    Disk(String),
    Check(String, String, String),
}

impl Scenario {
    pub fn parse_file(text: &str) -> Result<Vec<Scenario>, String> {
        let mut scenarios: Vec<Scenario> = Vec::new();
        for (n, line) in text.lines().enumerate() {
            if let Some(name) = line.strip_prefix("== ") {
                scenarios.push(Scenario { name: name.to_owned(), items: Vec::new() });
                continue;
            }
            // What stands before the first scenario belongs to it.
            if scenarios.is_empty() && line.trim().is_empty() {
                continue;
            }
            let scenario = scenarios.last_mut().ok_or_else(|| format!("line {}: no scenario yet", n + 1))?;
            scenario.line(line).map_err(|error| format!("line {}: {error}", n + 1))?;
        }
        for scenario in &mut scenarios {
            while matches!(scenario.items.last(), Some(Item::Comment(text)) if text.trim().is_empty()) {
                scenario.items.pop();
            }
        }
        Ok(scenarios)
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.trim().is_empty() || line.starts_with('#') {
            self.items.push(Item::Comment(line.to_owned()));
            return Ok(());
        }
        if let Some((number, text)) = spoken(line, 'S') {
            let last = self.items.iter_mut().rev().find_map(|item| match item {
                Item::Exchange { expected, .. } => Some(expected),
                Item::Comment(_) => None,
            });
            last.ok_or("an answer before any question")?.push((number, text.to_owned()));
            return Ok(());
        }
        let action = parse_action(line)?;
        self.items.push(Item::Exchange { action, expected: Vec::new() });
        Ok(())
    }

    pub fn to_text(&self) -> String {
        let mut text = format!("== {}\n", self.name);
        for item in &self.items {
            match item {
                Item::Comment(line) => text.push_str(&format!("{line}\n")),
                Item::Exchange { action, expected } => {
                    text.push_str(&format!("{action}\n"));
                    for (number, line) in expected {
                        text.push_str(format!("{} {line}", speaker('S', *number)).trim_end());
                        text.push('\n');
                    }
                }
            }
        }
        text
    }
}

/// `C: text`, `C2: text`
fn spoken(line: &str, who: char) -> Option<(usize, &str)> {
    let (number, text) = line.strip_prefix(who)?.split_once(':')?;
    let number = if number.is_empty() { 1 } else { number.parse().ok()? };
    Some((number, text.strip_prefix(' ').unwrap_or(text)))
}

fn speaker(who: char, number: usize) -> String {
    if number == 1 { format!("{who}:") } else { format!("{who}{number}:") }
}

fn parse_action(line: &str) -> Result<Action, String> {
    if let Some((number, text)) = spoken(line, 'C') {
        return Ok(Action::Client(number, text.to_owned()));
    }
    if let Some((number, text)) = spoken(line, 'X') {
        return Ok(Action::Event(number, text.to_owned()));
    }
    if let Some(text) = line.strip_prefix("T: +") {
        return parse_time(text).map(Action::Time).ok_or_else(|| format!("no time: {text}"));
    }
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        ["given", rest @ ..] => Action::Given(rest.iter().map(|word| (*word).to_owned()).collect()),
        ["setting", name, rest @ ..] => Action::Setting((*name).to_owned(), rest.join(" ")),
        ["connect", number, rest @ ..] => {
            let number = number.parse().map_err(|_| format!("no number: {line}"))?;
            Action::Connect(number, rest.iter().map(|word| (*word).to_owned()).collect())
        }
        ["as", rest @ ..] => {
            let (number, rest) = match rest {
                [number, rest @ ..] if number.parse::<usize>().is_ok() => (number.parse().unwrap_or(1), rest),
                rest => (1, rest),
            };
            let (user, mailbox) = rest.split_first().ok_or("as whom?")?;
            Action::As(number, (*user).to_owned(), mailbox.first().map(|name| (*name).to_owned()))
        }
        ["disk", what] => Action::Disk((*what).to_owned()),
        ["check", a, relation, b] => Action::Check((*a).to_owned(), (*relation).to_owned(), (*b).to_owned()),
        _ => return Err(format!("not understood: {line}")),
    })
}

fn parse_time(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()? * seconds))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Client(number, text) => write!(f, "{} {text}", speaker('C', *number)),
            Action::Event(number, text) => write!(f, "{} {text}", speaker('X', *number)),
            Action::Time(by) => match by.as_secs() {
                s if s % 3600 == 0 => write!(f, "T: +{}h", s / 3600),
                s if s % 60 == 0 => write!(f, "T: +{}m", s / 60),
                s => write!(f, "T: +{s}s"),
            },
            Action::Given(words) => write!(f, "given {}", words.join(" ")),
            Action::Setting(name, value) => write!(f, "setting {name} {value}"),
            Action::Connect(number, words) => {
                write!(f, "{}", format!("connect {number} {}", words.join(" ")).trim_end())
            }
            Action::As(number, user, mailbox) => {
                let number = if *number == 1 { String::new() } else { format!("{number} ") };
                let mailbox = mailbox.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
                write!(f, "as {number}{user}{mailbox}")
            }
            Action::Disk(what) => write!(f, "disk {what}"),
            Action::Check(a, relation, b) => write!(f, "check {a} {relation} {b}"),
        }
    }
}
