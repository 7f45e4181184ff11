//! `mailyard demo`: a server on sample mail, in a temporary directory that goes when it ends; `mailyard cluster demo` ([`cluster`]).

pub mod cluster;
mod galera;
mod howto;
mod mail;
mod process;
mod seaweed;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use model::{AccountName, Error, ErrorKind, Result};
use serde_json::json;
use store::{AccountFormat, MaildirLayout};

use crate::admin::{self, AccountForm};
use crate::cli::print;
use crate::config::Config;
use crate::logging;
use crate::net::{Listeners, Protocol};
use crate::serve::{self, Setup};
use crate::users::{Credentials, User};

const USER: &str = "demo";

/// Serves sample mail, which lives in this format, until a signal ends it. With `json`, one line of JSON says where, once connections are
/// accepted.
pub fn run(listen: Listeners, form: AccountForm, json: bool) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("mailyard-demo-").tempdir()?;
    let mut config = Config::default();
    directory.path().clone_into(&mut config.server.data);
    if std::env::var_os("MAILYARD_LOG").is_none() {
        config.log.level = "warn".to_owned();
    }
    logging::start(&config.log)?;
    let listen =
        if listen.is_empty() { vec![(Protocol::Imap, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))] } else { listen };
    let password = password();
    let data = directory.path().to_owned();
    let format = format_in(&data, form)?;
    let prepare = |context: &admin::Context| fill(context, &format, &password);
    let ready = |ready: &serve::Ready<'_>| {
        let address = ready.bound.iter().find(|bound| bound.protocol == Protocol::Imap).map(|bound| bound.address);
        let address = address.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        if json {
            let imap = json!({ "host": address.ip().to_string(), "port": address.port() });
            print::line(json!({ "imap": imap, "user": USER, "password": password, "data": data }))?;
        } else {
            print::text(&howto::text(address, USER, &password, &data, &format))?;
        }
        Ok(())
    };
    let result = serve::run(Setup { config, config_file: None, listen }, prepare, ready);
    directory.close()?;
    result
}

/// A password for this run. Other users of the machine can reach the port too.
fn password() -> String {
    let random = platform::Env::real().random;
    format!("{:016x}", random.u64())
}

/// With files, if there are any, beside the server's own.
fn format_in(data: &Path, form: AccountForm) -> Result<AccountFormat> {
    let mail = data.join("mail");
    Ok(match form {
        AccountForm::Native => AccountFormat::Native,
        AccountForm::Mbox => AccountFormat::Mbox { inbox: mail.join("inbox"), root: mail.join("more") },
        AccountForm::Maildir => AccountFormat::Maildir { root: mail, layout: MaildirLayout::default() },
        AccountForm::Sql => return Err(Error::new(ErrorKind::Invalid, "the demo has no database")),
    })
}

fn fill(context: &admin::Context, format: &AccountFormat, password: &str) -> Result<()> {
    let name = AccountName::new(USER)?;
    context.store.create_account_as(&name, format)?;
    mail::fill(&*context.store.account(&name)?, context.store.env().clock.now().seconds)?;
    context.users.put(User { name, credentials: Credentials::new(password, &*context.store.env().random)? })
}
