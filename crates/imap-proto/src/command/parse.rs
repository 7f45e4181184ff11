//! Commands from bytes: the tag, the name, and what follows it (RFC 9051 §9 command).

use model::{ModSeq, SpecialUse};

use super::append::AppendKind;
use super::{
    Command, CommandBody, EnableCapability, IdParams, Secret, Store, StoreMode, Tag, UseAttribute, esearch, fetch,
    list, metadata, notify, quota, search, select, sort,
};
use crate::chars::{is_atom_char, is_base64_char, is_tag_char};
use crate::error::{Parse, SyntaxError};
use crate::flag::{flag, flag_list};
use crate::scan::{Scan, ascii};
use crate::sequence::sequence_set;
use crate::{ListPattern, MailboxArg, limits};

/// Why a command cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    /// The tag, when there was one.
    pub tag: Option<Tag>,
    /// What is wrong.
    pub kind: CommandErrorKind,
}

/// What is wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandErrorKind {
    /// There is no such command; its name in upper case.
    UnknownCommand(String),
    /// The command is known and does not follow its grammar.
    Syntax(SyntaxError),
}

/// Reads one command: a whole line with its literals in place (as on the wire), without the last line end. APPEND and REPLACE
/// are not read here, see [`crate::Reader`].
pub fn command(input: &[u8]) -> Result<Command, CommandError> {
    let mut scan = Scan::new(input);
    let tag = match tag_and_space(&mut scan) {
        Ok(tag) => tag,
        Err(error) => return Err(CommandError { tag: None, kind: CommandErrorKind::Syntax(error) }),
    };
    match command_body(&mut scan) {
        Ok(Some(body)) => Ok(Command { tag, body }),
        Ok(None) => {
            let kind = CommandErrorKind::UnknownCommand(command_name(input));
            Err(CommandError { tag: Some(tag), kind })
        }
        Err(error) => Err(CommandError { tag: Some(tag), kind: CommandErrorKind::Syntax(error) }),
    }
}

/// Reads search criteria that stand alone, as the value of a filter does (RFC 5466 §4 search-criteria).
pub fn search_criteria(input: &[u8]) -> Result<super::SearchKey, SyntaxError> {
    let mut scan = Scan::new(input);
    let key = search::search_keys(&mut scan, &mut 0)?;
    scan.end()?;
    Ok(key)
}

/// The tag of a command of which perhaps only the beginning is there.
pub(crate) fn tag_of(input: &[u8]) -> Option<Tag> {
    tag_and_space(&mut Scan::new(input)).ok()
}

fn command_name(input: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 32;
    let mut scan = Scan::new(input);
    let name = tag_and_space(&mut scan).and_then(|_| scan.word("a command")).unwrap_or_default();
    name.chars().take(SHOWN_BYTES_MAX).collect()
}

// RFC 9051 §9 tag = 1*<any ASTRING-CHAR except "+">
pub(crate) fn tag(scan: &mut Scan) -> Parse<Tag> {
    let before = scan.clone();
    let octets = scan.take_while(is_tag_char);
    if octets.len() > limits::TAG_BYTES_MAX {
        return before.over_limit("tag_bytes_max");
    }
    if octets.is_empty() { before.error("a tag") } else { Ok(Tag(ascii(octets).to_owned())) }
}

fn tag_and_space(scan: &mut Scan) -> Parse<Tag> {
    let tag = tag(scan)?;
    scan.sp()?;
    Ok(tag)
}

/// `tag SP ("APPEND" / ["UID" SP] "REPLACE" SP seq-number) SP mailbox`, if that is what the input begins with.
pub(crate) fn append_head(scan: &mut Scan) -> Parse<(Tag, AppendKind, MailboxArg)> {
    let tag = tag_and_space(scan)?;
    let kind = if scan.eat_word("APPEND") {
        AppendKind::Append
    } else {
        let uid = scan.eat_word("UID");
        if uid {
            scan.sp()?;
        }
        if !scan.eat_word("REPLACE") {
            return scan.error("APPEND or REPLACE");
        }
        scan.sp()?;
        AppendKind::Replace { uid, target: crate::sequence::seq_number(scan)? }
    };
    scan.sp()?;
    Ok((tag, kind, mailbox(scan)?))
}

