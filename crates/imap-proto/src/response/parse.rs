//! Responses from bytes, for clients (RFC 9051 §9 response). More liberal than servers are promised to be: what is not known
//! becomes an `Other`, extension data is skipped.

use model::{ModSeq, NumSet, SpecialUse};

use super::code::resp_text_code;
use super::value::msg_att;
use super::{ESearch, ListAttribute, ListItem, Namespace, Response, StatusItem, StatusKind, StatusText};
use crate::chars::is_quoted_char;
use crate::command::{StatusAtt, id_params_list, mailbox, objectid, status_att, tag};
use crate::error::{Parse, SyntaxError};
use crate::flag::flag_list;
use crate::scan::Scan;
use crate::sequence::{known_set, partial_range};
use crate::{MailboxArg, limits};

/// Reads one response: a line with its literals in place (as on the wire), without the last line end.
pub fn response(input: &[u8]) -> Result<Response, SyntaxError> {
    let mut scan = Scan::new(input);
    if scan.eat(b'+') {
        // RFC 9051 §9 continue-req = "+" SP (resp-text / base64); some servers leave out the space.
        scan.eat(b' ');
        return Ok(Response::Continue(rest_as_text(&mut scan)));
    }
    if !scan.eat(b'*') {
        let tag = tag(&mut scan)?;
        scan.sp()?;
        let kind = scan.word("OK, NO or BAD")?;
        return match kind.as_str() {
            "OK" => Ok(Response::Tagged(tag, resp_text(&mut scan, StatusKind::Ok)?)),
            "NO" => Ok(Response::Tagged(tag, resp_text(&mut scan, StatusKind::No)?)),
            "BAD" => Ok(Response::Tagged(tag, resp_text(&mut scan, StatusKind::Bad)?)),
            _ => scan.error("OK, NO or BAD"),
        };
    }
    scan.sp()?;
    let response = if scan.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        message_data(&mut scan)?
    } else {
        response_data(&mut scan)?
    };
    scan.end()?;
    Ok(response)
}

fn rest_as_text(scan: &mut Scan) -> String {
    String::from_utf8_lossy(scan.take_while(|_| true)).into_owned()
}

// RFC 9051 §9 resp-text = ["[" resp-text-code "]" SP] [text]
fn resp_text(scan: &mut Scan, kind: StatusKind) -> Parse<StatusText> {
    scan.eat(b' ');
    let mut code = None;
    if scan.peek() == Some(b'[') {
        code = Some(resp_text_code(scan)?);
        scan.eat(b' ');
    }
    Ok(StatusText { kind, code, text: rest_as_text(scan) })
}

// RFC 9051 §9 message-data = nz-number SP ("EXPUNGE" / ("FETCH" SP msg-att)); number SP "EXISTS"; number SP "RECENT"
fn message_data(scan: &mut Scan) -> Parse<Response> {
    let number = scan.number()?;
    scan.sp()?;
    let before = scan.clone();
    match scan.word("EXISTS, EXPUNGE, FETCH or RECENT")?.as_str() {
        "EXISTS" => Ok(Response::Exists(number)),
        "RECENT" => Ok(Response::Recent(number)),
        "EXPUNGE" => Ok(Response::Expunge(number)),
        "FETCH" => {
            scan.sp()?;
            let items = scan.list0(limits::RESPONSE_ITEMS_MAX, "response_items_max", msg_att)?;
            Ok(Response::Fetch { sequence: number, items })
        }
        _ => before.error("EXISTS, EXPUNGE, FETCH or RECENT"),
    }
}

// RFC 9051 §9 response-data
fn response_data(scan: &mut Scan) -> Parse<Response> {
    let name = scan.word("a response")?;
    Ok(match name.as_str() {
        "OK" => Response::Status(resp_text(scan, StatusKind::Ok)?),
        "NO" => Response::Status(resp_text(scan, StatusKind::No)?),
        "BAD" => Response::Status(resp_text(scan, StatusKind::Bad)?),
        "PREAUTH" => Response::Status(resp_text(scan, StatusKind::PreAuth)?),
        "BYE" => Response::Status(resp_text(scan, StatusKind::Bye)?),
        "CAPABILITY" => Response::Capability(capabilities(scan)?),
        "ENABLED" => Response::Enabled(capabilities(scan)?),
        "FLAGS" => {
            scan.sp()?;
            Response::Flags(flag_list(scan)?)
        }
        "LIST" => Response::List(mailbox_list(scan)?),
        "LSUB" => Response::Lsub(mailbox_list(scan)?),
        "STATUS" => mailbox_status(scan)?,
        "SEARCH" => search(scan)?,
        "ESEARCH" => Response::ESearch(esearch(scan)?),
        "NAMESPACE" => Response::Namespace([namespace(scan)?, namespace(scan)?, namespace(scan)?]),
        "VANISHED" => {
            // RFC 7162 §7 expunged-resp = "VANISHED" [SP "(EARLIER)"] SP known-uids
            scan.sp()?;
            let earlier = scan.eat_prefix("(EARLIER)");
            if earlier {
                scan.sp()?;
            }
            Response::Vanished { earlier, uids: known_set(scan)? }
        }
        "ID" => {
            scan.sp()?;
            Response::Id(id_params_list(scan)?)
        }
        _ => {
            scan.eat(b' ');
            let rest = scan.take_while(|_| true).to_vec();
            Response::Other { name, rest }
        }
    })
}

