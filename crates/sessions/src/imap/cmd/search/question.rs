//! Search keys as a query of the store (RFC 9051 §6.4.4 and the extensions that `imap_proto::command::Search` names).

use imap_proto::SequenceSet;
use imap_proto::command::{CommandBody, CommandError, CommandErrorKind, SearchKey};
use model::{EmailId, Flags, SystemFlag, ThreadId, Uid, UidSet};
use store::View;
use store::search::{DateTest, Query};

use crate::imap::reply::{Done, Stop};

/// Whether the answer has MODSEQ in it (RFC 7162 §3.1.5).
pub(crate) fn asks_for_modseq(key: &SearchKey) -> bool {
    match key {
        SearchKey::ModSeq { .. } => true,
        SearchKey::And(keys) => keys.iter().any(asks_for_modseq),
        SearchKey::Or(a, b) => asks_for_modseq(a) || asks_for_modseq(b),
        SearchKey::Not(key) => asks_for_modseq(key),
        _ => false,
    }
}

/// The key as a query of the store about `view`, where `$` stands for `saved`. Its depth is bounded by the grammar's limit on nesting.
pub(crate) fn question(key: &SearchKey, charset: Option<&str>, view: &View, saved: &UidSet) -> Result<Query, Stop> {
    let text = |bytes: &[u8]| decode(bytes, charset);
    let header = |name: &str, bytes: &[u8]| Ok::<_, Stop>(Query::Header(name.to_owned(), text(bytes)?));
    let nothing = || Query::Not(Box::new(Query::All));
    let not = |query| Query::Not(Box::new(query));
    let flag = |flag: &SystemFlag| Query::HasFlag(Flags::system(*flag));
    // A keyword that the mailbox has never seen is set nowhere.
    let keyword = |keyword| match view.keywords().find(keyword) {
        Some(index) => Query::HasFlag(Flags::keyword(index)),
        None => nothing(),
    };
    Ok(match key {
        SearchKey::All => Query::All,
        SearchKey::And(keys) => {
            Query::And(keys.iter().map(|key| question(key, charset, view, saved)).collect::<Result<_, _>>()?)
        }
        SearchKey::Or(a, b) => {
            Query::Or(Box::new(question(a, charset, view, saved)?), Box::new(question(b, charset, view, saved)?))
        }
        SearchKey::Not(key) => not(question(key, charset, view, saved)?),
        SearchKey::Flag(system) => flag(system),
        SearchKey::Unflag(system) => not(flag(system)),
        SearchKey::Keyword(name) => keyword(name),
        SearchKey::Unkeyword(name) => not(keyword(name)),
        SearchKey::New => Query::And(vec![Query::Recent, not(flag(&SystemFlag::Seen))]),
        SearchKey::Old => not(Query::Recent),
        SearchKey::Recent => Query::Recent,
        SearchKey::Bcc(value) => header("Bcc", value)?,
        SearchKey::Cc(value) => header("Cc", value)?,
        SearchKey::From(value) => header("From", value)?,
        SearchKey::Subject(value) => header("Subject", value)?,
        SearchKey::To(value) => header("To", value)?,
        SearchKey::Header { name, value } => header(&String::from_utf8_lossy(name), value)?,
        SearchKey::Body(value) => Query::Body(text(value)?),
        SearchKey::Text(value) => Query::Text(text(value)?),
        SearchKey::Before(day) => Query::Internal(DateTest::Before(*day)),
        SearchKey::On(day) => Query::Internal(DateTest::On(*day)),
        SearchKey::Since(day) => Query::Internal(DateTest::Since(*day)),
        SearchKey::SentBefore(day) => Query::Sent(DateTest::Before(*day)),
        SearchKey::SentOn(day) => Query::Sent(DateTest::On(*day)),
        SearchKey::SentSince(day) => Query::Sent(DateTest::Since(*day)),
        SearchKey::SavedBefore(day) => Query::Saved(DateTest::Before(*day)),
        SearchKey::SavedOn(day) => Query::Saved(DateTest::On(*day)),
        SearchKey::SavedSince(day) => Query::Saved(DateTest::Since(*day)),
        // RFC 8514 §4.3: every mailbox here keeps save dates.
        SearchKey::SaveDateSupported => Query::All,
        SearchKey::Older(seconds) => Query::Older(*seconds),
        SearchKey::Younger(seconds) => Query::Younger(*seconds),
        SearchKey::Larger(octets) => Query::Larger(*octets),
        SearchKey::Smaller(octets) => Query::Smaller(*octets),
        // Numbers beyond the end match nothing: the rule that they are BAD names COPY, FETCH and STORE (RFC 9051 §9 seq-number).
        SearchKey::Sequence(set) => {
            let named = set.resolve(view.exists());
            Query::Seqs(if set.saved { named.union(&view.seqs_of(saved)) } else { named })
        }
        SearchKey::Uid(set) => {
            let named = set.resolve(view.last_uid().map_or(0, Uid::get));
            Query::Uids(if set.saved { named.union(saved) } else { named })
        }
        // RFC 7162 §3.1.5: the entry may be ignored by a server that keeps one modseq a message.
        SearchKey::ModSeq { least, .. } => Query::ModSeq(*least),
        SearchKey::EmailId(id) => EmailId::parse(id).map_or_else(nothing, Query::EmailId),
        SearchKey::ThreadId(id) => ThreadId::parse(id).map_or_else(nothing, Query::ThreadId),
        // A session has replaced those that it has; nobody else has any.
        SearchKey::Filter(name) => {
            return Err(Done::no("There is no such filter").with_code(format!("UNDEFINED-FILTER {name}")).into());
        }
    })
}