/// `None` when no command has this name.
fn command_body(scan: &mut Scan) -> Parse<Option<CommandBody>> {
    let before = scan.clone();
    let mut name = scan.word("a command")?;
    let uid = name == "UID";
    if uid {
        scan.sp()?;
        name = scan.word("a command after UID")?;
    }
    let body = if uid { uid_command(&name, scan) } else { any_command(&name, scan) };
    match body? {
        Some(body) => {
            scan.end()?;
            Ok(Some(body))
        }
        None if matches!(name.as_str(), "APPEND" | "REPLACE") => before.error("a command with a message's literal"),
        None => Ok(None),
    }
}

// RFC 9051 §9 uid = "UID" SP (copy / move / fetch / search / store / uid-expunge); RFC 5256 §5 adds sort and thread.
fn uid_command(name: &str, scan: &mut Scan) -> Parse<Option<CommandBody>> {
    Ok(Some(match name {
        "COPY" => copy(scan, true)?,
        "MOVE" => r#move(scan, true)?,
        "FETCH" => CommandBody::Fetch(fetch::fetch(scan, true)?),
        "SEARCH" => CommandBody::Search(Box::new(search::search(scan, true)?)),
        "SORT" => CommandBody::Sort(Box::new(sort::sort(scan, true)?)),
        "THREAD" => CommandBody::Thread(Box::new(sort::thread(scan, true)?)),
        // RFC 7377 §2 has it in an example; ESEARCH is about UIDs anyway.
        "ESEARCH" => CommandBody::MultiSearch(Box::new(esearch::esearch(scan)?)),
        "STORE" => CommandBody::Store(store(scan, true)?),
        "EXPUNGE" => {
            scan.sp()?;
            CommandBody::UidExpunge(sequence_set(scan)?)
        }
        _ => return Ok(None),
    }))
}

// RFC 9051 §9 command-any, command-auth, command-nonauth, command-select
fn any_command(name: &str, scan: &mut Scan) -> Parse<Option<CommandBody>> {
    Ok(Some(match name {
        "CAPABILITY" => CommandBody::Capability,
        "NOOP" => CommandBody::Noop,
        "LOGOUT" => CommandBody::Logout,
        "ID" => id(scan)?,
        "STARTTLS" => CommandBody::StartTls,
        "AUTHENTICATE" => authenticate(scan)?,
        "LOGIN" => login(scan)?,
        "UNAUTHENTICATE" => CommandBody::Unauthenticate,
        "COMPRESS" => {
            // RFC 4978 §5 compress = "COMPRESS" SP algorithm
            scan.sp()?;
            CommandBody::Compress(scan.word("a compression algorithm")?)
        }
        "ENABLE" => enable(scan)?,
        "SELECT" => CommandBody::Select(select::select(scan)?),
        "EXAMINE" => CommandBody::Examine(select::select(scan)?),
        "CREATE" => create(scan)?,
        "DELETE" => CommandBody::Delete(sp_mailbox(scan)?),
        "RENAME" => CommandBody::Rename { from: sp_mailbox(scan)?, to: sp_mailbox(scan)? },
        "SUBSCRIBE" => CommandBody::Subscribe(sp_mailbox(scan)?),
        "UNSUBSCRIBE" => CommandBody::Unsubscribe(sp_mailbox(scan)?),
        "LIST" => CommandBody::List(list::list(scan)?),
        "LSUB" => {
            // RFC 3501 §9: "LSUB" SP mailbox SP list-mailbox
            let reference = sp_mailbox(scan)?;
            scan.sp()?;
            CommandBody::Lsub { reference, pattern: ListPattern(scan.list_mailbox()?) }
        }
        "NAMESPACE" => CommandBody::Namespace,
        "STATUS" => {
            // RFC 9051 §9 status = "STATUS" SP mailbox SP "(" status-att *(SP status-att) ")"
            let mailbox = sp_mailbox(scan)?;
            scan.sp()?;
            CommandBody::Status { mailbox, items: list::status_atts(scan)? }
        }
        "GETQUOTA" => quota::get_quota(scan)?,
        "GETQUOTAROOT" => quota::get_quota_root(scan)?,
        "SETQUOTA" => quota::set_quota(scan)?,
        "NOTIFY" => notify::notify(scan)?,
        "GETMETADATA" => CommandBody::GetMetadata(Box::new(metadata::get_metadata(scan)?)),
        "SETMETADATA" => CommandBody::SetMetadata(Box::new(metadata::set_metadata(scan)?)),
        "IDLE" => CommandBody::Idle,
        "CHECK" => CommandBody::Check,
        "CLOSE" => CommandBody::Close,
        "UNSELECT" => CommandBody::Unselect,
        "EXPUNGE" => CommandBody::Expunge,
        "SEARCH" => CommandBody::Search(Box::new(search::search(scan, false)?)),
        "SORT" => CommandBody::Sort(Box::new(sort::sort(scan, false)?)),
        "THREAD" => CommandBody::Thread(Box::new(sort::thread(scan, false)?)),
        "ESEARCH" => CommandBody::MultiSearch(Box::new(esearch::esearch(scan)?)),
        "CANCELUPDATE" => CommandBody::CancelUpdate(esearch::cancel_update(scan)?),
        "FETCH" => CommandBody::Fetch(fetch::fetch(scan, false)?),
        "STORE" => CommandBody::Store(store(scan, false)?),
        "COPY" => copy(scan, false)?,
        "MOVE" => r#move(scan, false)?,
        _ => return Ok(None),
    }))
}

