//! SEARCH and UID SEARCH (RFC 9051 §6.4.4; RFC 4731, RFC 5182, RFC 5032, RFC 5267 §4, RFC 5465 §7, RFC 7162 §3.1.5, RFC 8474 §6,
//! RFC 8514 §4.3, RFC 9394).

use model::{CivilDate, Keyword, ModSeq, SystemFlag};

use super::FetchAtt;
use super::fetch::{optional_fetch_atts, write_optional_fetch_atts};
use super::write::CommandWriter;
use crate::chars::is_objectid_char;
use crate::date::{date, write_date};
use crate::encode::quoted;
use crate::error::Parse;
use crate::flag::{flag, flag_keyword};
use crate::scan::{Scan, ascii};
use crate::sequence::{partial_range, sequence_set, write_partial_range, write_sequence_set};
use crate::{FlagName, PartialRange, SequenceSet, limits};

/// SEARCH (RFC 9051 §9 search).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Whether the result is wanted as UIDs.
    pub uid: bool,
    /// `RETURN (...)`; `None` asks for an untagged SEARCH response in IMAP4rev1.
    pub returns: Option<SearchReturn>,
    /// `CHARSET`, as sent; `None` is US-ASCII in IMAP4rev1 and UTF-8 in IMAP4rev2.
    pub charset: Option<String>,
    /// What is searched for; several keys in a row are an [`SearchKey::And`].
    pub key: SearchKey,
}

/// Return options of SEARCH (RFC 9051 §6.4.4.1). `RETURN ()` is read as `RETURN (ALL)`, as it is defined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchReturn {
    /// `MIN`
    pub min: bool,
    /// `MAX`
    pub max: bool,
    /// `ALL`
    pub all: bool,
    /// `COUNT`
    pub count: bool,
    /// `SAVE` (RFC 5182)
    pub save: bool,
    /// `PARTIAL` (RFC 9394 §3.1, RFC 5267 §4.4)
    pub partial: Option<PartialRange>,
    /// `CONTEXT` (RFC 5267 §4.2): a hint that the same will be asked again.
    pub context: bool,
    /// `UPDATE` (RFC 5267 §4.3), with what is fetched of new messages that match (RFC 5465 §7).
    pub update: Option<Vec<FetchAtt>>,
}

