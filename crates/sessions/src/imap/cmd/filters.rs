//! Search keys that the account keeps under a name (RFC 5466): FILTER is replaced by them before a search begins.

use imap_proto::command::{SearchKey, search_criteria};
use imap_proto::limits::SEARCH_KEYS_MAX;
use store::Metadata;

use crate::imap::reply::{Done, Stop};
use crate::imap::state::Session;

/// Filters inside filters, at most: RFC 5466 §3.1 wants three. What is deeper, a loop for one, counts as not there.
const FILTER_DEPTH_MAX: usize = 5;

/// Where filters are kept; what is private is looked for first (RFC 5466 §3.1).
const ROOTS: [&str; 2] = ["/private/filters/values/", "/shared/filters/values/"];

/// The name of the filter that an entry is.
pub(super) fn name_of(entry: &str) -> Option<&str> {
    ROOTS.iter().find_map(|root| entry.strip_prefix(root))
}

/// Whether SEARCH can name it: RFC 5466 §4 filter-name = 1*<any ATOM-CHAR except "/">.
pub(super) fn is_name(name: &str) -> bool {
    let is_atom_char = |octet: u8| octet.is_ascii_graphic() && !b"(){%*\"\\]/".contains(&octet);
    !name.is_empty() && name.bytes().all(is_atom_char)
}

/// The key with what each FILTER in it stands for. `charset`: that of the command.
pub(super) fn expand(session: &Session, charset: Option<&str>, key: SearchKey) -> Result<SearchKey, Stop> {
    if !has_filter(&key) {
        return Ok(key);
    }
    // RFC 5466 §3.1: "the use of the FILTER search key implies the CHARSET UTF-8".
    if charset.is_some_and(|name| !name.eq_ignore_ascii_case("UTF-8") && !name.eq_ignore_ascii_case("US-ASCII")) {
        return Err(Done::bad("FILTER goes with UTF-8").with_code("BADCHARSET (US-ASCII UTF-8)").into());
    }
    let metadata = session.account()?.metadata(None)?;
    Expansion { metadata, keys: 0 }.key(key, 0)
}

fn has_filter(key: &SearchKey) -> bool {
    match key {
        SearchKey::Filter(_) => true,
        SearchKey::And(keys) => keys.iter().any(has_filter),
        SearchKey::Or(a, b) => has_filter(a) || has_filter(b),
        SearchKey::Not(key) => has_filter(key),
        _ => false,
    }
}

struct Expansion {
    metadata: Metadata,
    /// Keys so far: filters of filters grow fast.
    keys: usize,
}

impl Expansion {
    fn key(&mut self, key: SearchKey, depth: usize) -> Result<SearchKey, Stop> {
        self.keys += 1;
        if self.keys > SEARCH_KEYS_MAX {
            return Err(Done::no("A limit was met (limit search_keys_max)").with_code("LIMIT").into());
        }
        Ok(match key {
            SearchKey::And(keys) => {
                SearchKey::And(keys.into_iter().map(|key| self.key(key, depth)).collect::<Result<_, _>>()?)
            }
            SearchKey::Or(a, b) => SearchKey::Or(Box::new(self.key(*a, depth)?), Box::new(self.key(*b, depth)?)),
            SearchKey::Not(key) => SearchKey::Not(Box::new(self.key(*key, depth)?)),
            SearchKey::Filter(name) => {
                let undefined = || Done::no("There is no such filter").with_code(format!("UNDEFINED-FILTER {name}"));
                // Names of entries are case-insensitive (RFC 5464 §3.2).
                let lower = name.to_ascii_lowercase();
                let mut values = ROOTS.iter().filter_map(|root| self.metadata.value(&format!("{root}{lower}")));
                let value = values.next().filter(|_| depth < FILTER_DEPTH_MAX).ok_or_else(undefined)?;
                // One that cannot be read any more is as good as none.
                let inner = search_criteria(value).map_err(|_| undefined())?;
                self.key(inner, depth + 1)?
            }
            key => key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "on-the-road", "x.1_$&!#'+,:;<=>?@^`|}~["] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "a/b", "a b", "a]", "(", ")", "{", "%", "*", "\"", "\\", "\u{e9}", "a\n"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert_eq!(name_of("/private/filters/values/x"), Some("x"));
        assert_eq!(name_of("/shared/filters/values/x/y"), Some("x/y"));
        assert_eq!(name_of("/shared/filters/descriptions/x"), None);
    }
}
