//! `limits`: Mailyard's operations, each beside the physical limit of the same work.

use super::{MailArgs, beside, named_address, size_names};
use crate::corpus::Size;
use crate::error::{Doing, Error, Result};
use crate::wire::Address;
use crate::workload::{self, Plan};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `limits`.
#[derive(Args)]
pub struct LimitsArgs {
    #[command(flatten)]
    mail: MailArgs,
    /// How much mail; may be given several times.
    #[arg(long, default_value = "large", value_parser = size_names(), value_name = "NAME")]
    size: Vec<String>,
    /// How often each operation is measured.
    #[arg(long, default_value_t = 5)]
    repeat: usize,
    /// The program `mailyard`; else the one beside this program.
    #[arg(long)]
    mailyard: Option<PathBuf>,
    /// Measures only the servers named with --server.
    #[arg(long, requires = "server")]
    no_mailyard: bool,
    /// Another server; may be given several times. Its account is filled when it is empty, and changed.
    #[arg(long, value_name = "NAME=imap://USER:PASSWORD@HOST:PORT", value_parser = named_address)]
    server: Vec<(String, Address)>,
    /// A folder on the disk that is to be measured, for temporary files of about four times the size of the mail.
    #[arg(long)]
    work: Option<PathBuf>,
    /// Writes all figures to a file as well.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs it.
pub fn measure(args: &LimitsArgs) -> Result<()> {
    let mailyard = if args.no_mailyard { None } else { Some(args.mailyard.clone().map_or_else(beside, Ok)?) };
    let mut reports = Vec::new();
    for name in &args.size {
        let size = Size::named(name).ok_or_else(|| Error::new(format!("no size is called {name:?}")))?;
        let parent = args.work.clone().unwrap_or_else(std::env::temp_dir);
        std::fs::create_dir_all(&parent).doing(parent.display())?;
        let work = tempfile::Builder::new().prefix("mailyard-bench-").tempdir_in(&parent).doing(parent.display())?;
        let plan = Plan {
            size: (name.clone(), size),
            from: args.mail.from.clone(),
            seed: args.mail.seed,
            repeat: args.repeat.max(1),
            mailyard: mailyard.clone(),
            others: args.server.clone(),
            work: work.path().to_path_buf(),
        };
        let report = workload::run(&plan)?;
        println!("{report}");
        reports.push(report.json());
    }
    if let Some(path) = &args.json {
        let text = format!("{:#}\n", serde_json::Value::Array(reports));
        std::fs::write(path, text).doing(path.display())?;
    }
    Ok(())
}
