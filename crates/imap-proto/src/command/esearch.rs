//! ESEARCH, the search of several mailboxes (RFC 7377), and CANCELUPDATE (RFC 5267 §4.3.5).

use super::parse::mailbox;
use super::search::{Search, search_program, search_return_opts};
use super::write::CommandWriter;
use crate::error::Parse;
use crate::scan::Scan;
use crate::{MailboxArg, limits};

/// ESEARCH (RFC 7377 §4 esearch).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiSearch {
    /// Where; empty: the selected mailbox.
    pub sources: Vec<SearchSource>,
    /// What; the result is always wanted as UIDs.
    pub search: Search,
}

/// Mailboxes to search (RFC 7377 §2.2; RFC 5465 §6 filter-mailboxes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchSource {
    /// `selected`
    Selected,
    /// `inboxes`: where mail may be delivered to.
    Inboxes,
    /// `personal`: all of the user's own.
    Personal,
    /// `subscribed`
    Subscribed,
    /// `subtree`: these and all below them; one or more.
    Subtree(Vec<MailboxArg>),
    /// `subtree-one`: these and those one level below them.
    SubtreeOne(Vec<MailboxArg>),
    /// `mailboxes`: these.
    Mailboxes(Vec<MailboxArg>),
}

// RFC 7377 §4 esearch = "ESEARCH" [SP esearch-source-opts] [SP search-return-opts] SP search-program
pub(super) fn esearch(scan: &mut Scan) -> Parse<MultiSearch> {
    scan.sp()?;
    let mut sources = Vec::new();
    if scan.eat_word("IN") {
        // esearch-source-opts = "IN" SP "(" source-mbox [SP "(" scope-options ")"] ")"; there are no scope-options.
        scan.sp()?;
        sources = scan.list1(limits::SEARCH_SOURCES_MAX, "search_sources_max", filter_mailboxes)?;
        scan.sp()?;
    }
    let returns = search_return_opts(scan)?;
    let (charset, key) = search_program(scan)?;
    Ok(MultiSearch { sources, search: Search { uid: true, returns, charset, key } })
}

// RFC 5465 §8 filter-mailboxes, as RFC 7377 §4 changes it
pub(super) fn filter_mailboxes(scan: &mut Scan) -> Parse<SearchSource> {
    let before = scan.clone();
    let source: fn(Vec<MailboxArg>) -> SearchSource = match scan.word("a mailbox specifier")?.as_str() {
        "SELECTED" => return Ok(SearchSource::Selected),
        "INBOXES" => return Ok(SearchSource::Inboxes),
        "PERSONAL" => return Ok(SearchSource::Personal),
        "SUBSCRIBED" => return Ok(SearchSource::Subscribed),
        "SUBTREE" => SearchSource::Subtree,
        "SUBTREE-ONE" => SearchSource::SubtreeOne,
        "MAILBOXES" => SearchSource::Mailboxes,
        _ => return before.error("a mailbox specifier"),
    };
    scan.sp()?;
    // one-or-more-mailbox = mailbox / "(" mailbox *(SP mailbox) ")"
    Ok(source(match scan.peek() {
        Some(b'(') => scan.list1(limits::SEARCH_SOURCES_MAX, "search_sources_max", mailbox)?,
        _ => vec![mailbox(scan)?],
    }))
}

// RFC 5267 §5 "CANCELUPDATE" 1*(SP quoted)
pub(super) fn cancel_update(scan: &mut Scan) -> Parse<Vec<Vec<u8>>> {
    scan.sp()?;
    scan.items(limits::CANCELLED_TAGS_MAX, "cancelled_tags_max", |scan| scan.astring("a tag"))
}

impl MultiSearch {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        if !self.sources.is_empty() {
            writer.raw(" IN ");
            writer.list(&self.sources, |writer, source| source.write(writer));
        }
        self.search.write(writer);
    }
}

impl SearchSource {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let (name, mailboxes) = match self {
            SearchSource::Selected => ("selected", None),
            SearchSource::Inboxes => ("inboxes", None),
            SearchSource::Personal => ("personal", None),
            SearchSource::Subscribed => ("subscribed", None),
            SearchSource::Subtree(mailboxes) => ("subtree ", Some(mailboxes)),
            SearchSource::SubtreeOne(mailboxes) => ("subtree-one ", Some(mailboxes)),
            SearchSource::Mailboxes(mailboxes) => ("mailboxes ", Some(mailboxes)),
        };
        writer.raw(name);
        if let Some(mailboxes) = mailboxes {
            writer.list(mailboxes, |writer, mailbox| writer.astring(&mailbox.0));
        }
    }
}
