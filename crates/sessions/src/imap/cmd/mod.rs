//! The commands: one file each, under the name that the syntax has in `imap-proto`.

pub(crate) mod append;
mod authenticate;
mod cancelupdate;
mod capability;
mod close;
mod compress;
mod copy;
mod create;
mod delete;
mod enable;
mod esearch;
mod expunge;
pub(crate) mod fetch;
mod filters;
mod id;
mod idle;
pub(crate) mod list;
mod login;
mod logout;
mod lsub;
mod metadata;
mod namespace;
mod noop;
mod notify;
mod qresync;
mod quota;
mod rename;
pub(crate) mod search;
mod select;
mod sort;
mod starttls;
pub(crate) mod status;
mod store;
mod subscribe;
mod thread;
mod unauthenticate;

use imap_proto::command::CommandBody;

use super::reply::Started;
use super::state::Session;
use super::updates::Why;
use crate::Output;

/// Which untagged responses about the selected mailbox may follow a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    /// All.
    Everything,
    /// RFC 9051 §7.5.1: no EXPUNGE while FETCH, STORE or SEARCH is answered, because the client may have sent more commands with
    /// sequence numbers. Their UID forms are other commands, and name no such numbers.
    WithoutExpunges,
    /// None: the mailbox has just been selected, and what it was is what the client was told.
    Nothing,
}

/// Starts a command.
pub(crate) fn start(session: &mut Session, tag: &str, body: CommandBody, out: &mut Output) -> Started {
    match body {
        CommandBody::Capability => capability::run(session, out),
        CommandBody::Noop => noop::noop(session),
        CommandBody::Logout => logout::run(session, out),
        CommandBody::Id(_) => id::run(session, out),
        CommandBody::StartTls => starttls::run(session),
        CommandBody::Authenticate { mechanism, initial_response } => {
            authenticate::run(session, &mechanism, initial_response.as_ref())
        }
        CommandBody::Login { user, password } => login::run(session, &user, &password.0),
        CommandBody::Unauthenticate => unauthenticate::run(session),
        CommandBody::Compress(algorithm) => compress::run(session, &algorithm),
        CommandBody::Enable(wanted) => enable::run(session, &wanted, out),
        CommandBody::Select(command) => select::run(session, &command, false, out),
        CommandBody::Examine(command) => select::run(session, &command, true, out),
        CommandBody::Create { mailbox, special_use } => create::run(session, &mailbox, &special_use),
        CommandBody::Delete(mailbox) => delete::run(session, &mailbox),
        CommandBody::Rename { from, to } => rename::run(session, &from, &to),
        CommandBody::Subscribe(mailbox) => subscribe::subscribe(session, &mailbox),
        CommandBody::Unsubscribe(mailbox) => subscribe::unsubscribe(session, &mailbox),
        CommandBody::List(command) => list::run(session, command, out),
        CommandBody::Lsub { reference, pattern } => lsub::run(session, &reference, &pattern),
        CommandBody::Namespace => namespace::run(session, out),
        CommandBody::Status { mailbox, items } => status::run(session, &mailbox, &items, out),
        CommandBody::GetQuota(root) => quota::get(session, &root, out),
        CommandBody::GetQuotaRoot(mailbox) => quota::get_root(session, &mailbox, out),
        CommandBody::SetQuota(command) => quota::set(session, &command),
        CommandBody::Notify(command) => notify::run(session, command, out),
        CommandBody::GetMetadata(command) => metadata::get(session, &command),
        CommandBody::SetMetadata(command) => metadata::set(session, *command),
        CommandBody::Idle => idle::run(session, out),
        CommandBody::Check => noop::check(session),
        CommandBody::Close => close::close(session),
        CommandBody::Unselect => close::unselect(session),
        CommandBody::Expunge => expunge::run(session, None),
        CommandBody::UidExpunge(set) => expunge::run(session, Some(&set)),
        CommandBody::Search(mut command) => {
            command.key = filters::expand(session, command.charset.as_deref(), command.key)?;
            search::run(session, tag, &command, out)
        }
        CommandBody::Sort(mut command) => {
            command.key = filters::expand(session, Some(&command.charset), command.key)?;
            sort::run(session, tag, &command, out)
        }
        CommandBody::Thread(mut command) => {
            command.key = filters::expand(session, Some(&command.charset), command.key)?;
            thread::run(session, &command, out)
        }
        CommandBody::MultiSearch(mut command) => {
            command.search.key = filters::expand(session, command.search.charset.as_deref(), command.search.key)?;
            esearch::run(session, tag, *command, out)
        }
        CommandBody::CancelUpdate(tags) => cancelupdate::run(session, &tags),
        CommandBody::Fetch(command) => fetch::run(session, &command, out),
        CommandBody::Store(command) => store::run(session, &command, out),
        CommandBody::Copy { uid, set, mailbox } => copy::copy(session, uid, &set, &mailbox),
        CommandBody::Move { uid, set, mailbox } => copy::move_messages(session, uid, &set, &mailbox),
    }
}

