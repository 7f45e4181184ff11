//! SORT and UID SORT (RFC 5256 §3, RFC 5957, RFC 5267 §3). They are a SEARCH whose result is put in order before it is written.

use imap_proto::command::{self, SortKey};
use store::order;

use crate::Output;
use crate::imap::cmd::search::{self, Request};
use crate::imap::reply::Started;
use crate::imap::state::Session;

pub(crate) fn run(session: &mut Session, tag: &str, command: &command::Sort, out: &mut Output) -> Started {
    let criteria = command
        .criteria
        .iter()
        .map(|criterion| order::SortCriterion { key: key(criterion.key), reverse: criterion.reverse });
    let request = Request {
        tag,
        uid: command.uid,
        plain: command.returns.is_none().then_some("SORT"),
        returns: command.returns.clone().unwrap_or(search::ALL),
        criteria: criteria.collect(),
        charset: Some(command.charset.clone()),
        key: &command.key,
    };
    search::start(session, request, out)
}

fn key(key: SortKey) -> order::SortKey {
    match key {
        SortKey::Arrival => order::SortKey::Arrival,
        SortKey::Cc => order::SortKey::Cc,
        SortKey::Date => order::SortKey::Date,
        SortKey::DisplayFrom => order::SortKey::DisplayFrom,
        SortKey::DisplayTo => order::SortKey::DisplayTo,
        SortKey::From => order::SortKey::From,
        SortKey::Size => order::SortKey::Size,
        SortKey::Subject => order::SortKey::Subject,
        SortKey::To => order::SortKey::To,
    }
}
