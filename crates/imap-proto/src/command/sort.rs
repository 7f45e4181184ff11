//! SORT and THREAD with their UID forms (RFC 5256 §5; RFC 5957, RFC 5267 §3).

use super::search::{SearchKey, SearchReturn, astring_text, search_keys, search_return_opts, write_program};
use super::write::CommandWriter;
use crate::error::Parse;
use crate::limits;
use crate::scan::Scan;

/// SORT (RFC 5256 §5 sort).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    /// Whether the result is wanted as UIDs.
    pub uid: bool,
    /// `RETURN (...)` (RFC 5267 §3); `None` asks for an untagged SORT response.
    pub returns: Option<SearchReturn>,
    /// By what, the most important first; one or more.
    pub criteria: Vec<SortCriterion>,
    /// The charset, as sent.
    pub charset: String,
    /// What is searched for.
    pub key: SearchKey,
}

/// A sort-criterion (RFC 5256 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortCriterion {
    /// `REVERSE`
    pub reverse: bool,
    /// The key.
    pub key: SortKey,
}

/// A sort-key (RFC 5256 §5, RFC 5957 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// `ARRIVAL`
    Arrival,
    /// `CC`
    Cc,
    /// `DATE`
    Date,
    /// `DISPLAYFROM`
    DisplayFrom,
    /// `DISPLAYTO`
    DisplayTo,
    /// `FROM`
    From,
    /// `SIZE`
    Size,
    /// `SUBJECT`
    Subject,
    /// `TO`
    To,
}

/// Each key and its name.
const SORT_KEYS: [(SortKey, &str); 9] = [
    (SortKey::Arrival, "ARRIVAL"),
    (SortKey::Cc, "CC"),
    (SortKey::Date, "DATE"),
    (SortKey::DisplayFrom, "DISPLAYFROM"),
    (SortKey::DisplayTo, "DISPLAYTO"),
    (SortKey::From, "FROM"),
    (SortKey::Size, "SIZE"),
    (SortKey::Subject, "SUBJECT"),
    (SortKey::To, "TO"),
];

/// THREAD (RFC 5256 §5 thread).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Whether the result is wanted as UIDs.
    pub uid: bool,
    /// How.
    pub algorithm: ThreadAlgorithm,
    /// The charset, as sent.
    pub charset: String,
    /// What is searched for.
    pub key: SearchKey,
}

/// A thread-alg (RFC 5256 §5) of those that are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadAlgorithm {
    /// `ORDEREDSUBJECT`
    OrderedSubject,
    /// `REFERENCES`
    References,
    /// `REFS` (draft-ietf-morg-inthread)
    Refs,
}

const THREAD_ALGORITHMS: [(ThreadAlgorithm, &str); 3] = [
    (ThreadAlgorithm::OrderedSubject, "ORDEREDSUBJECT"),
    (ThreadAlgorithm::References, "REFERENCES"),
    (ThreadAlgorithm::Refs, "REFS"),
];

// RFC 5256 §5 sort = ["UID" SP] "SORT" SP sort-criteria SP search-criteria
// RFC 5267 §5 extended-sort = ["UID" SP] "SORT" search-return-opts SP sort-criteria SP search-criteria
pub(super) fn sort(scan: &mut Scan, uid: bool) -> Parse<Sort> {
    scan.sp()?;
    let returns = search_return_opts(scan)?;
    let criteria = scan.list1(limits::SORT_CRITERIA_MAX, "sort_criteria_max", sort_criterion)?;
    let (charset, key) = search_criteria(scan)?;
    Ok(Sort { uid, returns, criteria, charset, key })
}

// RFC 5256 §5 sort-criterion = ["REVERSE" SP] sort-key
fn sort_criterion(scan: &mut Scan) -> Parse<SortCriterion> {
    let reverse = scan.eat_word("REVERSE");
    if reverse {
        scan.sp()?;
    }
    let before = scan.clone();
    let name = scan.word("a sort key")?;
    match SORT_KEYS.iter().find(|(_, known)| *known == name) {
        Some((key, _)) => Ok(SortCriterion { reverse, key: *key }),
        None => before.error("a sort key"),
    }
}

// RFC 5256 §5 thread = ["UID" SP] "THREAD" SP thread-alg SP search-criteria
pub(super) fn thread(scan: &mut Scan, uid: bool) -> Parse<Thread> {
    scan.sp()?;
    let before = scan.clone();
    let name = scan.word("a threading algorithm")?;
    let Some((algorithm, _)) = THREAD_ALGORITHMS.iter().find(|(_, known)| *known == name) else {
        return before.error("a threading algorithm");
    };
    let (charset, key) = search_criteria(scan)?;
    Ok(Thread { uid, algorithm: *algorithm, charset, key })
}

// RFC 5256 §5 search-criteria = charset 1*(SP search-key), with the space before it
fn search_criteria(scan: &mut Scan) -> Parse<(String, SearchKey)> {
    scan.sp()?;
    let charset = astring_text(scan, "a charset")?;
    scan.sp()?;
    Ok((charset, search_keys(scan, &mut 0)?))
}

impl Sort {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        if let Some(returns) = &self.returns {
            returns.write(writer);
        }
        writer.raw(" ");
        writer.list(&self.criteria, |writer, criterion| {
            writer.raw(if criterion.reverse { "REVERSE " } else { "" });
            let name = SORT_KEYS.iter().find(|(key, _)| *key == criterion.key);
            writer.raw(name.map_or("", |(_, name)| name));
        });
        write_program(&self.charset, &self.key, writer);
    }
}

impl Thread {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let name = THREAD_ALGORITHMS.iter().find(|(algorithm, _)| *algorithm == self.algorithm);
        writer.sp(name.map_or("", |(_, name)| name));
        write_program(&self.charset, &self.key, writer);
    }
}