/// Why something is said of the selected mailbox, for clients that have said what they want to hear of (RFC 5465).
pub(crate) fn why(body: &CommandBody) -> Why {
    match body {
        CommandBody::Notify(_) => Why::Asked,
        CommandBody::Store(_) | CommandBody::Expunge | CommandBody::UidExpunge(_) | CommandBody::Move { .. } => {
            Why::OwnChange
        }
        _ => Why::Passing,
    }
}

/// What may follow a command.
pub(crate) fn follow(body: &CommandBody) -> Follow {
    match body {
        CommandBody::Fetch(fetch) if !fetch.uid => Follow::WithoutExpunges,
        CommandBody::Store(store) if !store.uid => Follow::WithoutExpunges,
        CommandBody::Search(search) if !search.uid => Follow::WithoutExpunges,
        // RFC 5256 §3: not during SORT and THREAD, but during their UID forms.
        CommandBody::Sort(sort) if !sort.uid => Follow::WithoutExpunges,
        CommandBody::Thread(thread) if !thread.uid => Follow::WithoutExpunges,
        CommandBody::MultiSearch(_) => Follow::WithoutExpunges,
        CommandBody::Select(_) | CommandBody::Examine(_) | CommandBody::Logout => Follow::Nothing,
        _ => Follow::Everything,
    }
}

/// The name of a command, for logs and metrics.
pub(crate) fn name(body: &CommandBody) -> &'static str {
    match body {
        CommandBody::Capability => "CAPABILITY",
        CommandBody::Noop => "NOOP",
        CommandBody::Logout => "LOGOUT",
        CommandBody::Id(_) => "ID",
        CommandBody::StartTls => "STARTTLS",
        CommandBody::Authenticate { .. } => "AUTHENTICATE",
        CommandBody::Login { .. } => "LOGIN",
        CommandBody::Unauthenticate => "UNAUTHENTICATE",
        CommandBody::Compress(_) => "COMPRESS",
        CommandBody::Enable(_) => "ENABLE",
        CommandBody::Select(_) => "SELECT",
        CommandBody::Examine(_) => "EXAMINE",
        CommandBody::Create { .. } => "CREATE",
        CommandBody::Delete(_) => "DELETE",
        CommandBody::Rename { .. } => "RENAME",
        CommandBody::Subscribe(_) => "SUBSCRIBE",
        CommandBody::Unsubscribe(_) => "UNSUBSCRIBE",
        CommandBody::List(_) => "LIST",
        CommandBody::Lsub { .. } => "LSUB",
        CommandBody::Namespace => "NAMESPACE",
        CommandBody::Status { .. } => "STATUS",
        CommandBody::GetQuota(_) => "GETQUOTA",
        CommandBody::GetQuotaRoot(_) => "GETQUOTAROOT",
        CommandBody::SetQuota(_) => "SETQUOTA",
        CommandBody::Notify(_) => "NOTIFY",
        CommandBody::GetMetadata(_) => "GETMETADATA",
        CommandBody::SetMetadata(_) => "SETMETADATA",
        CommandBody::Idle => "IDLE",
        CommandBody::Check => "CHECK",
        CommandBody::Close => "CLOSE",
        CommandBody::Unselect => "UNSELECT",
        CommandBody::Expunge => "EXPUNGE",
        CommandBody::UidExpunge(_) => "UID EXPUNGE",
        CommandBody::Search(_) => "SEARCH",
        CommandBody::Sort(_) => "SORT",
        CommandBody::Thread(_) => "THREAD",
        CommandBody::MultiSearch(_) => "ESEARCH",
        CommandBody::CancelUpdate(_) => "CANCELUPDATE",
        CommandBody::Fetch(_) => "FETCH",
        CommandBody::Store(_) => "STORE",
        CommandBody::Copy { .. } => "COPY",
        CommandBody::Move { .. } => "MOVE",
    }
}
