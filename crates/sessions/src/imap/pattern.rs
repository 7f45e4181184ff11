//! The patterns of LIST and LSUB (RFC 9051 §6.3.9): `*` stands for anything, `%` for anything within one level.

use model::{Error, HIERARCHY_DELIMITER, Result};

/// A pattern with its reference in front, ready to match.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// `*`
    Any,
    /// `%`
    AnyInLevel,
}

/// Wildcards in one pattern. Each costs a pass over the name.
pub(crate) const WILDCARDS_MAX: usize = 100;

impl Pattern {
    /// `reference` and `pattern` written one after the other (RFC 9051 §6.3.9: how they are combined is the server's choice). INBOX
    /// in any case as the first level is INBOX.
    pub fn new(reference: &str, pattern: &str) -> Result<Self> {
        let text = format!("{reference}{pattern}");
        let mut tokens = Vec::with_capacity(text.len());
        for c in text.chars() {
            let token = match c {
                '*' => Token::Any,
                '%' => Token::AnyInLevel,
                c => Token::Char(c),
            };
            // Several wildcards in a row are the strongest of them.
            match (tokens.last_mut(), token) {
                (Some(Token::Any), Token::Any | Token::AnyInLevel) | (Some(Token::AnyInLevel), Token::AnyInLevel) => {}
                (Some(last @ Token::AnyInLevel), Token::Any) => *last = Token::Any,
                _ => tokens.push(token),
            }
        }
        if tokens.iter().filter(|token| !matches!(token, Token::Char(_))).count() > WILDCARDS_MAX {
            return Err(Error::over_limit("list_wildcards_max", "too many wildcards in one pattern"));
        }
        let first: String = tokens
            .iter()
            .map_while(|token| match token {
                Token::Char(c) if *c != HIERARCHY_DELIMITER => Some(*c),
                _ => None,
            })
            .collect();
        let level_ends = matches!(tokens.get(first.chars().count()), None | Some(Token::Char(HIERARCHY_DELIMITER)));
        if level_ends && first.eq_ignore_ascii_case("INBOX") {
            tokens.splice(..5, "INBOX".chars().map(Token::Char));
        }
        Ok(Pattern { tokens })
    }

    /// Whether `name` matches. INBOX is matched without regard to case (RFC 9051 §5.1).
    ///
    /// Takes at most pattern times name steps: after a mismatch only the last wildcards are tried again.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        if self.matches_chars(&name, |pattern, name| pattern == name) {
            return true;
        }
        name.iter().collect::<String>() == "INBOX"
            && self.matches_chars(&name, |pattern, name| pattern.eq_ignore_ascii_case(&name))
    }

    fn matches_chars(&self, name: &[char], same: impl Fn(char, char) -> bool) -> bool {
        // The set of places in the pattern that the name so far can have brought us to.
        let mut places = vec![false; self.tokens.len() + 1];
        if let Some(first) = places.first_mut() {
            *first = true;
        }
        self.skip_wildcards(&mut places);
        let mut next = vec![false; places.len()];
        for c in name {
            next.fill(false);
            for (at, token) in self.tokens.iter().enumerate().filter(|(at, _)| places.get(*at).copied() == Some(true)) {
                let to = match token {
                    Token::Char(p) if same(*p, *c) => at + 1,
                    Token::Any => at,
                    Token::AnyInLevel if *c != HIERARCHY_DELIMITER => at,
                    Token::Char(_) | Token::AnyInLevel => continue,
                };
                if let Some(place) = next.get_mut(to) {
                    *place = true;
                }
            }
            self.skip_wildcards(&mut next);
            std::mem::swap(&mut places, &mut next);
        }
        places.last().copied().unwrap_or(false)
    }

    /// A wildcard may stand for nothing.
    fn skip_wildcards(&self, places: &mut [bool]) {
        for (at, token) in self.tokens.iter().enumerate() {
            if !matches!(token, Token::Char(_))
                && let [.., here, next] = places.get_mut(..at + 2).unwrap_or_default()
            {
                *next |= *here;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new("", pattern).unwrap().matches(name)
    }

    #[test]
    fn wildcards() {
        for (pattern, name, expected) in [
            ("*", "a/b/c", true),
            ("%", "a", true),
            ("%", "a/b", false),
            ("%/%", "a/b", true),
            ("a*", "a", true),
            ("a/*", "a", false),
            ("*b", "a/bb", true),
            ("%b*d", "abcd", true),
            ("a%c", "abbc", true),
            ("a%c", "ab/c", false),
            ("a*%c", "ab/c", true),
            ("", "a", false),
            ("a", "A", false),
            ("inbox", "INBOX", true),
            ("inbox/a", "INBOX/a", true),
            ("inboxes", "INBOXes", false),
            ("in%", "INBOX", true),
            ("in%", "INside", false),
            ("日%", "日本語", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(Pattern::new("a/", "%").unwrap().matches("a/b"));
    }

    #[test]
    fn the_limit_holds_at_and_over() {
        assert!(Pattern::new("", &"a%".repeat(WILDCARDS_MAX)).is_ok());
        let error = Pattern::new("", &"a%".repeat(WILDCARDS_MAX + 1)).unwrap_err();
        assert_eq!(error.limit(), Some("list_wildcards_max"));
        // Wildcards in a row count once, and the worst pattern is quick.
        let name = "a".repeat(1000);
        assert!(!matches(&("*a".repeat(WILDCARDS_MAX) + "b"), &name));
        assert!(matches(&"*".repeat(1000), &name));
    }

    proptest::proptest! {
        /// Against the definition, written as a recursion.
        #[test]
        fn matches_as_defined(pattern in "[ab/%*]{0,8}", name in "[ab/]{0,8}") {
            fn by_definition(pattern: &[u8], name: &[u8]) -> bool {
                match (pattern.split_first(), name.split_first()) {
                    (None, None) => true,
                    (Some((b'*', rest)), _) => by_definition(rest, name) || name.split_first().is_some_and(|(_, n)| by_definition(pattern, n)),
                    (Some((b'%', rest)), _) => {
                        by_definition(rest, name)
                            || name.split_first().is_some_and(|(c, n)| *c != b'/' && by_definition(pattern, n))
                    }
                    (Some((p, rest)), Some((c, n))) => p == c && by_definition(rest, n),
                    _ => false,
                }
            }
            proptest::prop_assert_eq!(matches(&pattern, &name), by_definition(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
