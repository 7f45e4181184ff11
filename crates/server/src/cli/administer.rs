//! Administration commands: on the store itself, or through the server that holds it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::Env;
use serde_json::Value;
use store::backup::Identities;

use super::args::{Admin, Backup, BackupAction, BackupOptions, Convert, Global, RemoteOptions, User};
use super::bar::Bar;
use super::since::Since;
use super::{password, print};
use crate::admin::{self, NewMail, Password, Progress, Request, SecretKeys, backup};
use crate::config::Config;
use crate::control;
use crate::pull::Remote;
use crate::serve::{Maintenance, open_store};
use crate::users::Directory;

/// Exit code of `check`, and of `search --verify`, when something is damaged.
const DAMAGED: u8 = 3;

/// Runs a command and prints its result.
pub fn run(global: &Global, config: &Config, command: Admin) -> Result<ExitCode> {
    let mut bar = Bar::new(global.quiet || global.json);
    let is_all = matches!(command, Admin::Import { index: true, .. });
    let result = execute(config, request(command, config)?, is_all, &mut bar);
    bar.finish();
    show(global, &result?)
}

/// Prints a result; what it calls damaged decides the exit code.
fn show(global: &Global, result: &Value) -> Result<ExitCode> {
    if global.json {
        print::line(result)?;
    } else {
        print::text(&print::result(result))?;
    }
    let damaged = result.get("damaged").and_then(Value::as_u64).unwrap_or(0) > 0;
    Ok(if damaged { ExitCode::from(DAMAGED) } else { ExitCode::SUCCESS })
}

fn execute(config: &Config, request: Request, is_all: bool, bar: &mut Bar) -> Result<Value> {
    let data = &config.server.data;
    let env = Env::real();
    match open_store(&env, config) {
        Ok(store) => {
            let users = Arc::new(Directory::open(env, data)?);
            let context = admin::Context { store, users, new_mail: admin::NewMailDefaults::of(config) };
            match request {
                Request::Import { .. }
                | Request::Pull { .. }
                | Request::RestoreBackup { .. }
                | Request::Convert { .. } => beside_maintenance(&context, request, is_all, bar),
                _ => admin::run(&context, request, bar),
            }
        }
        Err(error) if error.kind() == ErrorKind::InUse => match control::ask(data, &request, bar) {
            Err(no_server) if no_server.kind() == ErrorKind::NotFound => {
                Err(Error::new(ErrorKind::InUse, format!("{}: another mailyard command works on it", data.display())))
            }
            result => result,
        },
        Err(error) => Err(error.context(data.display())),
    }
}

/// Runs a command that writes a lot with the store's background work beside it, and then does what is left of that: the sealing of what was
/// written, or, where `is_all` says so, everything, the indexes too, which else a server makes.
fn beside_maintenance(context: &admin::Context, request: Request, is_all: bool, bar: &mut Bar) -> Result<Value> {
    let maintenance = Maintenance::start_eager(Arc::clone(&context.store))?;
    let result = admin::run(context, request, bar);
    maintenance.stop();
    let result = result?;
    while !bar.is_cancelled() {
        let step = if is_all { context.store.maintain() } else { context.store.seal() };
        match step {
            Ok(true) => {}
            Ok(false) => break,
            // What was imported is there; a server will try again.
            Err(error) => {
                bar.notice(format!("the background work is not finished: {error}"));
                break;
            }
        }
    }
    Ok(result)
}

