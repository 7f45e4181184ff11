//! The command line: what can be asked, and what each command does with it.

mod administer;
mod args;
mod bar;
mod password;
pub mod print;
mod scan;
mod since;

use std::io::Write;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use model::{AccountName, Error, ErrorKind, Result};

use self::args::{Admin, Args, Backup, ClusterAction, Command, ConfigAction, Global, Sql};
use crate::admin::Progress;
use crate::config::{self, Config};
use crate::serve::{self, Setup};
use crate::{demo, logging};

/// Runs what the command line says. 0: done; 1: failed; 2: the command line is wrong; 3: there is damage.
pub fn main() -> ExitCode {
    // Everything that this program writes is somebody's mail or password: nobody else's to read.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let args = Args::try_parse().unwrap_or_else(|error| {
        let is_delivery = std::env::args_os().nth(1).is_some_and(|word| word == "deliver");
        if is_delivery && error.use_stderr() {
            let _ = error.print();
            std::process::exit(crate::deliver::command::EX_USAGE.into());
        }
        error.exit()
    });
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "mailyard: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<ExitCode> {
    let Args { global, command } = args;
    match command {
        Command::Serve { listen } => {
            let config = configuration(&global)?;
            logging::start(&config.log)?;
            serve::run(Setup { config, config_file: global.config, listen }, |_| Ok(()), |_| Ok(()))?;
        }
        Command::Demo { listen, format } => demo::run(listen, format, global.json)?,
        Command::Cluster(ClusterAction::Demo) => demo::cluster::run(global.json)?,
        Command::Deliver(message) => return Ok(deliver(&global, &message)),
        Command::Bench { arguments } => {
            // Mail is nobody else's business, but the servers that are measured run as other users and share folders with this one.
            rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
            let name = std::iter::once("mailyard bench".into());
            return Ok(bench::run(name.chain(arguments)));
        }
        Command::Scan { files, jobs, count } => {
            let scan = scan::Scan { files, jobs: jobs.into(), json: global.json, count, quiet: global.quiet };
            return scan::run(&scan);
        }
        Command::Config(action) => return configure(&action),
        Command::Sql(action) => sql(&global, &action)?,
        Command::Move { user, cell } => move_account(&global, &user, &cell)?,
        Command::Admin(Admin::Backup(Backup { action: Some(action), .. })) => {
            return administer::backups(&global, action);
        }
        Command::Admin(admin) => return administer::run(&global, &configuration(&global)?, admin),
    }
    Ok(ExitCode::SUCCESS)
}

/// A configuration that is wrong may be right soon: mail is tried again.
fn deliver(global: &Global, message: &crate::deliver::command::Deliver) -> ExitCode {
    match configuration(global) {
        Ok(config) => crate::deliver::command::run(&config, message),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "mailyard: {error}");
            ExitCode::from(crate::deliver::command::EX_TEMPFAIL)
        }
    }
}

/// The configuration file, if one is given, with the command line on top. The data directory is set.
fn configuration(global: &Global) -> Result<Config> {
    let mut config = match &global.config {
        Some(file) => config::load(file).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?,
        None => Config::default(),
    };
    if let Some(data) = &global.data {
        config.server.data.clone_from(data);
    }
    if config.server.data.as_os_str().is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            "no data directory: give --data DIR, or --config FILE with server.data",
        ));
    }
    Ok(config)
}

/// The databases that are configured.
fn databases(global: &Global) -> Result<Arc<store_sql::Cells>> {
    let not_named = || Error::new(ErrorKind::Invalid, "no database is configured: sql.urls is empty");
    serve::databases(&platform::Env::real(), &configuration(global)?)?.ok_or_else(not_named)
}

/// Works on the databases alone, like `sql`: servers that have the account open find it where it is then.
fn move_account(global: &Global, user: &str, cell: &str) -> Result<()> {
    let name = AccountName::new(user)?;
    let mut bar = bar::Bar::new(global.quiet || global.json);
    let mut watch = |done, total| {
        bar.advanced(done, total, "bytes");
        ControlFlow::Continue(())
    };
    let report = databases(global)?.move_account(&name, cell, &mut watch)?;
    bar.finish();
    let held = report.held.as_micros() as f64 / 1000.0;
    let result = serde_json::json!({
        "user": user,
        "cell": report.cell,
        "moved": report.moved,
        "moved_bytes": report.moved_bytes,
        "held_milliseconds": held,
    });
    match global.json {
        true => Ok(print::line(result)?),
        false => Ok(print::line(format_args!(
            "{user} is in cell {}: {} messages were copied and compared, changes waited for {held:.0} ms",
            report.cell, report.moved
        ))?),
    }
}

/// Works on the database alone: no store is needed for it.
fn sql(global: &Global, action: &Sql) -> Result<()> {
    if let Sql::Measure { connections, seconds, octets } = action {
        return measure(global, *connections, *seconds, *octets);
    }
    let database = databases(global)?;
    let before = match action {
        Sql::Update => database.update()?,
        Sql::Check | Sql::Measure { .. } => {
            database.check()?;
            store_sql::Database::schema_version()
        }
    };
    let now = store_sql::Database::schema_version();
    if global.json {
        return Ok(print::line(serde_json::json!({ "version_before": before, "version": now }))?);
    }
    match before {
        0 => print::line(format_args!("the tables were made, version {now}"))?,
        before if before < now => print::line(format_args!("the tables were updated from version {before} to {now}"))?,
        _ => print::line(format_args!("the tables are those of version {now}"))?,
    }
    Ok(())
}

/// Bare transactions, to hold Mailyard's against them.
fn measure(global: &Global, connections: u32, seconds: u32, octets: u32) -> Result<()> {
    let mut config = configuration(global)?;
    config.sql.connections_max = config.sql.connections_max.max(connections);
    let not_named = || Error::new(ErrorKind::Invalid, "no database is configured: sql.urls is empty");
    let cells = serve::databases(&platform::Env::real(), &config)?.ok_or_else(not_named)?;
    let load = store_sql::RawLoad {
        connections: connections as usize,
        duration: std::time::Duration::from_secs(seconds.into()),
        octets: octets as usize,
    };
    let rate = cells.first()?.measure_raw(load)?;
    let each_second = rate.transactions as f64 / rate.took.as_secs_f64();
    if global.json {
        let result = serde_json::json!({ "transactions": rate.transactions, "transactions_per_second": each_second });
        return Ok(print::line(result)?);
    }
    Ok(print::line(format_args!("{each_second:.0} transactions a second with {connections} connections"))?)
}

fn configure(action: &ConfigAction) -> Result<ExitCode> {
    if let Some(file) = &action.check {
        let config = config::load(file).map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
        crate::net::load_tls(&config.tls)?;
        print::line(format_args!("{} is fine", file.display()))?;
    } else if action.reference {
        print::text(&config::reference())?;
    } else {
        print::text(&config::sample())?;
    }
    Ok(ExitCode::SUCCESS)
}
