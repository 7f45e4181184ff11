//! The command line.

use crate::corpus::{self, Size};
use crate::error::{Doing, Error, Result};
use crate::wire::Address;
use crate::workload::{self, Plan};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures a mail server, beside what the machine could do.
#[derive(Parser)]
#[command(name = "mailyard-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes an mbox file of a wanted size, made from real mail.
    Corpus(CorpusArgs),
    /// Measures servers: reading, writing, memory, disk.
    Run(RunArgs),
}

/// Which mail to make.
#[derive(Args, Clone, Debug)]
pub struct MailArgs {
    /// Real mail to start from: a folder of message files, or an mbox file.
    #[arg(long, default_value = "mail")]
    pub from: PathBuf,
    /// Other seeds give other mail of the same kind.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Args)]
struct CorpusArgs {
    #[command(flatten)]
    mail: MailArgs,
    /// small, medium, large, lohoff or lkml.
    #[arg(long, required_unless_present = "messages")]
    size: Option<String>,
    /// Messages, instead of a named size.
    #[arg(long, requires = "bytes", conflicts_with = "size")]
    messages: Option<u64>,
    /// Bytes of the mbox file.
    #[arg(long, requires = "messages")]
    bytes: Option<u64>,
    /// The mbox file to write.
    #[arg(long)]
    output: PathBuf,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    mail: MailArgs,
    /// small, medium, large, lohoff or lkml; may be given several times.
    #[arg(long, default_value = "large")]
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
    /// Another server, as NAME=imap://user:password@host:port; may be given several times. Its account is filled when it is empty, and
    /// changed.
    #[arg(long, value_parser = named_address)]
    server: Vec<(String, Address)>,
    /// A folder on the disk that is to be measured, for temporary files of about four times the size of the mail.
    #[arg(long)]
    work: Option<PathBuf>,
    /// Writes all figures to a file as well.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Runs the program with these arguments, the program's name first.
pub fn run(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output and is no failure; clap knows which is which.
            let _ = error.print();
            return if error.use_stderr() { 2.into() } else { 0.into() };
        }
    };
    let done = match cli.command {
        Command::Corpus(args) => corpus(&args),
        Command::Run(args) => measure(&args),
    };
    if let Err(error) = done {
        eprintln!("mailyard-bench: {error}");
        return 1.into();
    }
    0.into()
}

fn corpus(args: &CorpusArgs) -> Result<()> {
    let size = match (&args.size, args.messages, args.bytes) {
        (Some(name), _, _) => named(name)?,
        (None, Some(messages), Some(bytes)) => Size { messages, bytes },
        _ => return Err(Error::new("a size is needed")),
    };
    let written = corpus::make(&args.mail.from, size, args.mail.seed, &args.output)?;
    println!("{} messages, {} bytes in {}", written.messages, written.bytes, args.output.display());
    Ok(())
}

fn measure(args: &RunArgs) -> Result<()> {
    let mailyard = if args.no_mailyard { None } else { Some(args.mailyard.clone().map_or_else(beside, Ok)?) };
    let mut reports = Vec::new();
    for name in &args.size {
        let size = named(name)?;
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

/// The server program that was built together with this one.
fn beside() -> Result<PathBuf> {
    let this = std::env::current_exe().doing("this program")?;
    let program = this.with_file_name("mailyard");
    if program.is_file() {
        return Ok(program);
    }
    Err(Error::new(format!("{} is not there; name the program with --mailyard", program.display())))
}

fn named_address(text: &str) -> Result<(String, Address)> {
    let (name, url) =
        text.split_once('=').ok_or_else(|| Error::new("NAME=imap://user:password@host:port is needed"))?;
    Ok((name.to_string(), url.parse()?))
}

/// The named size, or an error that lists the names.
fn named(name: &str) -> Result<Size> {
    let names: Vec<&str> = Size::NAMED.iter().map(|(name, _)| *name).collect();
    Size::named(name).ok_or_else(|| Error::new(format!("no size is called {name:?}; there are {}", names.join(", "))))
}