/// `*(SP capability)`
pub(super) fn capabilities(scan: &mut Scan) -> Parse<Vec<String>> {
    let mut names = Vec::new();
    while scan.peek() == Some(b' ') {
        scan.skip_spaces();
        if matches!(scan.peek(), None | Some(b']')) {
            break;
        }
        if names.len() >= limits::CAPABILITIES_MAX {
            return scan.over_limit("capabilities_max");
        }
        names.push(scan.atom("a capability")?.to_owned());
    }
    Ok(names)
}

// RFC 9051 §9 mailbox-list = "(" [mbx-list-flags] ")" SP (DQUOTE QUOTED-CHAR DQUOTE / nil) SP mailbox [SP mbox-list-extended]
fn mailbox_list(scan: &mut Scan) -> Parse<ListItem> {
    scan.sp()?;
    let attribute = |scan: &mut Scan| {
        scan.expect(b'\\', "an attribute")?;
        Ok(list_attribute(&format!("\\{}", scan.atom("an attribute")?)))
    };
    let attributes = scan.list0(limits::FLAGS_MAX, "flags_max", attribute)?;
    scan.sp()?;
    let delimiter = delimiter(scan)?;
    scan.sp()?;
    let mut item = ListItem { attributes, delimiter, mailbox: mailbox(scan)?, child_info: Vec::new(), old_name: None };
    if scan.more_items() {
        scan.parenthesised(|scan| {
            while !matches!(scan.peek(), None | Some(b')')) {
                list_extended_item(scan, &mut item)?;
                scan.skip_spaces();
            }
            Ok(())
        })?;
    }
    Ok(item)
}

fn list_attribute(name: &str) -> ListAttribute {
    let known = [
        ListAttribute::NoInferiors,
        ListAttribute::NoSelect,
        ListAttribute::NonExistent,
        ListAttribute::HasChildren,
        ListAttribute::HasNoChildren,
        ListAttribute::Marked,
        ListAttribute::Unmarked,
        ListAttribute::Subscribed,
        ListAttribute::Remote,
    ];
    match known.into_iter().find(|attribute| attribute.as_str().eq_ignore_ascii_case(name)) {
        Some(attribute) => attribute,
        None => {
            SpecialUse::parse(name).map_or_else(|| ListAttribute::Other(name.to_owned()), ListAttribute::SpecialUse)
        }
    }
}

/// DQUOTE QUOTED-CHAR DQUOTE / nil
fn delimiter(scan: &mut Scan) -> Parse<Option<u8>> {
    if scan.eat_word("NIL") {
        return Ok(None);
    }
    let before = scan.clone();
    match scan.quoted()?.as_slice() {
        [delimiter] => Ok(Some(*delimiter)),
        // Some servers say so that there is no hierarchy.
        [] => Ok(None),
        _ => before.error("a hierarchy delimiter"),
    }
}

// RFC 9051 §9 mbox-list-extended-item = mbox-list-extended-item-tag SP tagged-ext-val
fn list_extended_item(scan: &mut Scan, item: &mut ListItem) -> Parse<()> {
    let name = scan.astring("the tag of extended data")?.to_ascii_uppercase();
    scan.sp()?;
    match name.as_slice() {
        b"CHILDINFO" => {
            let option = |scan: &mut Scan| {
                scan.astring("a selection option").map(|octets| String::from_utf8_lossy(&octets).into_owned())
            };
            item.child_info = scan.list1(limits::FLAGS_MAX, "flags_max", option)?;
        }
        b"OLDNAME" => item.old_name = Some(scan.parenthesised(mailbox)?),
        _ => skip_value(scan)?,
    }
    Ok(())
}

/// Passes over a value that is not known.
fn skip_value(scan: &mut Scan) -> Parse<()> {
    match scan.peek() {
        Some(b'(') => scan.parenthesised(|scan| {
            while !matches!(scan.peek(), None | Some(b')')) {
                skip_value(scan)?;
                scan.skip_spaces();
            }
            Ok(())
        }),
        Some(b'"' | b'{') => scan.string("a value").map(drop),
        _ => {
            let before = scan.clone();
            let octets = scan.take_while(|byte| is_quoted_char(byte) && !matches!(byte, b' ' | b'(' | b')' | b'{'));
            if octets.is_empty() { before.error("a value") } else { Ok(()) }
        }
    }
}