/// The keys of a SEARCH command (RFC 9051 §9 search-program), as an administrator writes them in UTF-8, as a query of the store about `view`.
/// The error says what is wrong.
pub fn search_query(keys: &str, view: &View) -> Result<Query, String> {
    const BEFORE: &str = "a SEARCH CHARSET UTF-8 ";
    // Strings with line ends stand as literals, `{4+}` and such; a line end elsewhere the grammar refuses.
    let command = imap_proto::command::command(format!("{BEFORE}{keys}").as_bytes());
    match command.map(|command| command.body) {
        Ok(CommandBody::Search(search)) => match question(&search.key, Some("UTF-8"), view, &UidSet::new()) {
            Ok(query) => Ok(query),
            Err(Stop::Done(done)) => Err(done.text.into_owned()),
            Err(Stop::Error(error) | Stop::Broken(error)) => Err(error.to_string()),
        },
        Err(CommandError { kind: CommandErrorKind::Syntax(error), .. }) => {
            let at = error.at.saturating_sub(BEFORE.len());
            Err(format!("search keys: expected {} at octet {at}", error.expected))
        }
        _ => Err("these are no search keys".to_owned()),
    }
}

/// The key with all numbers in it as UIDs, as they are now: what is searched for again when the mailbox has changed.
///
/// RFC 5267 §4.3: "any message sequence numbers used in the search program are evaluated at the time the command is received".
pub(crate) fn fixed(key: &SearchKey, view: &View, saved: &UidSet) -> SearchKey {
    let one = |key: &SearchKey| Box::new(fixed(key, view, saved));
    match key {
        SearchKey::And(keys) => SearchKey::And(keys.iter().map(|key| fixed(key, view, saved)).collect()),
        SearchKey::Or(a, b) => SearchKey::Or(one(a), one(b)),
        SearchKey::Not(key) => SearchKey::Not(one(key)),
        SearchKey::Sequence(set) => {
            let named = view.uids_of(&set.resolve(view.exists()));
            SearchKey::Uid(SequenceSet::from(&if set.saved { named.union(saved) } else { named }))
        }
        SearchKey::Uid(set) => {
            let named = set.resolve(view.last_uid().map_or(0, Uid::get));
            SearchKey::Uid(SequenceSet::from(&if set.saved { named.union(saved) } else { named }))
        }
        key => key.clone(),
    }
}

/// Whether strings can be read in this charset.
pub(crate) fn known(charset: Option<&str>) -> Result<(), Stop> {
    match charset {
        Some(name) if !mime::charset_known(name.as_bytes()) => {
            Err(Done::no("Unknown charset").with_code("BADCHARSET (US-ASCII UTF-8)").into())
        }
        _ => Ok(()),
    }
}

/// A search string as text. Without CHARSET it is UTF-8 (RFC 9051 §6.4.4; US-ASCII in RFC 3501, which is a subset).
fn decode(bytes: &[u8], charset: Option<&str>) -> Result<String, Stop> {
    let charset = charset.unwrap_or("UTF-8");
    if charset.eq_ignore_ascii_case("UTF-8") || charset.eq_ignore_ascii_case("US-ASCII") {
        return String::from_utf8(bytes.to_vec())
            .map_err(|_| Done::bad("A search string is not in its charset").into());
    }
    Ok(mime::decode_charset(charset.as_bytes(), bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_in_their_charset() {
        assert_eq!(decode("ü".as_bytes(), None).unwrap(), "ü");
        assert_eq!(decode(b"\xfc", Some("iso-8859-1")).unwrap(), "ü");
        assert!(decode(b"\xfc", Some("UTF-8")).is_err());
        assert!(known(None).is_ok() && known(Some("us-ascii")).is_ok() && known(Some("UTF-8")).is_ok());
        assert!(known(Some("x-nonsense")).is_err());
    }
}