// RFC 9051 §9 mailbox = "INBOX" / astring
pub(crate) fn mailbox(scan: &mut Scan) -> Parse<MailboxArg> {
    scan.astring("a mailbox name").map(MailboxArg)
}

/// `SP mailbox`
pub(crate) fn sp_mailbox(scan: &mut Scan) -> Parse<MailboxArg> {
    scan.sp()?;
    mailbox(scan)
}

// RFC 2971 §4 id = "ID" SP id-params-list; id-params-list = "(" [string SP nstring *(SP string SP nstring)] ")" / nil
fn id(scan: &mut Scan) -> Parse<CommandBody> {
    scan.sp()?;
    Ok(CommandBody::Id(id_params_list(scan)?))
}

pub(crate) fn id_params_list(scan: &mut Scan) -> Parse<IdParams> {
    if scan.eat_word("NIL") {
        return Ok(None);
    }
    let pair = |scan: &mut Scan| {
        let field = scan.string("a field of ID")?;
        scan.sp()?;
        Ok((field, scan.nstring()?))
    };
    scan.list0(limits::ID_PAIRS_MAX, "id_pairs_max", pair).map(Some)
}

// RFC 9051 §9 authenticate = "AUTHENTICATE" SP auth-type [SP initial-resp]
fn authenticate(scan: &mut Scan) -> Parse<CommandBody> {
    scan.sp()?;
    let mechanism = scan.word("a SASL mechanism")?;
    scan.skip_spaces();
    let initial_response = scan.take_while(is_base64_char);
    let initial_response = (!initial_response.is_empty()).then(|| Secret(initial_response.to_vec()));
    Ok(CommandBody::Authenticate { mechanism, initial_response })
}

// RFC 9051 §9 login = "LOGIN" SP userid SP password
fn login(scan: &mut Scan) -> Parse<CommandBody> {
    scan.sp()?;
    let user = scan.astring("a user name")?;
    scan.sp()?;
    let password = Secret(scan.astring("a password")?);
    Ok(CommandBody::Login { user, password })
}

// RFC 9051 §9 enable = "ENABLE" 1*(SP capability)
fn enable(scan: &mut Scan) -> Parse<CommandBody> {
    scan.sp()?;
    let capability = |scan: &mut Scan| Ok(EnableCapability::from_upper(scan.word("a capability")?));
    scan.items(limits::ENABLE_MAX, "enable_max", capability).map(CommandBody::Enable)
}

impl EnableCapability {
    fn from_upper(name: String) -> Self {
        match name.as_str() {
            "IMAP4REV2" => EnableCapability::Imap4Rev2,
            "CONDSTORE" => EnableCapability::CondStore,
            "QRESYNC" => EnableCapability::QResync,
            "UTF8=ACCEPT" => EnableCapability::Utf8Accept,
            _ => EnableCapability::Other(name),
        }
    }