fn request(command: Admin, config: &Config) -> Result<Request> {
    Ok(match command {
        Admin::User(User::Add { name, password_stdin, mail }) => {
            let path = |path: Option<PathBuf>| path.map(|path| absolute(&path)).transpose();
            let mail = NewMail {
                format: mail.format,
                inbox: path(mail.inbox)?,
                mail_root: path(mail.mail_root)?,
                layout: mail.layout,
            };
            Request::UserAdd { user: name, password: Password::new(&password::ask(password_stdin)?), mail }
        }
        Admin::User(User::Passwd { name, password_stdin }) => {
            Request::UserPasswd { user: name, password: Password::new(&password::ask(password_stdin)?) }
        }
        Admin::User(User::Remove { name, delete_mail }) => Request::UserRemove { user: name, delete_mail },
        Admin::User(User::List) => Request::UserList,
        Admin::User(User::Quota { name, storage, messages }) => Request::UserQuota { user: name, storage, messages },
        Admin::Import { user, mailbox, paths, remote, index: _ } => match &remote.from {
            Some(url) => pull_request(user, mailbox, url, &remote)?,
            None => {
                let paths = paths.iter().map(|path| absolute(path)).collect::<Result<_>>()?;
                Request::Import { user, mailbox, paths }
            }
        },
        Admin::Export { user, mailbox, format, to } => Request::Export { user, mailbox, format, to: absolute(&to)? },
        Admin::Restore { user, mailbox, since, backup } => restore_request(user, mailbox, since, backup)?,
        Admin::Convert(Convert { user, to, inbox, mail_root, layout, finish, rollback }) => {
            let path = |path: Option<PathBuf>| path.map(|path| absolute(&path)).transpose();
            let to = NewMail { format: to, inbox: path(inbox)?, mail_root: path(mail_root)?, layout };
            Request::Convert { user, to, finish, roll_back: rollback }
        }
        Admin::Backup(Backup { user, to, recipient, .. }) => {
            let to = to.ok_or_else(|| Error::new(ErrorKind::Invalid, "--to DIR is missing"))?;
            let recipients = if recipient.is_empty() { config.backup.recipients.clone() } else { recipient };
            Request::Backup { user, to: absolute(&to)?, recipients }
        }
        Admin::Check { user, repair } => Request::Check { user, repair },
        Admin::Search { user, mailbox, imap, verify, query } => {
            let query = if imap { query.join(" ") } else { query_of(&query) };
            Request::Search { user, mailbox, query, imap, verify }
        }
        Admin::Stats { user } => Request::Stats { user },
    })
}

/// The query from the arguments. The shell has taken the quotes of `subject:"a b"` away: the value gets them back.
fn query_of(arguments: &[String]) -> String {
    if let [query] = arguments {
        return query.clone();
    }
    let quoted = |argument: &String| match argument.split_once(':') {
        _ if !argument.contains(char::is_whitespace) || argument.contains('"') => argument.clone(),
        Some((key, value)) if !key.contains(char::is_whitespace) => format!("{key}:\"{value}\""),
        _ => format!("\"{argument}\""),
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn restore_request(
    user: String,
    mailbox: Option<String>,
    since: Option<Since>,
    backup: BackupOptions,
) -> Result<Request> {
    let now = Env::real().clock.now().seconds;
    let BackupOptions { from, at, snapshot, into, as_user, search: query, identity } = backup;
    if into.is_some() && mailbox.is_none() && query.is_none() {
        return Err(Error::new(ErrorKind::Invalid, "--into is for --mailbox or --search"));
    }
    match (from, mailbox, since) {
        (Some(from), mailbox, None) => {
            let at_unix_seconds = at.map(|at| at.unix_seconds(now));
            let from = absolute(&from)?;
            let identities = identity.map(|file| identity_file(&file).map(SecretKeys::new)).transpose()?;
            Ok(Request::RestoreBackup {
                user,
                from,
                snapshot,
                at_unix_seconds,
                mailbox,
                into,
                as_user,
                query,
                identities,
            })
        }
        (None, Some(mailbox), Some(since)) => {
            Ok(Request::Restore { user, mailbox, since_unix_seconds: since.unix_seconds(now) })
        }
        _ => Err(Error::new(ErrorKind::Invalid, "either --from, or --mailbox and --since")),
    }
}

/// The text of a file with secret keys: it goes to the server, which may not read the file.
fn identity_file(path: &Path) -> Result<String> {
    let text = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    text.map_err(|error| Error::from(error).context(path.display()))
}

/// `backup list`, `verify` and `forget`: they need the directory of backups and nothing else.
pub fn backups(global: &Global, action: BackupAction) -> Result<ExitCode> {
    let mut bar = Bar::new(global.quiet || global.json);
    let result = match action {
        BackupAction::List { dir, user } => backup::list(&dir, user.as_deref()),
        BackupAction::Verify { dir, user, identity } => {
            let identities = identity.map(|file| Identities::parse(identity_file(&file)?.as_bytes())).transpose()?;
            backup::verify(&dir, user.as_deref(), identities, &mut bar)
        }
        BackupAction::Forget { dir, user, keep } => backup::forget(&dir, user.as_deref(), keep),
    };
    bar.finish();
    show(global, &result?)
}

fn pull_request(user: String, mailbox: Option<String>, url: &str, options: &RemoteOptions) -> Result<Request> {
    let mut remote = Remote::parse(url)?;
    if options.password_stdin || remote.password.is_empty() {
        remote.password = password::of_another_server(options.password_stdin, &remote)?;
    }
    remote.allow_plaintext = options.allow_plaintext;
    remote.ca_file = options.ca_file.as_deref().map(absolute).transpose()?;
    let RemoteOptions { only, connections, delete, .. } = options;
    Ok(Request::Pull { user, mailbox, remote, only: only.clone(), connections: *connections, delete: *delete })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Error::from(error).context(path.display()))
}
