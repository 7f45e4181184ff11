//! The administration commands: one implementation each, over an open store.
//!
//! The command line takes the store itself when no server holds it, and sends the same [`Request`] to the server otherwise (see
//! [`crate::control`]); either way [`run`] does the work, and whoever asked sees the same progress and the same result.

mod accounts;
mod mail;
mod progress;
mod request;

use std::sync::Arc;

use model::Result;
use store::Store;

use crate::users::Directory;

pub use progress::{Notice, Progress};
pub use request::{Format, Password, Request};

/// What a command works on.
pub struct Context {
    /// The mail.
    pub store: Arc<Store>,
    /// The users.
    pub users: Arc<Directory>,
}

/// Does what was asked; the result is the JSON that `--json` prints.
pub fn run(context: &Context, request: Request, progress: &mut dyn Progress) -> Result<serde_json::Value> {
    match request {
        Request::UserAdd { user, password } => accounts::add(context, &user, password),
        Request::UserPasswd { user, password } => accounts::set_password(context, &user, password),
        Request::UserRemove { user, delete_mail } => accounts::remove(context, &user, delete_mail),
        Request::UserList => accounts::list(context),
        mail => mail::run(context, mail, progress),
    }
}