// RFC 9051 §9: "STATUS" SP mailbox SP "(" [status-att-list] ")". Items that are not known are left out.
fn mailbox_status(scan: &mut Scan) -> Parse<Response> {
    scan.sp()?;
    let mailbox = mailbox(scan)?;
    scan.sp()?;
    let item = |scan: &mut Scan| {
        let mut ahead = scan.clone();
        let Ok(att) = status_att(&mut ahead) else {
            scan.atom("an item of STATUS")?;
            scan.sp()?;
            return skip_value(scan).map(|()| None);
        };
        *scan = ahead;
        scan.sp()?;
        Ok(Some(match att {
            StatusAtt::MailboxId => StatusItem::MailboxId(scan.parenthesised(objectid)?),
            StatusAtt::AppendLimit if scan.eat_word("NIL") => StatusItem::NoAppendLimit,
            _ => StatusItem::Number(att, scan.number64()?),
        }))
    };
    let items = scan.list0(limits::FLAGS_MAX, "flags_max", item)?;
    Ok(Response::MailboxStatus(mailbox, items.into_iter().flatten().collect()))
}

// RFC 3501 §9: "SEARCH" *(SP nz-number); RFC 7162 §7 [SP search-sort-mod-seq]
fn search(scan: &mut Scan) -> Parse<Response> {
    let (mut numbers, mut modseq) = (Vec::new(), None);
    while scan.more_items() {
        if scan.peek() == Some(b'(') {
            modseq = Some(scan.parenthesised(|scan| {
                if !scan.eat_word("MODSEQ") {
                    return scan.error("MODSEQ");
                }
                scan.sp()?;
                scan.number64().map(ModSeq)
            })?);
            break;
        }
        if numbers.len() >= limits::SEARCH_NUMBERS_MAX {
            return scan.over_limit("search_numbers_max");
        }
        numbers.push(scan.nz_number()?.get());
    }
    Ok(Response::Search { numbers, modseq })
}

// RFC 9051 §9 esearch-response = "ESEARCH" [search-correlator] [SP "UID"] *(SP search-return-data)
fn esearch(scan: &mut Scan) -> Parse<ESearch> {
    let mut esearch = ESearch::default();
    let mut more = scan.more_items();
    if scan.peek() == Some(b'(') {
        scan.parenthesised(|scan| search_correlator(scan, &mut esearch))?;
        more = scan.more_items();
    }
    if more && scan.eat_word("UID") {
        esearch.uid = true;
        more = scan.more_items();
    }
    while more {
        let name = scan.word("data of ESEARCH")?;
        scan.sp()?;
        match name.as_str() {
            "MIN" => esearch.min = Some(scan.nz_number()?.get()),
            "MAX" => esearch.max = Some(scan.nz_number()?.get()),
            "COUNT" => esearch.count = Some(scan.number()?),
            "ALL" => esearch.all = Some(known_set(scan)?),
            "MODSEQ" => esearch.modseq = Some(ModSeq(scan.number64()?)),
            "PARTIAL" => {
                esearch.partial = Some(scan.parenthesised(|scan| {
                    let range = partial_range(scan)?;
                    scan.sp()?;
                    let set = if scan.eat_word("NIL") { NumSet::new() } else { known_set(scan)? };
                    Ok((range, set))
                })?);
            }
            _ => skip_value(scan)?,
        }
        more = scan.more_items();
    }
    Ok(esearch)
}

// RFC 7377 §4 search-correlator = SP "(" one-correlator *(SP one-correlator) ")"
fn search_correlator(scan: &mut Scan, esearch: &mut ESearch) -> Parse<()> {
    loop {
        let before = scan.clone();
        let name = scan.word("TAG")?;
        scan.sp()?;
        match name.as_str() {
            "TAG" => esearch.tag = Some(String::from_utf8_lossy(&scan.astring("a tag")?).into_owned()),
            "MAILBOX" => esearch.mailbox = Some(MailboxArg(scan.astring("a mailbox name")?)),
            "UIDVALIDITY" => esearch.uid_validity = Some(scan.nz_number()?.get()),
            _ => return before.error("TAG, MAILBOX or UIDVALIDITY"),
        }
        if !scan.more_items() {
            return Ok(());
        }
    }
}

// RFC 9051 §9 namespace = nil / "(" 1*namespace-descr ")"
fn namespace(scan: &mut Scan) -> Parse<Vec<Namespace>> {
    scan.sp()?;
    if scan.eat_word("NIL") {
        return Ok(Vec::new());
    }
    scan.parenthesised(|scan| {
        let mut all = Vec::new();
        while scan.peek() == Some(b'(') {
            if all.len() >= limits::FLAGS_MAX {
                return scan.over_limit("flags_max");
            }
            // namespace-descr = "(" string SP (DQUOTE QUOTED-CHAR DQUOTE / nil) [namespace-response-extensions] ")"
            all.push(scan.parenthesised(|scan| {
                let prefix = scan.string("a prefix")?;
                scan.sp()?;
                let delimiter = delimiter(scan)?;
                while scan.more_items() {
                    skip_value(scan)?;
                }
                Ok(Namespace { prefix, delimiter })
            })?);
            scan.skip_spaces();
        }
        Ok(all)
    })
}
