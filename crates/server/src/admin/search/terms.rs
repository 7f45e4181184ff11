//! The query language of `mailyard search`: terms that a message must all have, such as `from:ann subject:"budget 2026" -is:seen lunch`.
//!
//! ```text
//!   query = *(term / SP)
//!   term  = ["-"] [key ":"] value        "-": messages that have it not
//!   value = 1*<any but space and quote> / QUOTE *(<any but quote> / "\" QUOTE / "\\") QUOTE
//! ```
//!
//! A value without a key is looked for in the whole message. At least one term: an empty query is a variable of a script that was not set
//! more often than the wish for everything.

use model::{CivilDate, Flags, Keyword, SystemFlag};
use store::View;
use store::search::{DateTest, Query};

/// What a message must have or must not have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    key: Option<String>,
    value: String,
}

/// A query that was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    terms: Vec<Term>,
    /// `has:attachment`, or that there is none: the index does not know.
    pub attachment: Option<bool>,
}

/// The keys, as they are told to somebody who got one wrong.
const KEYS: &str = "from, to, cc, bcc, subject, body, before, after, on, larger, smaller, is, keyword, has, header";

impl Terms {
    /// Reads a query. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Terms, String> {
        let mut terms = Vec::new();
        let mut attachment = None;
        let all = split(text)?;
        if all.is_empty() {
            return Err("there is nothing to look for".to_owned());
        }
        for term in all {
            if term.key.as_deref() == Some("has") {
                if term.value != "attachment" {
                    return Err(format!("has:{}: only has:attachment is known", term.value));
                }
                attachment = Some(!term.is_negated);
                continue;
            }
            query_of(&term, None)?;
            terms.push(term);
        }
        Ok(Terms { terms, attachment })
    }

    /// The query for a mailbox: keywords are known by their place in it.
    pub fn query(&self, view: &View) -> Result<Query, String> {
        let all = self.terms.iter().map(|term| {
            let query = query_of(term, Some(view))?;
            Ok(if term.is_negated { Query::Not(Box::new(query)) } else { query })
        });
        Ok(Query::And(all.collect::<Result<_, String>>()?))
    }
}

/// Takes a query apart.
fn split(text: &str) -> Result<Vec<Term>, String> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (is_negated, from) = rest.strip_prefix('-').map_or((false, rest), |from| (true, from));
        let key_end = from.find(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
        let key = key_end.filter(|end| *end > 0).and_then(|end| {
            let after = from.get(end..)?.strip_prefix(':')?;
            Some((from.get(..end)?.to_ascii_lowercase(), after))
        });
        let (key, from) = key.map_or((None, from), |(key, after)| (Some(key), after));
        // What stands before the quotes: the name in `header:NAME="text"`.
        let bare =
            from.split(|character: char| character.is_whitespace() || character == '"').next().unwrap_or_default();
        let name = bare.strip_suffix('=').filter(|_| key.as_deref() == Some("header")).map_or("", |_| bare);
        let from = from.strip_prefix(name).unwrap_or(from);
        let (value, after) = match from.strip_prefix('"') {
            Some(quoted) => unquoted(quoted).ok_or("a quote is not closed")?,
            None => {
                let (value, after) = from.split_at(from.find(char::is_whitespace).unwrap_or(from.len()));
                (value.to_owned(), after)
            }
        };
        let value = format!("{name}{value}");
        if value.is_empty() && key.as_deref() != Some("header") {
            return Err("a term without a value".to_owned());
        }
        terms.push(Term { is_negated, key, value });
        rest = after.trim_start();
    }
    Ok(terms)
}

/// The text up to the closing quote, and what stands behind that. A backslash before anything but a quote or another one is text.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => return Some((value, characters.as_str())),
            '\\' => match characters.as_str().chars().next().filter(|next| matches!(next, '"' | '\\')) {
                Some(next) => {
                    value.push(next);
                    characters.next();
                }
                None => value.push('\\'),
            },
            character => value.push(character),
        }
    }
}

/// What one term asks for. Without a view only whether it can be understood is of interest.
fn query_of(term: &Term, view: Option<&View>) -> Result<Query, String> {
    let value = || term.value.clone();
    let header = |name: &str| Query::Header(name.to_owned(), value());
    let Some(key) = &term.key else { return Ok(Query::Text(value())) };
    Ok(match key.as_str() {
        "from" | "to" | "cc" | "bcc" | "subject" => header(key),
        "body" => Query::Body(value()),
        "header" => {
            let (name, text) = term.value.split_once('=').unwrap_or((&term.value, ""));
            if name.is_empty() {
                return Err("header: needs a name, such as header:List-Id or header:X-Mailer=mutt".to_owned());
            }
            Query::Header(name.to_owned(), text.to_owned())
        }
        "before" => Query::Internal(DateTest::Before(date(&term.value)?)),
        "after" | "since" => Query::Internal(DateTest::Since(date(&term.value)?)),
        "on" => Query::Internal(DateTest::On(date(&term.value)?)),
        "larger" => Query::Larger(octets(&term.value)?),
        "smaller" => Query::Smaller(octets(&term.value)?),
        "is" => state(&term.value)?,
        "keyword" => {
            let keyword = Keyword::new(&term.value).map_err(|error| error.to_string())?;
            // A keyword that the mailbox has never seen is set nowhere.
            let bit = view.and_then(|view| view.keywords().find(&keyword));
            Query::HasFlag(bit.map_or(Flags(0), Flags::keyword))
        }
        _ => return Err(format!("{key}: is no key; these are: {KEYS}. Put it in quotes to look for it as text")),
    })
}