/// A search key (RFC 9051 §9 search-key). Strings are octets in the search's charset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchKey {
    /// `ALL`
    All,
    /// All of these; one or more.
    And(Vec<SearchKey>),
    /// `OR`
    Or(Box<SearchKey>, Box<SearchKey>),
    /// `NOT`
    Not(Box<SearchKey>),
    /// `ANSWERED`, `DELETED`, `DRAFT`, `FLAGGED`, `SEEN`
    Flag(SystemFlag),
    /// `UNANSWERED`, `UNDELETED`, `UNDRAFT`, `UNFLAGGED`, `UNSEEN`
    Unflag(SystemFlag),
    /// `KEYWORD`
    Keyword(Keyword),
    /// `UNKEYWORD`
    Unkeyword(Keyword),
    /// `NEW` (RFC 3501 §6.4.4): RECENT and UNSEEN.
    New,
    /// `OLD` (RFC 3501 §6.4.4): not RECENT.
    Old,
    /// `RECENT` (RFC 3501 §6.4.4)
    Recent,
    /// `BCC`
    Bcc(Vec<u8>),
    /// `BODY`
    Body(Vec<u8>),
    /// `CC`
    Cc(Vec<u8>),
    /// `FROM`
    From(Vec<u8>),
    /// `SUBJECT`
    Subject(Vec<u8>),
    /// `TEXT`
    Text(Vec<u8>),
    /// `TO`
    To(Vec<u8>),
    /// `HEADER`: an empty value asks whether the field is there.
    Header {
        /// The field's name.
        name: Vec<u8>,
        /// What it must contain.
        value: Vec<u8>,
    },
    /// `BEFORE`: the internal date.
    Before(CivilDate),
    /// `ON`
    On(CivilDate),
    /// `SINCE`
    Since(CivilDate),
    /// `SENTBEFORE`: the Date field.
    SentBefore(CivilDate),
    /// `SENTON`
    SentOn(CivilDate),
    /// `SENTSINCE`
    SentSince(CivilDate),
    /// `SAVEDBEFORE` (RFC 8514 §4.3)
    SavedBefore(CivilDate),
    /// `SAVEDON`
    SavedOn(CivilDate),
    /// `SAVEDSINCE`
    SavedSince(CivilDate),
    /// `SAVEDATESUPPORTED`
    SaveDateSupported,
    /// `OLDER` (RFC 5032 §3): seconds; the internal date is at least so far back.
    Older(u32),
    /// `YOUNGER` (RFC 5032 §3): seconds; the internal date is at most so far back.
    Younger(u32),
    /// `LARGER`: more octets than this.
    Larger(u64),
    /// `SMALLER`: fewer octets than this.
    Smaller(u64),
    /// A sequence set.
    Sequence(SequenceSet),
    /// `UID`
    Uid(SequenceSet),
    /// `MODSEQ` (RFC 7162 §3.1.5)
    ModSeq {
        /// The metadata item, if one is named. A server without modseqs per item ignores it.
        entry: Option<SearchModSeqEntry>,
        /// The least mod-sequence that matches.
        least: ModSeq,
    },
    /// `EMAILID` (RFC 8474 §6): an object id as sent.
    EmailId(String),
    /// `THREADID` (RFC 8474 §6): an object id as sent.
    ThreadId(String),
    /// `FILTER` (RFC 5466 §3.1): the keys that are kept under this name.
    Filter(String),
}

/// The metadata item of a MODSEQ search key (RFC 7162 §7 search-modseq-ext).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchModSeqEntry {
    /// The flag of `"/flags/<flag>"`.
    pub flag: FlagName,
    /// Whose.
    pub entry_type: EntryType,
}

/// entry-type-req (RFC 7162 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// `priv`
    Private,
    /// `shared`
    Shared,
    /// `all`
    All,
}

// RFC 9051 §9 search = "SEARCH" [search-return-opts] SP search-program
pub(super) fn search(scan: &mut Scan, uid: bool) -> Parse<Search> {
    scan.sp()?;
    let returns = search_return_opts(scan)?;
    let (charset, key) = search_program(scan)?;
    Ok(Search { uid, returns, charset, key })
}

// RFC 9051 §9 search-program = ["CHARSET" SP charset SP] search-key *(SP search-key)
pub(super) fn search_program(scan: &mut Scan) -> Parse<(Option<String>, SearchKey)> {
    let mut charset = None;
    if scan.eat_word("CHARSET") {
        scan.sp()?;
        charset = Some(astring_text(scan, "a charset")?);
        scan.sp()?;
    }
    Ok((charset, search_keys(scan, &mut 0)?))
}

/// An astring that is UTF-8.
pub(super) fn astring_text(scan: &mut Scan, expected: &'static str) -> Parse<String> {
    let before = scan.clone();
    match String::from_utf8(scan.astring(expected)?) {
        Ok(text) => Ok(text),
        Err(_) => before.error(expected),
    }
}