    /// The capability's name.
    pub fn as_str(&self) -> &str {
        match self {
            EnableCapability::Imap4Rev2 => "IMAP4rev2",
            EnableCapability::CondStore => "CONDSTORE",
            EnableCapability::QResync => "QRESYNC",
            EnableCapability::Utf8Accept => "UTF8=ACCEPT",
            EnableCapability::Other(name) => name,
        }
    }
}

// RFC 9051 §9 create = "CREATE" SP mailbox; RFC 6154 §6 create-param =/ "USE" SP "(" [use-attr *(SP use-attr)] ")"
fn create(scan: &mut Scan) -> Parse<CommandBody> {
    let mailbox = sp_mailbox(scan)?;
    let mut special_use = Vec::new();
    if scan.more_items() {
        special_use = scan.parenthesised(|scan| {
            if !scan.eat_word("USE") {
                return scan.error("USE");
            }
            scan.sp()?;
            scan.list0(limits::FLAGS_MAX, "flags_max", use_attr)
        })?;
    }
    Ok(CommandBody::Create { mailbox, special_use })
}

// RFC 6154 §6 use-attr = "\All" / ... / use-attr-ext
fn use_attr(scan: &mut Scan) -> Parse<UseAttribute> {
    scan.expect(b'\\', "an attribute such as \\Sent")?;
    let name = format!("\\{}", scan.atom("an attribute such as \\Sent")?);
    Ok(SpecialUse::parse(&name).map_or(UseAttribute::Unknown(name), UseAttribute::Known))
}

impl UseAttribute {
    /// The attribute with its backslash.
    pub fn as_str(&self) -> &str {
        match self {
            UseAttribute::Known(attribute) => attribute.as_str(),
            UseAttribute::Unknown(name) => name,
        }
    }
}

// RFC 9051 §9 copy = "COPY" SP sequence-set SP mailbox
fn copy(scan: &mut Scan, uid: bool) -> Parse<CommandBody> {
    scan.sp()?;
    Ok(CommandBody::Copy { uid, set: sequence_set(scan)?, mailbox: sp_mailbox(scan)? })
}

// RFC 9051 §9 move = "MOVE" SP sequence-set SP mailbox
fn r#move(scan: &mut Scan, uid: bool) -> Parse<CommandBody> {
    scan.sp()?;
    Ok(CommandBody::Move { uid, set: sequence_set(scan)?, mailbox: sp_mailbox(scan)? })
}

// RFC 9051 §9 store = "STORE" SP sequence-set SP store-att-flags; RFC 4466 §2.5 adds [store-modifiers] after the set.
fn store(scan: &mut Scan, uid: bool) -> Parse<Store> {
    scan.sp()?;
    let set = sequence_set(scan)?;
    scan.sp()?;
    let mut unchanged_since = None;
    if scan.peek() == Some(b'(') {
        // RFC 7162 §7 store-modifier =/ "UNCHANGEDSINCE" SP mod-sequence-valzer
        unchanged_since = Some(scan.parenthesised(|scan| {
            if !scan.eat_word("UNCHANGEDSINCE") {
                return scan.error("UNCHANGEDSINCE");
            }
            scan.sp()?;
            scan.number64().map(ModSeq)
        })?);
        scan.sp()?;
    }
    // store-att-flags = (["+" / "-"] "FLAGS" [".SILENT"]) SP (flag-list / (flag *(SP flag)))
    let mode = match scan.peek() {
        Some(b'+') => StoreMode::Add,
        Some(b'-') => StoreMode::Remove,
        _ => StoreMode::Replace,
    };
    if mode != StoreMode::Replace {
        scan.take(1, "FLAGS")?;
    }
    let before = scan.clone();
    let silent = match ascii(scan.take_while(is_atom_char)) {
        name if name.eq_ignore_ascii_case("FLAGS") => false,
        name if name.eq_ignore_ascii_case("FLAGS.SILENT") => true,
        _ => return before.error("FLAGS or FLAGS.SILENT"),
    };
    scan.sp()?;
    let flags = match scan.peek() {
        Some(b'(') => flag_list(scan)?,
        _ => scan.items(limits::FLAGS_MAX, "flags_max", flag)?,
    };
    Ok(Store { uid, set, unchanged_since, mode, silent, flags })
}
