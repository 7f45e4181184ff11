//! A colour and a mark for every name, the same on every page.
//!
//! Colours were chosen to stay apart for readers who see few of them, in light and in dark; neighbours differ in the mark's shape too.

use super::text::escaped;
use std::fmt::Write;

/// Names that always have the same place.
const KNOWN: [&str; 9] = [
    "mailyard-native",
    "dovecot-mdbox",
    "cyrus",
    "dovecot-maildir",
    "courier",
    "dovecot-sdbox",
    "dovecot-mbox",
    "mailutils",
    "uw-imap",
];

/// Light and dark, by place.
const COLOURS: [(&str, &str); 14] = [
    ("#0a7d63", "#3ddbb0"),
    ("#c2410c", "#ff9a5c"),
    ("#1d4ed8", "#7aa7ff"),
    ("#b8860b", "#f2c94c"),
    ("#9d174d", "#ff7eb6"),
    ("#6d28d9", "#bb9aff"),
    ("#7c4a1e", "#d8a47f"),
    ("#4d7c0f", "#a8d64b"),
    ("#0e7490", "#58d0ea"),
    ("#be123c", "#ff8095"),
    ("#4b5563", "#b8c0cc"),
    ("#a21caf", "#f08bff"),
    ("#065f46", "#8fe3c2"),
    ("#92400e", "#ffd08a"),
];

/// The place of a name: fixed for those that are known, then in the order of the run.
pub fn place(names: &[String], name: &str) -> usize {
    if let Some(place) = KNOWN.iter().position(|known| *known == name) {
        return place;
    }
    let unknown = names.iter().filter(|other| !KNOWN.contains(&other.as_str()));
    let number = unknown.into_iter().position(|other| other == name).unwrap_or_default();
    (KNOWN.len() + number) % COLOURS.len()
}

/// The style rules for the names of a page.
pub fn colours(names: &[String]) -> String {
    let mut light = String::new();
    let mut dark = String::new();
    let mut rules = String::new();
    for name in names {
        let place = place(names, name);
        let Some((on_light, on_dark)) = COLOURS.get(place) else { continue };
        let _ = write!(light, "--s{place}:{on_light};");
        let _ = write!(dark, "--s{place}:{on_dark};");
        let _ = writeln!(rules, ".s{place}{{--c:var(--s{place})}}");
    }
    format!(
        ":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n:root[data-theme=dark]{{{dark}}}\n{rules}"
    )
}

/// A small picture of the name's mark, to stand before the name.
pub fn mark(names: &[String], name: &str) -> String {
    let place = place(names, name);
    format!(
        "<svg class=\"mark s{place}\" viewBox=\"-6 -6 12 12\" aria-hidden=\"true\"><path d=\"{}\"/></svg>",
        shape(place)
    )
}

/// The outline of the mark around the origin, about 9 units wide.
pub fn shape(place: usize) -> &'static str {
    const SHAPES: [&str; 5] = [
        "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        "M-4 -4h8v8h-8z",
        "M0 -5L5 4h-10z",
        "M0 -5.2L5.2 0L0 5.2L-5.2 0z",
        "M0 5L5 -4h-10z",
    ];
    SHAPES.get(place % SHAPES.len()).copied().unwrap_or_default()
}

/// Every name with its mark.
pub fn legend(all: &[String], shown: &[&str]) -> String {
    let mut text = String::from("<p class=\"legend\">");
    for name in shown {
        let _ = write!(text, "<span>{}{}</span> ", mark(all, name), escaped(name));
    }
    text.push_str("</p>\n");
    text
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, KNOWN, place};
    use std::collections::HashSet;

    #[test]
    fn known_names_keep_their_place() {
        let alone = vec!["cyrus".to_string()];
        let many = vec!["x".to_string(), "y".to_string(), "cyrus".to_string()];
        assert_eq!(place(&alone, "cyrus"), place(&many, "cyrus"));
        let places: HashSet<usize> = many.iter().map(|name| place(&many, name)).collect();
        assert_eq!(places.len(), 3);
    }

    #[test]
    fn there_is_a_colour_for_each() {
        assert!(KNOWN.len() < COLOURS.len());
        let distinct: HashSet<&str> = COLOURS.iter().flat_map(|(light, dark)| [*light, *dark]).collect();
        assert_eq!(distinct.len(), COLOURS.len() * 2);
    }
}