// RFC 9051 §9 search-return-opts = SP "RETURN" SP "(" [search-return-opt *(SP search-return-opt)] ")"; here the space stands behind.
pub(super) fn search_return_opts(scan: &mut Scan) -> Parse<Option<SearchReturn>> {
    if !scan.eat_word("RETURN") {
        return Ok(None);
    }
    scan.sp()?;
    let start = scan.clone();
    let mut returns = SearchReturn::default();
    scan.parenthesised(|scan| {
        while !matches!(scan.peek(), None | Some(b')')) {
            let before = scan.clone();
            match scan.word("a return option of SEARCH")?.as_str() {
                "MIN" => returns.min = true,
                "MAX" => returns.max = true,
                "ALL" => returns.all = true,
                "COUNT" => returns.count = true,
                "SAVE" => returns.save = true,
                "CONTEXT" => returns.context = true,
                // RFC 5465 §8 modifier-update = "UPDATE" [ "(" fetch-att *(SP fetch-att) ")" ]; its example has a space before the list.
                "UPDATE" => returns.update = Some(optional_fetch_atts(scan)?),
                "PARTIAL" if returns.partial.is_none() => {
                    scan.sp()?;
                    returns.partial = Some(partial_range(scan)?);
                }
                _ => return before.error("a return option of SEARCH"),
            }
            scan.more_items();
        }
        Ok(())
    })?;
    if returns == SearchReturn::default() {
        returns.all = true;
    }
    if returns.all && returns.partial.is_some() {
        // RFC 9394 §3.1: a command with both is BAD.
        return start.error("ALL or PARTIAL, not both");
    }
    scan.sp()?;
    Ok(Some(returns))
}

/// `search-key *(SP search-key)`: several are an And.
pub(super) fn search_keys(scan: &mut Scan, count: &mut usize) -> Parse<SearchKey> {
    let first = search_key(scan, count)?;
    if !scan.more_items() {
        return Ok(first);
    }
    let mut keys = vec![first];
    loop {
        keys.push(search_key(scan, count)?);
        if !scan.more_items() {
            return Ok(SearchKey::And(keys));
        }
    }
}

// RFC 9051 §9 search-key
fn search_key(scan: &mut Scan, count: &mut usize) -> Parse<SearchKey> {
    *count += 1;
    if *count > limits::SEARCH_KEYS_MAX {
        return scan.over_limit("search_keys_max");
    }
    match scan.peek() {
        Some(b'(') => return scan.parenthesised(|scan| search_keys(scan, count)),
        Some(b'0'..=b'9' | b'*' | b'$') => return sequence_set(scan).map(SearchKey::Sequence),
        _ => {}
    }
    let before = scan.clone();
    let name = scan.word("a search key")?;
    match name.as_str() {
        "NOT" => {
            let key = scan.nested(|scan| sp_search_key(scan, count))?;
            Ok(SearchKey::Not(Box::new(key)))
        }
        "OR" => {
            let first = scan.nested(|scan| sp_search_key(scan, count))?;
            let second = scan.nested(|scan| sp_search_key(scan, count))?;
            Ok(SearchKey::Or(Box::new(first), Box::new(second)))
        }
        _ => match search_key_alone(&name) {
            Some(key) => Ok(key),
            None => match search_key_with_argument(&name, scan)? {
                Some(key) => Ok(key),
                None => before.error("a search key"),
            },
        },
    }
}

fn sp_search_key(scan: &mut Scan, count: &mut usize) -> Parse<SearchKey> {
    scan.sp()?;
    search_key(scan, count)
}

/// The keys without an argument.
fn search_key_alone(name: &str) -> Option<SearchKey> {
    Some(match name {
        "ALL" => SearchKey::All,
        "ANSWERED" => SearchKey::Flag(SystemFlag::Answered),
        "DELETED" => SearchKey::Flag(SystemFlag::Deleted),
        "DRAFT" => SearchKey::Flag(SystemFlag::Draft),
        "FLAGGED" => SearchKey::Flag(SystemFlag::Flagged),
        "SEEN" => SearchKey::Flag(SystemFlag::Seen),
        "UNANSWERED" => SearchKey::Unflag(SystemFlag::Answered),
        "UNDELETED" => SearchKey::Unflag(SystemFlag::Deleted),
        "UNDRAFT" => SearchKey::Unflag(SystemFlag::Draft),
        "UNFLAGGED" => SearchKey::Unflag(SystemFlag::Flagged),
        "UNSEEN" => SearchKey::Unflag(SystemFlag::Seen),
        "NEW" => SearchKey::New,
        "OLD" => SearchKey::Old,
        "RECENT" => SearchKey::Recent,
        "SAVEDATESUPPORTED" => SearchKey::SaveDateSupported,
        _ => return None,
    })
}

