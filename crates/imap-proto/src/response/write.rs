//! Responses to bytes. Names and texts that are not ASCII go as UTF-8 or not at all, by the session's [`NameEncoding`].

use model::NumSet;

use super::{Code, ESearch, ListAttribute, ListItem, Namespace, Response, StatusItem, StatusKind, StatusText};
use crate::command::{StatusAtt, Tag};
use crate::encode::{
    astring, continuation, exists, expunge, line_text, nstring, num_set, number, quoted, recent, string, vanished,
};
use crate::flag::write_flag_list;
use crate::sequence::write_partial_range;
use crate::{MailboxArg, NameEncoding};

/// Writes an untagged status response: `* OK [CODE] text`.
pub fn status(out: &mut Vec<u8>, kind: StatusKind, code: Option<&Code>, text: &str, encoding: NameEncoding) {
    out.extend_from_slice(b"* ");
    resp_cond_state(out, kind, code, text, encoding);
}

/// Writes a tagged status response: `tag OK [CODE] text`.
pub fn tagged(out: &mut Vec<u8>, tag: &Tag, kind: StatusKind, code: Option<&Code>, text: &str, encoding: NameEncoding) {
    out.extend_from_slice(tag.as_str().as_bytes());
    out.push(b' ');
    resp_cond_state(out, kind, code, text, encoding);
}

fn resp_cond_state(out: &mut Vec<u8>, kind: StatusKind, code: Option<&Code>, text: &str, encoding: NameEncoding) {
    out.extend_from_slice(kind.as_str().as_bytes());
    out.push(b' ');
    if let Some(code) = code {
        code.write(out);
        out.push(b' ');
    } else if text.starts_with('[') {
        // It would be read as a code.
        out.push(b' ');
    }
    line_text(out, text, encoding);
    out.extend_from_slice(b"\r\n");
}

impl StatusText {
    fn write(&self, out: &mut Vec<u8>, encoding: NameEncoding) {
        resp_cond_state(out, self.kind, self.code.as_ref(), &self.text, encoding);
    }
}

impl Response {
    /// Writes the response with its line end.
    pub fn write(&self, out: &mut Vec<u8>, encoding: NameEncoding) {
        match self {
            Response::Continue(text) => return continuation(out, text),
            Response::Tagged(tag, text) => {
                out.extend_from_slice(tag.as_str().as_bytes());
                out.push(b' ');
                return text.write(out, encoding);
            }
            Response::Status(text) => {
                out.extend_from_slice(b"* ");
                return text.write(out, encoding);
            }
            Response::Exists(count) => return exists(out, *count),
            Response::Recent(count) => return recent(out, *count),
            Response::Expunge(sequence) => return expunge(out, *sequence),
            Response::Vanished { earlier, uids } => return vanished(out, *earlier, uids),
            _ => {}
        }
        out.extend_from_slice(b"* ");
        self.write_data(out, encoding);
        out.extend_from_slice(b"\r\n");
    }

    fn write_data(&self, out: &mut Vec<u8>, encoding: NameEncoding) {
        match self {
            Response::Capability(names) => write_names(out, b"CAPABILITY", names),
            Response::Enabled(names) => write_names(out, b"ENABLED", names),
            Response::Flags(flags) => {
                out.extend_from_slice(b"FLAGS ");
                write_flag_list(out, flags);
            }
            Response::List(item) => item.write(out, b"LIST ", encoding),
            Response::Lsub(item) => item.write(out, b"LSUB ", encoding),
            Response::MailboxStatus(mailbox, items) => write_status(out, mailbox, items, encoding),
            Response::Search { numbers, modseq } => {
                out.extend_from_slice(b"SEARCH");
                for value in numbers {
                    out.push(b' ');
                    number(out, u64::from(*value));
                }
                if let Some(modseq) = modseq {
                    out.extend_from_slice(b" (MODSEQ ");
                    number(out, modseq.0);
                    out.push(b')');
                }
            }
            Response::ESearch(esearch) => esearch.write(out),
            Response::Namespace(kinds) => write_namespaces(out, kinds, encoding),
            Response::Fetch { sequence, items } => {
                number(out, u64::from(*sequence));
                out.extend_from_slice(b" FETCH ");
                write_list(out, items, |out, item| item.write(out));
            }
            Response::Id(None) => out.extend_from_slice(b"ID NIL"),
            Response::Id(Some(pairs)) => {
                out.extend_from_slice(b"ID ");
                write_list(out, pairs, |out, (field, value)| {
                    string(out, field, encoding);
                    out.push(b' ');
                    nstring(out, value.as_deref(), encoding);
                });
            }
            Response::Other { name, rest } => {
                out.extend_from_slice(name.as_bytes());
                if !rest.is_empty() {
                    out.push(b' ');
                    out.extend_from_slice(rest);
                }
            }
            // Written by `write`, which has no data to put between `* ` and the line end for these.
            Response::Continue(_)
            | Response::Tagged(..)
            | Response::Status(_)
            | Response::Exists(_)
            | Response::Recent(_)
            | Response::Expunge(_)
            | Response::Vanished { .. } => {}
        }
    }
}

/// `( )` with items between, a space apart.
fn write_list<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'(');
    for (n, item) in items.into_iter().enumerate() {
        if n > 0 {
            out.push(b' ');
        }
        write(out, item);
    }
    out.push(b')');
}

fn write_names(out: &mut Vec<u8>, what: &[u8], names: &[String]) {
    out.extend_from_slice(what);
    for name in names {
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
    }
}

fn write_delimiter(out: &mut Vec<u8>, delimiter: Option<u8>) {
    match delimiter {
        Some(delimiter) => quoted(out, &[delimiter]),
        None => out.extend_from_slice(b"NIL"),
    }
}

