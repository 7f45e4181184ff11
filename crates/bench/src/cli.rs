//! The command line.

mod limits;
mod peers;
mod run;

use crate::corpus::{self, SPAMASSASSIN, Shape, Size, Source};
use crate::error::{Doing, Error, Result};
use crate::wire::Address;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Compares mail servers: any server that speaks IMAP, with the published workloads, side by side and beside what the machine could do.
///
/// A comparison takes two commands: `run`, which measures and keeps every single value, and `report`, which makes a page of them. The
/// machine should do nothing else meanwhile. docs/benchmark.md explains the workloads and how to read the page.
#[derive(Parser)]
#[command(name = "mailyard-bench", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  Which servers can be started here, and getting one that is not installed:
    mailyard bench peers
    mailyard bench peers --unpack cyrus
  Two of them, with mail of a published size made from your own:
    mailyard bench run --peer dovecot-mdbox,cyrus --suite lisa2003 --size large --from ~/Maildir --out results
    mailyard bench report results
  Servers that run already:
    mailyard bench run --server ours=imap://test:secret@127.0.0.1:143 --suite populate2006,mixed --corpus some.mbox --out results";

#[derive(Subcommand)]
enum Command {
    /// Writes an mbox file of a wanted size, made from real mail.
    Corpus(CorpusArgs),
    /// Measures servers with the published workloads, side by side.
    Run(run::RunArgs),
    /// Lists the servers that can be started for a run, and what is missing for the others.
    Peers(peers::PeersArgs),
    /// Writes the report of a run beside its results: a page for a browser, CSV, JSON.
    Report {
        /// The folder that was given to `run --out`.
        folder: PathBuf,
    },
    /// Measures Mailyard's operations, each beside the physical limit of the same work.
    Limits(limits::LimitsArgs),
}

/// Which mail to make.
#[derive(Args, Clone, Debug)]
pub struct MailArgs {
    /// Real mail to start from: a Maildir, another folder of message files, an mbox file, or `spamassassin` for the corpus that `cargo
    /// xtask fetch-mail` leaves in mail/ of the checkout.
    #[arg(long, value_name = "MAILDIR|MBOX|spamassassin", default_value = SPAMASSASSIN)]
    pub from: PathBuf,
    /// Other seeds give other mail of the same kind.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

#[derive(Args)]
struct CorpusArgs {
    #[command(flatten)]
    mail: MailArgs,
    /// A published size.
    #[arg(long, required_unless_present = "messages", value_parser = size_names(), value_name = "NAME")]
    size: Option<String>,
    /// Messages, instead of a published size.
    #[arg(long, requires = "bytes", conflicts_with = "size", value_name = "N")]
    messages: Option<u64>,
    /// Bytes of the mbox file.
    #[arg(long, requires = "messages", value_name = "N")]
    bytes: Option<u64>,
    /// The mbox file to write.
    #[arg(long, value_name = "FILE.mbox")]
    out: PathBuf,
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
        Command::Run(args) => run::run(&args),
        Command::Peers(args) => peers::peers(&args),
        Command::Report { folder } => write_report(&folder),
        Command::Limits(args) => limits::measure(&args),
    };
    if let Err(error) = done {
        eprintln!("mailyard-bench: {error}");
        return 1.into();
    }
    0.into()
}

fn corpus(args: &CorpusArgs) -> Result<()> {
    let size = match (&args.size, args.messages, args.bytes) {
        (Some(name), _, _) => Size::named(name),
        (None, Some(messages), Some(bytes)) => Some(Size { messages, bytes }),
        _ => None,
    };
    let size = size.ok_or_else(|| Error::new("a size is needed"))?;
    let source = Source::read(&args.mail.from)?;
    let written = corpus::make_from(&source, size, args.mail.seed, &args.out)?;
    println!("{} messages, {} bytes in {}", written.messages, written.bytes, args.out.display());
    let made = Shape::of_mbox(&args.out)?;
    println!("made from\n{}\nwritten\n{made}", Shape::of_source(&source));
    if made.messages != written.messages || made.repeated > 0 {
        return Err(Error::new(format!("{} is not as it should be", args.out.display())));
    }
    Ok(())
}

fn write_report(folder: &std::path::Path) -> Result<()> {
    for path in crate::report::write(folder)? {
        println!("{}", path.display());
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

/// For `--size`.
fn size_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Size::NAMED.iter().map(|(name, _)| *name))
}