/// The keys with an argument that is no search key; `None` when no key has this name.
fn search_key_with_argument(name: &str, scan: &mut Scan) -> Parse<Option<SearchKey>> {
    let text: Option<fn(Vec<u8>) -> SearchKey> = match name {
        "BCC" => Some(SearchKey::Bcc),
        "BODY" => Some(SearchKey::Body),
        "CC" => Some(SearchKey::Cc),
        "FROM" => Some(SearchKey::From),
        "SUBJECT" => Some(SearchKey::Subject),
        "TEXT" => Some(SearchKey::Text),
        "TO" => Some(SearchKey::To),
        _ => None,
    };
    let day: Option<fn(CivilDate) -> SearchKey> = match name {
        "BEFORE" => Some(SearchKey::Before),
        "ON" => Some(SearchKey::On),
        "SINCE" => Some(SearchKey::Since),
        "SENTBEFORE" => Some(SearchKey::SentBefore),
        "SENTON" => Some(SearchKey::SentOn),
        "SENTSINCE" => Some(SearchKey::SentSince),
        "SAVEDBEFORE" => Some(SearchKey::SavedBefore),
        "SAVEDON" => Some(SearchKey::SavedOn),
        "SAVEDSINCE" => Some(SearchKey::SavedSince),
        _ => None,
    };
    let known = text.is_some()
        || day.is_some()
        || matches!(name, "KEYWORD" | "UNKEYWORD" | "HEADER" | "OLDER" | "YOUNGER" | "LARGER" | "SMALLER")
        || matches!(name, "UID" | "MODSEQ" | "EMAILID" | "THREADID" | "FILTER");
    if !known {
        return Ok(None);
    }
    scan.sp()?;
    if let Some(key) = text {
        return Ok(Some(key(scan.astring("a string")?)));
    }
    if let Some(key) = day {
        return Ok(Some(key(date(scan)?)));
    }
    Ok(Some(match name {
        "KEYWORD" => SearchKey::Keyword(flag_keyword(scan)?),
        "UNKEYWORD" => SearchKey::Unkeyword(flag_keyword(scan)?),
        "HEADER" => {
            let name = scan.astring("a header field's name")?;
            scan.sp()?;
            SearchKey::Header { name, value: scan.astring("a string")? }
        }
        // RFC 5032 §4: nz-number, so that OLDER 0 is an error.
        "OLDER" => SearchKey::Older(scan.nz_number()?.get()),
        "YOUNGER" => SearchKey::Younger(scan.nz_number()?.get()),
        "LARGER" => SearchKey::Larger(scan.number64()?),
        "SMALLER" => SearchKey::Smaller(scan.number64()?),
        "UID" => SearchKey::Uid(sequence_set(scan)?),
        "MODSEQ" => search_modsequence(scan)?,
        "EMAILID" => SearchKey::EmailId(objectid(scan)?),
        "THREADID" => SearchKey::ThreadId(objectid(scan)?),
        "FILTER" => SearchKey::Filter(filter_name(scan)?),
        _ => return Ok(None),
    }))
}

// RFC 7162 §7 search-modsequence = "MODSEQ" [SP entry-name SP entry-type-req] SP mod-sequence-valzer
fn search_modsequence(scan: &mut Scan) -> Parse<SearchKey> {
    let mut entry = None;
    if scan.peek() == Some(b'"') {
        let before = scan.clone();
        let name = scan.quoted()?;
        let Some(flag) = entry_flag(&name) else { return before.error("\"/flags/\" and a flag") };
        scan.sp()?;
        let before = scan.clone();
        let entry_type = match scan.word("priv, shared or all")?.as_str() {
            "PRIV" => EntryType::Private,
            "SHARED" => EntryType::Shared,
            "ALL" => EntryType::All,
            _ => return before.error("priv, shared or all"),
        };
        scan.sp()?;
        entry = Some(SearchModSeqEntry { flag, entry_type });
    }
    Ok(SearchKey::ModSeq { entry, least: ModSeq(scan.number64()?) })
}