fn state(value: &str) -> Result<Query, String> {
    let set = |flag| Query::HasFlag(Flags::system(flag));
    let unset = |flag| Query::Not(Box::new(Query::HasFlag(Flags::system(flag))));
    Ok(match value {
        "seen" | "read" => set(SystemFlag::Seen),
        "unseen" | "unread" => unset(SystemFlag::Seen),
        "answered" => set(SystemFlag::Answered),
        "unanswered" => unset(SystemFlag::Answered),
        "flagged" => set(SystemFlag::Flagged),
        "unflagged" => unset(SystemFlag::Flagged),
        "draft" => set(SystemFlag::Draft),
        "deleted" => set(SystemFlag::Deleted),
        _ => {
            return Err(format!(
                "is:{value}: seen, unseen, answered, unanswered, flagged, unflagged, draft or deleted"
            ));
        }
    })
}

/// `2024-01-31`.
fn date(value: &str) -> Result<CivilDate, String> {
    let wrong = || format!("{value}: a date is written as 2024-01-31");
    let mut parts = value.splitn(3, '-');
    let mut next = || parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit())).ok_or_else(wrong);
    let (year, month, day) = (next()?.parse(), next()?.parse(), next()?.parse());
    let (Ok(year), Ok(month), Ok(day)) = (year, month, day) else { return Err(wrong()) };
    CivilDate::new(year, month, day).ok_or_else(wrong)
}

/// Octets, with `k` or `M` for thousands and millions of them (of 1024 each).
fn octets(value: &str) -> Result<u64, String> {
    let (digits, unit) = match value.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => value.strip_suffix(['m', 'M']).map_or((value, 1), |digits| (digits, 1 << 20)),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.ok_or_else(|| format!("{value}: a size is written as 5000, 20k or 1M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queries(text: &str) -> Vec<Query> {
        let terms = Terms::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        terms.terms.iter().map(|term| query_of(term, None).expect("understood before")).collect()
    }

    #[test]
    fn known_answers() {
        let header = |name: &str, value: &str| Query::Header(name.to_owned(), value.to_owned());
        let text = |value: &str| Query::Text(value.to_owned());
        assert_eq!(
            queries("from:ann subject:\"budget 2026\" lunch"),
            [header("from", "ann"), header("subject", "budget 2026"), text("lunch")]
        );
        assert_eq!(
            queries("  \"from:ann\"  body:\"b c\"x"),
            [text("from:ann"), Query::Body("b c".to_owned()), text("x")]
        );
        let day = CivilDate::new(2024, 1, 31).unwrap();
        assert_eq!(
            queries("before:2024-01-31 after:2024-01-31 on:2024-01-31"),
            [
                Query::Internal(DateTest::Before(day)),
                Query::Internal(DateTest::Since(day)),
                Query::Internal(DateTest::On(day))
            ]
        );
        assert_eq!(
            queries("larger:20k smaller:1M larger:7"),
            [Query::Larger(20 << 10), Query::Smaller(1 << 20), Query::Larger(7)]
        );
        assert_eq!(
            queries("is:unread header:List-Id header:X-Mailer=mutt header:X-Mailer=\"mutt 1=2\" header:To="),
            [
                Query::Not(Box::new(Query::HasFlag(Flags::system(SystemFlag::Seen)))),
                header("List-Id", ""),
                header("X-Mailer", "mutt"),
                header("X-Mailer", "mutt 1=2"),
                header("To", ""),
            ]
        );
        assert_eq!(
            queries(r#"subject:"say \"hi\" \\ to C:\temp" x\y"#),
            [header("subject", r#"say "hi" \ to C:\temp"#), text(r"x\y")]
        );
        assert_eq!(queries("a-b@x \"http://x\" 1.5"), [text("a-b@x"), text("http://x"), text("1.5")]);
    }

    #[test]
    fn terms_can_be_negated() {
        let terms = Terms::parse("-from:ann -has:attachment -\"x y\"").unwrap();
        assert_eq!(terms.attachment, Some(false));
        assert!(terms.terms.iter().all(|term| term.is_negated));
        assert_eq!(terms.terms[1].value, "x y");
        assert_eq!(Terms::parse("has:attachment").unwrap().attachment, Some(true));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, told) in [
            ("", "nothing to look for"),
            ("  ", "nothing to look for"),
            ("\"open \\\"", "not closed"),
            ("from:", "without a value"),
            ("\"open", "not closed"),
            ("form:ann", "from, to"),
            ("before:2024-13-01", "2024-01-31"),
            ("on:+024-01-01", "2024-01-31"),
            ("larger:big", "20k"),
            ("is:new", "unseen"),
            ("has:image", "has:attachment"),
            ("header:=x", "needs a name"),
        ] {
            let error = Terms::parse(text).expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
