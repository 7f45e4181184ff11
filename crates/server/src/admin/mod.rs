//! The administration commands: one implementation each, over an open store.
//!
//! The command line takes the store itself when no server holds it, and sends the same [`Request`] to the server otherwise (see
//! [`crate::control`]); either way [`run`] does the work, and whoever asked sees the same progress and the same result.

mod accounts;
pub mod backup;
mod care;
mod convert;
mod new_mail;
mod progress;
mod quota;
mod request;
mod search;
mod transfer;

use std::sync::Arc;

use model::{AccountName, MailboxName, Result};
use store::{Account, Store};

use crate::pull;
use crate::users::Directory;

pub use convert::Step as ConvertStep;
pub use new_mail::NewMailDefaults;
pub use progress::{Notice, Progress};
pub use request::{AccountForm, Format, LayoutForm, NewMail, Password, QuotaLimit, Request, SecretKeys};

/// What a command works on.
pub struct Context {
    /// The mail.
    pub store: Arc<Store>,
    /// The users.
    pub users: Arc<Directory>,
    /// What the configuration says of the mail of new accounts.
    pub new_mail: NewMailDefaults,
}

impl Context {
    fn account(&self, user: &str) -> Result<Arc<Account>> {
        self.store.account(&AccountName::new(user)?).map_err(|error| error.context(format!("the account {user}")))
    }
}

/// Does what was asked; the result is the JSON that `--json` prints.
pub fn run(context: &Context, request: Request, progress: &mut dyn Progress) -> Result<serde_json::Value> {
    match request {
        Request::UserAdd { user, password, mail } => accounts::add(context, &user, password, mail),
        Request::UserPasswd { user, password } => accounts::set_password(context, &user, password),
        Request::UserRemove { user, delete_mail } => accounts::remove(context, &user, delete_mail),
        Request::UserList => accounts::list(context),
        Request::UserQuota { user, storage, messages } => quota::quota(context, &user, storage, messages),
        Request::Import { user, mailbox, paths } => {
            transfer::bring_in_all(context, &user, mailbox.as_deref(), &paths, progress)
        }
        Request::Pull { user, mailbox, remote, only, connections, delete } => {
            let name = |name: String| MailboxName::new(&name);
            let options = pull::Options {
                remote,
                above: mailbox.map(name).transpose()?,
                only: only.into_iter().map(name).collect::<Result<_>>()?,
                connections: usize::from(connections),
                delete,
                message_bytes_max: context.store.options().message_bytes_max,
            };
            pull::pull(&*context.account(&user)?, &options, progress)
        }
        Request::Export { user, mailbox, format, to } => {
            transfer::write_out(context, &user, mailbox.as_deref(), format, &to, progress)
        }
        Request::Restore { user, mailbox, since_unix_seconds } => {
            care::restore(context, &user, &mailbox, since_unix_seconds)
        }
        Request::Convert { user, to, finish, roll_back } => {
            let step = match (roll_back, finish, to.format.is_some()) {
                (true, ..) => ConvertStep::RollBack,
                (false, true, false) => ConvertStep::Finish,
                (false, true, true) => ConvertStep::ConvertAndFinish,
                (false, false, _) => ConvertStep::Convert,
            };
            convert::run(context, &user, to, step, progress)
        }
        Request::Backup { user, to, recipients } => backup::save(context, user.as_deref(), &to, &recipients, progress),
        Request::RestoreBackup { user, from, snapshot, at_unix_seconds, mailbox, into, as_user, query, identities } => {
            let place = backup::Place {
                account: AccountName::new(as_user.as_ref().unwrap_or(&user))?,
                mailbox: mailbox.as_deref().map(MailboxName::new).transpose()?,
                into: into.as_deref().map(MailboxName::new).transpose()?,
            };
            let pick = backup::pick(snapshot, at_unix_seconds);
            let from = backup::Source { dir: from, user: AccountName::new(&user)?, pick, identities };
            backup::restore(context, from, &place, query.as_deref(), progress)
        }
        Request::Check { user, repair } => care::check(context, user.as_deref(), repair, progress),
        Request::Search { user, mailbox, query, imap, verify } => {
            let wanted = search::Wanted { query: &query, imap, mailbox: mailbox.as_deref(), verify };
            search::search(context, &user, wanted, progress)
        }
        Request::Stats { user } => care::stats(context, user.as_deref()),
    }
}