// RFC 7162 §7 entry-flag-name = DQUOTE "/flags/" attr-flag DQUOTE, here without the quotes and unescaped
fn entry_flag(name: &[u8]) -> Option<FlagName> {
    let mut scan = Scan::new(name);
    if !scan.eat_prefix("/flags/") {
        return None;
    }
    let flag = flag(&mut scan).ok()?;
    scan.rest().is_empty().then_some(flag)
}

// RFC 8474 §7 objectid = 1*255(ALPHA / DIGIT / "_" / "-")
pub(crate) fn objectid(scan: &mut Scan) -> Parse<String> {
    let before = scan.clone();
    let id = scan.take_while(is_objectid_char);
    if id.is_empty() || id.len() > 255 { before.error("an object id") } else { Ok(ascii(id).to_owned()) }
}

// RFC 5466 §4 filter-name = 1*<any ATOM-CHAR except "/">
fn filter_name(scan: &mut Scan) -> Parse<String> {
    let before = scan.clone();
    let name = scan.atom("a filter's name")?;
    if name.contains('/') { before.error("a filter's name") } else { Ok(name.to_owned()) }
}

impl Search {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        if let Some(returns) = &self.returns {
            returns.write(writer);
        }
        match &self.charset {
            Some(charset) => {
                writer.raw(" CHARSET");
                write_program(charset, &self.key, writer);
            }
            None => write_criteria(&self.key, writer),
        }
    }
}

impl SearchReturn {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let SearchReturn { min, max, all, count, save, partial, context, ref update } = *self;
        writer.raw(" RETURN ");
        let options = [
            (min, "MIN"),
            (max, "MAX"),
            (all, "ALL"),
            (count, "COUNT"),
            (save, "SAVE"),
            (partial.is_some(), "PARTIAL"),
            (context, "CONTEXT"),
            (update.is_some(), "UPDATE"),
        ];
        writer.list(options.iter().filter(|(on, _)| *on), |writer, (_, name)| {
            writer.raw(name);
            match (*name, partial, update) {
                ("PARTIAL", Some(range), _) => {
                    writer.raw(" ");
                    write_partial_range(&mut writer.out, range);
                }
                ("UPDATE", _, Some(items)) => write_optional_fetch_atts(items, writer),
                _ => {}
            }
        });
    }
}

/// `SP charset 1*(SP search-key)`
pub(super) fn write_program(charset: &str, key: &SearchKey, writer: &mut CommandWriter) {
    writer.raw(" ");
    writer.astring(charset.as_bytes());
    write_criteria(key, writer);
}

/// `1*(SP search-key)`
fn write_criteria(key: &SearchKey, writer: &mut CommandWriter) {
    writer.raw(" ");
    match key {
        SearchKey::And(keys) => write_search_keys(keys, writer),
        key => key.write(writer),
    }
}

fn write_search_keys(keys: &[SearchKey], writer: &mut CommandWriter) {
    for (n, key) in keys.iter().enumerate() {
        writer.raw(if n > 0 { " " } else { "" });
        key.write(writer);
    }
}

/// The key is the flag's name without its backslash.
fn flag_key(flag: SystemFlag) -> String {
    flag.as_str().trim_start_matches('\\').to_ascii_uppercase()
}

