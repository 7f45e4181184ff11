//! LIST and the items of STATUS (RFC 9051 §6.3.9 and §6.3.11; RFC 5258, RFC 5819, RFC 6154, RFC 8438, RFC 8474, RFC 7889, RFC 7162).

use super::parse::mailbox;
use super::write::CommandWriter;
use crate::error::Parse;
use crate::scan::Scan;
use crate::{ListPattern, MailboxArg, limits};

/// LIST (RFC 9051 §9 list).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Which mailboxes.
    pub select: ListSelect,
    /// The reference name.
    pub reference: MailboxArg,
    /// The patterns: one or more. A single empty one in a LIST that is not `extended` asks for the delimiter and the root.
    pub patterns: Vec<ListPattern>,
    /// What to say of each.
    pub returns: ListReturn,
    /// Whether the command has selection options, several patterns or return options (RFC 5258 §3).
    pub extended: bool,
}

/// Selection options of LIST (RFC 9051 §6.3.9.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSelect {
    /// `SUBSCRIBED`
    pub subscribed: bool,
    /// `REMOTE`
    pub remote: bool,
    /// `RECURSIVEMATCH`; stands only with SUBSCRIBED or SPECIAL-USE.
    pub recursive_match: bool,
    /// `SPECIAL-USE` (RFC 6154 §2)
    pub special_use: bool,
}

/// Return options of LIST (RFC 9051 §6.3.9.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListReturn {
    /// `SUBSCRIBED`
    pub subscribed: bool,
    /// `CHILDREN`
    pub children: bool,
    /// `SPECIAL-USE` (RFC 6154 §2)
    pub special_use: bool,
    /// `STATUS (...)` (RFC 5819); empty without it.
    pub status: Vec<StatusAtt>,
}

/// An item of STATUS (RFC 9051 §9 status-att).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusAtt {
    /// `MESSAGES`
    Messages,
    /// `RECENT` (RFC 3501 §6.3.10)
    Recent,
    /// `UIDNEXT`
    UidNext,
    /// `UIDVALIDITY`
    UidValidity,
    /// `UNSEEN`
    Unseen,
    /// `DELETED`
    Deleted,
    /// `DELETED-STORAGE` (RFC 9208 §4.1.4)
    DeletedStorage,
    /// `SIZE` (RFC 8438)
    Size,
    /// `HIGHESTMODSEQ` (RFC 7162 §3.1.7)
    HighestModSeq,
    /// `APPENDLIMIT` (RFC 7889 §3)
    AppendLimit,
    /// `MAILBOXID` (RFC 8474 §4.3)
    MailboxId,
}

// RFC 9051 §9 list = "LIST" [SP list-select-opts] SP mailbox SP mbox-or-pat [SP list-return-opts]
pub(super) fn list(scan: &mut Scan) -> Parse<List> {
    scan.sp()?;
    let mut select = ListSelect::default();
    let mut extended = false;
    if scan.peek() == Some(b'(') {
        select = list_select_opts(scan)?;
        extended = true;
        scan.sp()?;
    }
    let reference = mailbox(scan)?;
    scan.sp()?;
    // mbox-or-pat = list-mailbox / patterns; RFC 5258 §6 patterns = "(" list-mailbox *(SP list-mailbox) ")"
    let pattern = |scan: &mut Scan| scan.list_mailbox().map(ListPattern);
    let patterns = if scan.peek() == Some(b'(') {
        extended = true;
        scan.list1(limits::LIST_PATTERNS_MAX, "list_patterns_max", pattern)?
    } else {
        vec![pattern(scan)?]
    };
    let mut returns = ListReturn::default();
    if scan.more_items() {
        extended = true;
        if !scan.eat_word("RETURN") {
            return scan.error("RETURN");
        }
        scan.sp()?;
        returns = list_return_opts(scan)?;
    }
    Ok(List { select, reference, patterns, returns, extended })
}

// RFC 9051 §9 list-select-opts; RFC 6154 §6 adds SPECIAL-USE. An unknown option is an error (RFC 5258 §3).
fn list_select_opts(scan: &mut Scan) -> Parse<ListSelect> {
    let before = scan.clone();
    let mut select = ListSelect::default();
    scan.parenthesised(|scan| {
        while !matches!(scan.peek(), None | Some(b')')) {
            let before = scan.clone();
            match scan.word("a selection option of LIST")?.as_str() {
                "SUBSCRIBED" => select.subscribed = true,
                "REMOTE" => select.remote = true,
                "RECURSIVEMATCH" => select.recursive_match = true,
                "SPECIAL-USE" => select.special_use = true,
                _ => return before.error("a selection option of LIST"),
            }
            scan.more_items();
        }
        Ok(())
    })?;
    if select.recursive_match && !select.subscribed && !select.special_use {
        return before.error("SUBSCRIBED or SPECIAL-USE beside RECURSIVEMATCH");
    }
    Ok(select)
}