impl ListItem {
    // RFC 9051 §9 mailbox-list
    fn write(&self, out: &mut Vec<u8>, name: &[u8], encoding: NameEncoding) {
        out.extend_from_slice(name);
        write_list(out, &self.attributes, |out, attribute| out.extend_from_slice(attribute.as_str().as_bytes()));
        out.push(b' ');
        write_delimiter(out, self.delimiter);
        out.push(b' ');
        astring(out, &self.mailbox.0, encoding);
        if self.child_info.is_empty() && self.old_name.is_none() {
            return;
        }
        out.extend_from_slice(b" (");
        if !self.child_info.is_empty() {
            // The tag quoted, as in the examples of RFC 5258 §5; the options must be.
            out.extend_from_slice(b"\"CHILDINFO\" ");
            write_list(out, &self.child_info, |out, option| quoted(out, option.as_bytes()));
        }
        if let Some(old_name) = &self.old_name {
            out.extend_from_slice(if self.child_info.is_empty() { b"\"OLDNAME\" (" } else { b" \"OLDNAME\" (" });
            astring(out, &old_name.0, encoding);
            out.push(b')');
        }
        out.push(b')');
    }
}

impl ListAttribute {
    /// The attribute with its backslash.
    pub fn as_str(&self) -> &str {
        match self {
            ListAttribute::NoInferiors => "\\Noinferiors",
            ListAttribute::NoSelect => "\\Noselect",
            ListAttribute::NonExistent => "\\NonExistent",
            ListAttribute::HasChildren => "\\HasChildren",
            ListAttribute::HasNoChildren => "\\HasNoChildren",
            ListAttribute::Marked => "\\Marked",
            ListAttribute::Unmarked => "\\Unmarked",
            ListAttribute::Subscribed => "\\Subscribed",
            ListAttribute::Remote => "\\Remote",
            ListAttribute::SpecialUse(special_use) => special_use.as_str(),
            ListAttribute::Other(name) => name,
        }
    }
}

// RFC 9051 §9: "STATUS" SP mailbox SP "(" [status-att-list] ")"
fn write_status(out: &mut Vec<u8>, mailbox: &MailboxArg, items: &[StatusItem], encoding: NameEncoding) {
    out.extend_from_slice(b"STATUS ");
    astring(out, &mailbox.0, encoding);
    out.push(b' ');
    write_list(out, items, |out, item| {
        let att = match item {
            StatusItem::Number(att, _) => *att,
            StatusItem::NoAppendLimit => StatusAtt::AppendLimit,
            StatusItem::MailboxId(_) => StatusAtt::MailboxId,
        };
        out.extend_from_slice(att.as_str().as_bytes());
        out.push(b' ');
        match item {
            StatusItem::Number(_, value) => number(out, *value),
            StatusItem::NoAppendLimit => out.extend_from_slice(b"NIL"),
            StatusItem::MailboxId(id) => {
                out.push(b'(');
                out.extend_from_slice(id.as_bytes());
                out.push(b')');
            }
        }
    });
}

impl ESearch {
    // RFC 9051 §9 esearch-response; RFC 9394 §4 ret-data-partial; RFC 7162 §3.1.5 MODSEQ
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"ESEARCH");
        let mut before: &[u8] = b" (";
        if let Some(tag) = &self.tag {
            out.extend_from_slice(before);
            out.extend_from_slice(b"TAG ");
            quoted(out, tag.as_bytes());
            before = b" ";
        }
        if let Some(mailbox) = &self.mailbox {
            out.extend_from_slice(before);
            out.extend_from_slice(b"MAILBOX ");
            string(out, &mailbox.0, NameEncoding::Utf8);
            before = b" ";
        }
        if let Some(uid_validity) = self.uid_validity {
            out.extend_from_slice(before);
            out.extend_from_slice(b"UIDVALIDITY ");
            number(out, u64::from(uid_validity));
            before = b" ";
        }
        if before == b" " {
            out.push(b')');
        }
        if self.uid {
            out.extend_from_slice(b" UID");
        }
        for (name, value) in [(" MIN ", self.min), (" MAX ", self.max), (" COUNT ", self.count)] {
            if let Some(value) = value {
                out.extend_from_slice(name.as_bytes());
                number(out, u64::from(value));
            }
        }
        if let Some(set) = self.all.as_ref().filter(|set| !set.is_empty()) {
            out.extend_from_slice(b" ALL ");
            num_set(out, set);
        }
        if let Some((range, set)) = &self.partial {
            out.extend_from_slice(b" PARTIAL (");
            write_partial_range(out, *range);
            out.push(b' ');
            num_set_or_nil(out, set);
            out.push(b')');
        }
        if let Some(modseq) = self.modseq {
            out.extend_from_slice(b" MODSEQ ");
            number(out, modseq.0);
        }
    }
}

fn num_set_or_nil(out: &mut Vec<u8>, set: &NumSet) {
    if set.is_empty() { out.extend_from_slice(b"NIL") } else { num_set(out, set) }
}

// RFC 9051 §9 namespace-response = "NAMESPACE" SP namespace SP namespace SP namespace
fn write_namespaces(out: &mut Vec<u8>, kinds: &[Vec<Namespace>; 3], encoding: NameEncoding) {
    out.extend_from_slice(b"NAMESPACE");
    for kind in kinds {
        out.push(b' ');
        if kind.is_empty() {
            out.extend_from_slice(b"NIL");
            continue;
        }
        out.push(b'(');
        // 1*namespace-descr, with nothing between them.
        for Namespace { prefix, delimiter } in kind {
            out.push(b'(');
            string(out, prefix, encoding);
            out.push(b' ');
            write_delimiter(out, *delimiter);
            out.push(b')');
        }
        out.push(b')');
    }
}
