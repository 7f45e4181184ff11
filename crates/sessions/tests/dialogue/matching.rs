//! What is expected and what was said: wildcards, captured values, a report of the difference.

use std::collections::BTreeMap;

use base64::Engine;

/// Fixtures by name.
pub type Fixtures = BTreeMap<String, Vec<u8>>;

/// Values that were captured in this scenario.
#[derive(Default)]
pub struct Captures {
    numbers: BTreeMap<String, String>,
    /// While writing: how many names of each kind were given.
    given: BTreeMap<&'static str, usize>,
}

/// A piece of an expected line.
enum Piece {
    Text(String),
    Any,
    Number(Option<String>),
}

impl Captures {
    /// Compares line by line; what `%{bytes}` stands for is as many lines as it has.
    pub fn compare(&mut self, expected: &[String], said: &[String], fixtures: &Fixtures) -> Result<(), String> {
        let mut lines = Vec::new();
        for line in expected {
            match expand_bytes(line, fixtures)? {
                Some(text) => lines.extend(text.split("\r\n").map(str::to_owned)),
                None => lines.push(line.clone()),
            }
        }
        let mut report = String::new();
        let mut differs = lines.len() != said.len();
        for n in 0..lines.len().max(said.len()) {
            match (lines.get(n), said.get(n)) {
                // A space at the end of a line is hard to see and to keep in a file: `+ ` is written `+`.
                (Some(expected), Some(said)) if self.line_matches(expected, said.trim_end_matches(' ')) => {
                    report.push_str(&format!("    {said}\n"))
                }
                (expected, said) => {
                    differs = true;
                    let show = |sign: char, line: Option<&String>| {
                        line.map(|line| format!("  {sign} {line}\n")).unwrap_or_default()
                    };
                    report.push_str(&show('-', expected));
                    report.push_str(&show('+', said));
                }
            }
        }
        if differs { Err(report) } else { Ok(()) }
    }

    fn line_matches(&mut self, expected: &str, said: &str) -> bool {
        let mut captured = Vec::new();
        if !matches(&pieces(expected), said, &self.numbers, &mut captured) {
            return false;
        }
        self.numbers.extend(captured);
        true
    }

    /// A client's line as octets.
    pub fn expand(&self, text: &str, fixtures: &Fixtures) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        let mut rest = text;
        let mut open = false;
        while let Some(start) = rest.find("%{") {
            out.extend_from_slice(&rest.as_bytes()[..start]);
            let (inside, after) = rest[start + 2..].split_once('}').ok_or("an open %{")?;
            rest = after;
            let (word, argument) = inside.split_once(' ').unwrap_or((inside, ""));
            match word {
                "open" => open = true,
                "size" => out.extend_from_slice(fixture(argument, fixtures)?.len().to_string().as_bytes()),
                "bytes" => out.extend_from_slice(fixture(argument, fixtures)?),
                "repeat" => {
                    let (count, text) = argument.split_once(' ').ok_or("repeat what?")?;
                    out.extend_from_slice(text.repeat(count.parse().map_err(|_| "repeat how often?")?).as_bytes());
                }
                "each" => {
                    let words: Vec<&str> = argument.split(' ').collect();
                    let [first, last, text] = words.as_slice() else { return Err("each what?".to_owned()) };
                    let number = |word: &str| word.parse::<u32>().map_err(|_| "each of which?");
                    let words = (number(first)?..=number(last)?).map(|n| format!("{text}{n}"));
                    out.extend_from_slice(words.collect::<Vec<_>>().join(" ").as_bytes());
                }
                "hex" => {
                    for pair in argument.as_bytes().chunks(2) {
                        let pair = std::str::from_utf8(pair).map_err(|_| "no hex")?;
                        out.push(u8::from_str_radix(pair, 16).map_err(|_| "no hex")?);
                    }
                }
                "b64" => {
                    let octets = argument.replace("\\0", "\0");
                    out.extend_from_slice(base64::engine::general_purpose::STANDARD.encode(octets).as_bytes());
                }
                name => out.extend_from_slice(self.number(name)?.as_bytes()),
            }
        }
        out.extend_from_slice(rest.as_bytes());
        if !open {
            out.extend_from_slice(b"\r\n");
        }
        Ok(out)
    }

    fn number(&self, name: &str) -> Result<&str, String> {
        self.numbers.get(name).map(String::as_str).ok_or_else(|| format!("nothing captured as {name}"))
    }

    pub fn check(&self, a: &str, relation: &str, b: &str) -> Result<(), String> {
        let value = |text: &str| {
            text.parse::<u64>().or_else(|_| self.number(text)?.parse().map_err(|_| format!("no number: {text}")))
        };
        let (x, y) = (value(a)?, value(b)?);
        let holds = match relation {
            ">" => x > y,
            "=" => x == y,
            _ => return Err(format!("no relation: {relation}")),
        };
        if holds { Ok(()) } else { Err(format!("{a} is {x}, {b} is {y}: not {relation}\n")) }
    }

    /// A line as said, with names for the numbers that a server chooses.
    pub fn generalise(&mut self, line: &str) -> String {
        let mut line = line.to_owned();
        for (before, after, kind) in [
            ("UIDVALIDITY ", "", "v"),
            ("APPENDUID ", "", "v"),
            ("COPYUID ", "", "v"),
            ("HIGHESTMODSEQ ", "", "m"),
            ("MODSEQ (", ")", "m"),
            ("(MODSEQ ", ")", "m"),
            (") MODSEQ ", "", "m"),
            ("MAILBOXID (F", ")", "any"),
            ("EMAILID (M", ")", "any"),
        ] {
            let Some(start) = line.find(before).map(|at| at + before.len()) else { continue };
            let digits: String = line[start..].chars().take_while(char::is_ascii_hexdigit).collect();
            if digits.is_empty() || !line[start + digits.len()..].starts_with(after) {
                continue;
            }
            let name =
                if kind == "any" { "%{any}".to_owned() } else { format!("%{{num:{}}}", self.name_of(kind, &digits)) };
            line.replace_range(start..start + digits.len(), &name);
        }
        line
    }

    fn name_of(&mut self, kind: &'static str, value: &str) -> String {
        let known = self.numbers.iter().find(|(name, known)| name.starts_with(kind) && *known == value);
        if let Some((name, _)) = known {
            return name.clone();
        }
        let count = self.given.entry(kind).or_default();
        *count += 1;
        let name = format!("{kind}{count}");
        self.numbers.insert(name.clone(), value.to_owned());
        name
    }
}