// RFC 9051 §9 list-return-opts = "RETURN" SP "(" [list-return-opt *(SP list-return-opt)] ")"
fn list_return_opts(scan: &mut Scan) -> Parse<ListReturn> {
    let mut returns = ListReturn::default();
    scan.parenthesised(|scan| {
        while !matches!(scan.peek(), None | Some(b')')) {
            let before = scan.clone();
            match scan.word("a return option of LIST")?.as_str() {
                "SUBSCRIBED" => returns.subscribed = true,
                "CHILDREN" => returns.children = true,
                "SPECIAL-USE" => returns.special_use = true,
                "STATUS" => {
                    // RFC 5819 §4 status-option = "STATUS" SP "(" status-att *(SP status-att) ")"
                    scan.sp()?;
                    returns.status = status_atts(scan)?;
                }
                _ => return before.error("a return option of LIST"),
            }
            scan.more_items();
        }
        Ok(())
    })?;
    Ok(returns)
}

/// `"(" status-att *(SP status-att) ")"`, a repeated item taken once.
pub(super) fn status_atts(scan: &mut Scan) -> Parse<Vec<StatusAtt>> {
    let mut items = Vec::new();
    for item in scan.list1(limits::FLAGS_MAX, "flags_max", status_att)? {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

// RFC 9051 §9 status-att, RFC 3501 §9, RFC 7162 §7, RFC 7889 §6, RFC 8474 §7
pub(crate) fn status_att(scan: &mut Scan) -> Parse<StatusAtt> {
    let before = scan.clone();
    let name = scan.word("an item of STATUS")?;
    match StatusAtt::EVERY.into_iter().find(|item| item.as_str() == name) {
        Some(item) => Ok(item),
        None => before.error("an item of STATUS"),
    }
}

impl StatusAtt {
    /// Every item.
    pub const EVERY: [StatusAtt; 11] = [
        StatusAtt::Messages,
        StatusAtt::Recent,
        StatusAtt::UidNext,
        StatusAtt::UidValidity,
        StatusAtt::Unseen,
        StatusAtt::Deleted,
        StatusAtt::DeletedStorage,
        StatusAtt::Size,
        StatusAtt::HighestModSeq,
        StatusAtt::AppendLimit,
        StatusAtt::MailboxId,
    ];

    /// The item's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            StatusAtt::Messages => "MESSAGES",
            StatusAtt::Recent => "RECENT",
            StatusAtt::UidNext => "UIDNEXT",
            StatusAtt::UidValidity => "UIDVALIDITY",
            StatusAtt::Unseen => "UNSEEN",
            StatusAtt::Deleted => "DELETED",
            StatusAtt::DeletedStorage => "DELETED-STORAGE",
            StatusAtt::Size => "SIZE",
            StatusAtt::HighestModSeq => "HIGHESTMODSEQ",
            StatusAtt::AppendLimit => "APPENDLIMIT",
            StatusAtt::MailboxId => "MAILBOXID",
        }
    }
}

impl List {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        let ListSelect { subscribed, remote, recursive_match, special_use } = self.select;
        let select = [
            (subscribed, "SUBSCRIBED"),
            (remote, "REMOTE"),
            (recursive_match, "RECURSIVEMATCH"),
            (special_use, "SPECIAL-USE"),
        ];
        if select.iter().any(|(on, _)| *on) {
            writer.raw(" ");
            writer.list(select.iter().filter(|(on, _)| *on), |writer, (_, name)| writer.raw(name));
        }
        writer.raw(" ");
        writer.astring(&self.reference.0);
        writer.raw(" ");
        match self.patterns.as_slice() {
            [only] => writer.string(&only.0),
            several => writer.list(several, |writer, pattern| writer.string(&pattern.0)),
        }
        if self.extended {
            writer.raw(" RETURN ");
            let ListReturn { subscribed, children, special_use, status } = &self.returns;
            let options = [
                (*subscribed, "SUBSCRIBED"),
                (*children, "CHILDREN"),
                (*special_use, "SPECIAL-USE"),
                (!status.is_empty(), "STATUS"),
            ];
            writer.list(options.iter().filter(|(on, _)| *on), |writer, (_, name)| {
                writer.raw(name);
                if *name == "STATUS" {
                    writer.raw(" ");
                    writer.list(status, |writer, item| writer.raw(item.as_str()));
                }
            });
        }
    }
}