impl SearchKey {
    fn write(&self, writer: &mut CommandWriter) {
        let text = |writer: &mut CommandWriter, name: &str, value: &[u8]| {
            writer.raw(name);
            writer.raw(" ");
            writer.astring(value);
        };
        let day = |writer: &mut CommandWriter, name: &str, date: CivilDate| {
            writer.raw(name);
            writer.raw(" ");
            write_date(&mut writer.out, date);
        };
        let value = |writer: &mut CommandWriter, name: &str, number: u64| {
            writer.raw(name);
            writer.raw(" ");
            writer.number(number);
        };
        match self {
            SearchKey::All => writer.raw("ALL"),
            SearchKey::And(keys) => {
                writer.raw("(");
                write_search_keys(keys, writer);
                writer.raw(")");
            }
            SearchKey::Or(first, second) => {
                writer.raw("OR ");
                first.write(writer);
                writer.raw(" ");
                second.write(writer);
            }
            SearchKey::Not(key) => {
                writer.raw("NOT ");
                key.write(writer);
            }
            SearchKey::Flag(flag) => writer.raw(&flag_key(*flag)),
            SearchKey::Unflag(flag) => {
                writer.raw("UN");
                writer.raw(&flag_key(*flag));
            }
            SearchKey::Keyword(keyword) => {
                writer.raw("KEYWORD ");
                writer.raw(keyword.as_str());
            }
            SearchKey::Unkeyword(keyword) => {
                writer.raw("UNKEYWORD ");
                writer.raw(keyword.as_str());
            }
            SearchKey::New => writer.raw("NEW"),
            SearchKey::Old => writer.raw("OLD"),
            SearchKey::Recent => writer.raw("RECENT"),
            SearchKey::Bcc(octets) => text(writer, "BCC", octets),
            SearchKey::Body(octets) => text(writer, "BODY", octets),
            SearchKey::Cc(octets) => text(writer, "CC", octets),
            SearchKey::From(octets) => text(writer, "FROM", octets),
            SearchKey::Subject(octets) => text(writer, "SUBJECT", octets),
            SearchKey::Text(octets) => text(writer, "TEXT", octets),
            SearchKey::To(octets) => text(writer, "TO", octets),
            SearchKey::Header { name, value } => {
                text(writer, "HEADER", name);
                writer.raw(" ");
                writer.astring(value);
            }
            SearchKey::Before(date) => day(writer, "BEFORE", *date),
            SearchKey::On(date) => day(writer, "ON", *date),
            SearchKey::Since(date) => day(writer, "SINCE", *date),
            SearchKey::SentBefore(date) => day(writer, "SENTBEFORE", *date),
            SearchKey::SentOn(date) => day(writer, "SENTON", *date),
            SearchKey::SentSince(date) => day(writer, "SENTSINCE", *date),
            SearchKey::SavedBefore(date) => day(writer, "SAVEDBEFORE", *date),
            SearchKey::SavedOn(date) => day(writer, "SAVEDON", *date),
            SearchKey::SavedSince(date) => day(writer, "SAVEDSINCE", *date),
            SearchKey::SaveDateSupported => writer.raw("SAVEDATESUPPORTED"),
            SearchKey::Older(seconds) => value(writer, "OLDER", u64::from(*seconds)),
            SearchKey::Younger(seconds) => value(writer, "YOUNGER", u64::from(*seconds)),
            SearchKey::Larger(octets) => value(writer, "LARGER", *octets),
            SearchKey::Smaller(octets) => value(writer, "SMALLER", *octets),
            SearchKey::Sequence(set) => write_sequence_set(&mut writer.out, set),
            SearchKey::Uid(set) => {
                writer.raw("UID ");
                write_sequence_set(&mut writer.out, set);
            }
            SearchKey::ModSeq { entry, least } => {
                writer.raw("MODSEQ ");
                if let Some(SearchModSeqEntry { flag, entry_type }) = entry {
                    quoted(&mut writer.out, format!("/flags/{}", flag.as_str()).as_bytes());
                    writer.raw(match entry_type {
                        EntryType::Private => " priv ",
                        EntryType::Shared => " shared ",
                        EntryType::All => " all ",
                    });
                }
                writer.number(least.0);
            }
            SearchKey::EmailId(id) => {
                writer.raw("EMAILID ");
                writer.raw(id);
            }
            SearchKey::ThreadId(id) => {
                writer.raw("THREADID ");
                writer.raw(id);
            }
            SearchKey::Filter(name) => {
                writer.raw("FILTER ");
                writer.raw(name);
            }
        }
    }
}