fn fixture<'a>(name: &str, fixtures: &'a Fixtures) -> Result<&'a Vec<u8>, String> {
    fixtures.get(name).ok_or_else(|| format!("no fixture {name}"))
}

/// A line with the octets of fixtures in it; `None` when it has none.
fn expand_bytes(line: &str, fixtures: &Fixtures) -> Result<Option<String>, String> {
    let Some((before, rest)) = line.split_once("%{bytes ") else { return Ok(None) };
    let (name, after) = rest.split_once('}').ok_or("an open %{")?;
    let octets = String::from_utf8_lossy(fixture(name, fixtures)?).into_owned();
    Ok(Some(format!("{before}{octets}{after}")))
}

fn pieces(expected: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = expected;
    while let Some((before, after)) = rest.split_once("%{") {
        let Some((inside, after)) = after.split_once('}') else { break };
        pieces.push(Piece::Text(before.to_owned()));
        pieces.push(match inside {
            "any" => Piece::Any,
            "num" => Piece::Number(None),
            _ => Piece::Number(Some(inside.strip_prefix("num:").unwrap_or(inside).to_owned())),
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    pieces
}

fn matches(
    pieces: &[Piece],
    said: &str,
    known: &BTreeMap<String, String>,
    captured: &mut Vec<(String, String)>,
) -> bool {
    let Some((piece, rest)) = pieces.split_first() else { return said.is_empty() };
    match piece {
        Piece::Text(text) => said.strip_prefix(text.as_str()).is_some_and(|said| matches(rest, said, known, captured)),
        Piece::Any => said
            .char_indices()
            .map(|(at, _)| at)
            .chain([said.len()])
            .any(|at| said.get(at..).is_some_and(|said| matches(rest, said, known, captured))),
        Piece::Number(name) => {
            let digits: String = said.chars().take_while(char::is_ascii_digit).collect();
            let Some(name) = name else {
                return !digits.is_empty() && matches(rest, &said[digits.len()..], known, captured);
            };
            let before = known.get(name).or_else(|| captured.iter().find(|c| c.0 == *name).map(|c| &c.1));
            if digits.is_empty() || before.is_some_and(|before| *before != digits) {
                return false;
            }
            captured.push((name.clone(), digits.clone()));
            matches(rest, &said[digits.len()..], known, captured)
        }
    }
}
