//! Results on standard output.

use std::fmt;
use std::io::{self, Write};

use serde_json::Value;

/// One line. A reader that has gone away (`| head`) is no error.
pub fn line(text: impl fmt::Display) -> io::Result<()> {
    self::text(&format!("{text}\n"))
}

/// Text as it is.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// A result for people: `name: value` a line, lists of objects as a table.
pub fn result(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Array(rows) if rows.iter().any(Value::is_object) => text.push_str(&table(rows)),
                    Value::Array(items) if items.is_empty() => {}
                    Value::Array(items) => {
                        let items: Vec<String> = items.iter().map(plain).collect();
                        text.push_str(&format!("{}: {}\n", words(name), items.join(", ")));
                    }
                    Value::Null => {}
                    value => text.push_str(&format!("{}: {}\n", words(name), plain(value))),
                }
            }
        }
        value => text.push_str(&format!("{}\n", plain(value))),
    }
    text
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        value => value.to_string(),
    }
}

/// Objects with the same fields, in columns; numbers to the right.
fn table(rows: &[Value]) -> String {
    let Some(Value::Object(first)) = rows.first() else { return String::new() };
    let names: Vec<&String> = first.keys().collect();
    let cells: Vec<Vec<(String, bool)>> = std::iter::once(names.iter().map(|name| (words(name), false)).collect())
        .chain(rows.iter().map(|row| {
            let cell =
                |name: &&String| row.get(name.as_str()).map_or((String::new(), false), |v| (plain(v), v.is_number()));
            names.iter().map(cell).collect()
        }))
        .collect();
    let width = |column: usize| {
        cells.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let mut text = String::new();
    for row in &cells {
        let line: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(
                |((cell, is_number), width)| {
                    if *is_number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
                },
            )
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_read_well() {
        let value = json!({ "a_b": 1, "none": null, "empty": [], "names": ["x", "y"], "rows": [{ "name": "é", "n": 10 }, { "name": "long", "n": 2 }] });
        assert_eq!(result(&value), "a b: 1\nnames: x, y\nname  n\né     10\nlong   2\n");
    }
}
