//! What the command line understands.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::since::Since;
use crate::admin::{AccountForm, Format, LayoutForm, QuotaLimit};
use crate::deliver::command::Deliver;
use crate::net::Protocol;

/// A mail store with IMAP on top.
#[derive(Debug, Parser)]
#[command(name = "mailyard", version, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
pub struct Global {
    /// The directory that holds the accounts and the users
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The configuration file (`mailyard config --defaults` prints one)
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print results as one line of JSON, for scripts
    #[arg(long, global = true)]
    pub json: bool,
    /// Show no progress
    #[arg(long, global = true)]
    pub quiet: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve mail until SIGTERM or SIGINT; SIGHUP reads configuration and certificate again
    Serve {
        /// What to listen on, instead of the configuration: imap=ADDRESS:PORT, imaps=…, pop3=…, pop3s=…, lmtp=…, metrics=…; port 0 takes a free one
        #[arg(long, value_name = "PROTOCOL=ADDRESS:PORT", value_parser = listener)]
        listen: Vec<(Protocol, SocketAddr)>,
    },
    /// Serve sample mail from a temporary directory, and say how to connect
    Demo {
        /// What to listen on, instead of a free loopback port
        #[arg(long, value_name = "PROTOCOL=ADDRESS:PORT", value_parser = listener)]
        listen: Vec<(Protocol, SocketAddr)>,
        /// Where the sample mail lives: in Mailyard's own store, or in files that other programs can use meanwhile
        #[arg(long, value_enum, default_value = "native")]
        format: AccountForm,
    },
    /// Several servers on one database
    #[command(subcommand)]
    Cluster(ClusterAction),
    /// Put a message from standard input into a mailbox, through the server when one runs. Exit codes are those of sysexits.h: 64, 67 (no
    /// such user), 73 (never possible), 75 (try again)
    Deliver(Deliver),
    /// Measure this and other mail servers, beside what the machine could do; `mailyard bench --help` says how
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// List the messages of mbox files: offset, size, from, date, subject. With --json an object a line, with everything known of each
    Scan {
        /// mbox files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Threads that share a file
        #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
        jobs: u16,
        /// Only how many messages each file has
        #[arg(long)]
        count: bool,
    },
    /// Show or check the configuration
    Config(ConfigAction),
    /// Take care of the database that the configuration names
    #[command(subcommand)]
    Sql(Sql),
    /// Move an account from one database to another (`sql.cells`), while servers use it; an interrupted move goes on where it was
    Move {
        /// Whose account
        #[arg(long)]
        user: String,
        /// The cell that it moves to; the database of `sql.urls` is "main"
        #[arg(long)]
        cell: String,
    },
    #[command(flatten)]
    Admin(Admin),
}

/// What to do with several servers.
#[derive(Debug, Subcommand)]
pub enum ClusterAction {
    /// Start three database servers (Galera) and two Mailyard servers in a temporary directory, with sample mail, and say how to connect
    Demo,
}

/// What to do with the database.
#[derive(Debug, Subcommand)]
pub enum Sql {
    /// Make the tables, or bring them up to date with this program
    Update,
    /// Say whether the database answers and its tables are those that this program needs
    Check,
    /// Measure how many bare transactions of the kind that an append is the database does in a second; what is made for it is removed
    Measure {
        /// Connections at once
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        connections: u32,
        /// For how long
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
        seconds: u32,
        /// Octets of each message's body
        #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
        octets: u32,
    },
}

/// What to do with the configuration.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct ConfigAction {
    /// Print an annotated sample: every key with its default
    #[arg(long)]
    pub defaults: bool,
    /// Read a file and say what is wrong with it
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
    /// Print the reference page of the documentation
    #[arg(long, hide = true)]
    pub reference: bool,
}

/// Commands that work on the store, through the server when one runs.
#[derive(Debug, Subcommand)]
pub enum Admin {
    /// Add, list and remove users, and change passwords
    #[command(subcommand)]
    User(User),
    /// Bring mail in: mbox files, Maildirs, directories of them, or all of an account on another server. Run twice, nothing is
    /// imported twice
    Import {
        /// Whose account
        #[arg(long)]
        user: String,
        /// The mailbox to put it in; for many, their parent. Without it, mailboxes have the names that they have there
        #[arg(long)]
        mailbox: Option<String>,
        /// What to import
        #[arg(required_unless_present = "from", conflicts_with = "from", value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Without a server: make the search index before this ends, and not later beside the server's work
        #[arg(long)]
        index: bool,
        #[command(flatten)]
        remote: RemoteOptions,
    },
    /// Write mail out, as an mbox file or a Maildir for each mailbox
    Export {
        /// Whose account
        #[arg(long)]
        user: String,
        /// One mailbox only
        #[arg(long)]
        mailbox: Option<String>,
        /// What to write
        #[arg(long, value_enum, default_value = "mbox")]
        format: Format,
        /// The directory to write into
        #[arg(value_name = "DIR")]
        to: PathBuf,
    },
    /// Bring expunged messages back; or, with --from, an account or a mailbox as it was when it was backed up
    Restore {
        /// Whose account
        #[arg(long)]
        user: String,
        /// Which mailbox
        #[arg(long, required_unless_present = "from")]
        mailbox: Option<String>,
        /// Those expunged since a time (2026-01-31T12:00:00Z) or within a time (3d, 12h, 30m)
        #[arg(long, value_name = "TIME", required_unless_present = "from", conflicts_with = "from")]
        since: Option<Since>,
        #[command(flatten)]
        backup: BackupOptions,
    },
    /// Move an account into another format while it is used, every message compared; what it was before is kept until --finish
    Convert(Convert),
    /// Copy accounts into a directory of backups, while the server runs: what is new since the last time
    Backup(Backup),
    /// Verify every record and checksum; exit code 3 when there is damage
    Check {
        /// One account only
        #[arg(long)]
        user: Option<String>,
        /// Build the index anew
        #[arg(long)]
        repair: bool,
    },
    /// Look for messages: words and terms that they must all have, such as from:ann subject:"budget 2026" before:2024-01-31
    /// is:unseen larger:1M has:attachment header:List-Id=linux; a minus before a term: messages without it
    Search {
        /// Whose account
        #[arg(long)]
        user: String,
        /// One mailbox only
        #[arg(long)]
        mailbox: Option<String>,
        /// QUERY is search keys of IMAP (RFC 9051), such as: OR FROM ann NOT TEXT "a b" SINCE 1-Jan-2024
        #[arg(long)]
        imap: bool,
        /// Look through every message as well, and compare; exit code 3 when the index is wrong
        #[arg(long)]
        verify: bool,
        /// What to look for; behind `--` when it begins with a minus
        #[arg(required = true, value_name = "QUERY")]
        query: Vec<String>,
    },
    /// Show accounts in numbers
    Stats {
        /// One account only
        #[arg(long)]
        user: Option<String>,
    },
}

/// `restore --from`
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "From a backup")]
pub struct BackupOptions {
    /// The directory of backups. What is there stays: messages that are missing come back
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// The newest snapshot that was made at this time (2026-01-31T12:00:00Z) or so long ago (3d, 12h, 30m), or before
    #[arg(long, requires = "from", value_name = "TIME")]
    pub at: Option<Since>,
    /// The snapshot of this name (`mailyard backup list`); without --at and this, the newest one
    #[arg(long, requires = "from", conflicts_with = "at", value_name = "ID")]
    pub snapshot: Option<String>,
    /// Put the messages into this mailbox instead, beside the present one
    #[arg(long, requires = "from", value_name = "NAME")]
    pub into: Option<String>,
    /// Messages only that have these terms, as `mailyard search` knows them: 'from:bob subject:"budget 2026" after:2024-01-31'
    #[arg(long, requires = "from", value_name = "QUERY")]
    pub search: Option<String>,
    /// Put everything into the account of another user, which is made when it is not there
    #[arg(long, requires = "from", value_name = "OTHER")]
    pub as_user: Option<String>,
    /// For an encrypted backup: the file with a secret key, as age-keygen writes it; - is standard input
    #[arg(long, requires = "from", value_name = "FILE")]
    pub identity: Option<PathBuf>,
}

/// `convert`
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true).args(["to", "finish", "rollback"]))]
pub struct Convert {
    /// Whose account
    #[arg(long)]
    pub user: String,
    /// The format; an interrupted conversion goes on where it was
    #[arg(long, value_enum)]
    pub to: Option<AccountForm>,
    /// The mbox file that is the INBOX; without it as `mbox.inbox` says
    #[arg(long, value_name = "FILE", requires = "to")]
    pub inbox: Option<PathBuf>,
    /// The directory for the mbox files of the other mailboxes, or the Maildir that is the INBOX; without it as the configuration says
    #[arg(long, value_name = "DIR", requires = "to")]
    pub mail_root: Option<PathBuf>,
    /// How mailboxes are named in a Maildir; without it as `maildir.layout` says
    #[arg(long, value_enum, requires = "to")]
    pub layout: Option<LayoutForm>,
    /// Give up the old store: nothing can be rolled back afterwards. With --to: as soon as the new one was compared
    #[arg(long)]
    pub finish: bool,
    /// Go back to the old store, with everything that has happened since
    #[arg(long, conflicts_with_all = ["to", "finish"])]
    pub rollback: bool,
}

/// `backup`
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Backup {
    /// One account
    #[arg(long, required_unless_present = "all", conflicts_with = "all")]
    pub user: Option<String>,
    /// All accounts
    #[arg(long)]
    pub all: bool,
    /// The directory of backups; made when it is not there
    #[arg(long, value_name = "DIR", required = true)]
    pub to: Option<PathBuf>,
    /// Encrypt it to this public key of age (age1...); may be repeated: each of them opens it. Without it to those of `backup.recipients`
    #[arg(long, value_name = "KEY")]
    pub recipient: Vec<String>,
    #[command(subcommand)]
    pub action: Option<BackupAction>,
}

/// What can be done with a directory of backups alone: no store is needed.
#[derive(Debug, Subcommand)]
pub enum BackupAction {
    /// List the snapshots
    List {
        /// The directory of backups
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// One account only
        #[arg(long)]
        user: Option<String>,
    },
    /// Read everything back and compare it with its checksums; exit code 3 when there is damage
    Verify {
        /// The directory of backups
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// One account only
        #[arg(long)]
        user: Option<String>,
        /// Decrypt an encrypted backup as well, with the secret key in this file; - is standard input
        #[arg(long, value_name = "FILE")]
        identity: Option<PathBuf>,
    },
    /// Remove old snapshots, and what only they needed
    Forget {
        /// The directory of backups
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// One account only
        #[arg(long)]
        user: Option<String>,
        /// So many snapshots of each account stay, the newest
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        keep: u32,
    },
}

/// `import --from`
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "From another IMAP server")]
pub struct RemoteOptions {
    /// imaps://USER@HOST:PORT, or imap://... with STARTTLS; the port may be left out. The password is asked for; an `@` in a user name may stand as it is
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// Read the password for the other server from standard input, one line
    #[arg(long, requires = "from")]
    pub password_stdin: bool,
    /// One mailbox only, by the name that it gets here; may be repeated
    #[arg(long, requires = "from", value_name = "NAME")]
    pub only: Vec<String>,
    /// Connections at once
    #[arg(long, requires = "from", value_name = "N", default_value = "4", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub connections: u8,
    /// Expunge what an earlier run has brought and what is gone there
    #[arg(long, requires = "from")]
    pub delete: bool,
    /// Send the password without TLS when the other server has none
    #[arg(long, requires = "from")]
    pub allow_plaintext: bool,
    /// Believe these certificates too, PEM
    #[arg(long, requires = "from", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum User {
    /// Add a user and its account
    Add {
        /// The name to log in with
        name: String,
        /// Read the password from standard input, one line
        #[arg(long)]
        password_stdin: bool,
        #[command(flatten)]
        mail: NewMail,
    },
    /// List users and accounts, and where their mail lives
    List,
    /// Show what an account holds and may hold; with --storage or --messages, give it limits of its own
    Quota {
        /// Whose
        name: String,
        /// How much mail: octets (500M, 2G), `none` for no limit, `default` for what the configuration says
        #[arg(long, value_name = "SIZE", value_parser = octets)]
        storage: Option<QuotaLimit>,
        /// How many messages: a number, `none` or `default`
        #[arg(long, value_name = "NUMBER", value_parser = messages)]
        messages: Option<QuotaLimit>,
    },
    /// Remove a user; its mail stays unless told otherwise
    Remove {
        /// Its name
        name: String,
        /// Delete its mail too, for good
        #[arg(long)]
        delete_mail: bool,
    },
    /// Change a password
    Passwd {
        /// Whose
        name: String,
        /// Read the password from standard input, one line
        #[arg(long)]
        password_stdin: bool,
    },
}

/// Where the mail of a new account lives.
#[derive(Debug, clap::Args)]
pub struct NewMail {
    /// In Mailyard's own store, in mbox files or Maildirs that other programs may use as well, or in the database of `[sql]`; without it as
    /// `format.default` says
    #[arg(long, value_enum)]
    pub format: Option<AccountForm>,
    /// The mbox file that is the INBOX; without it as `mbox.inbox` says
    #[arg(long, value_name = "FILE")]
    pub inbox: Option<PathBuf>,
    /// The directory for the mbox files of the other mailboxes, or the Maildir that is the INBOX; without it as `mbox.root` or `maildir.root` says
    #[arg(long, value_name = "DIR")]
    pub mail_root: Option<PathBuf>,
    /// How mailboxes are named in a Maildir; without it as `maildir.layout` says
    #[arg(long, value_enum)]
    pub layout: Option<LayoutForm>,
}

fn quota_limit(text: &str, number: impl FnOnce(&str) -> Option<u64>) -> Result<QuotaLimit, String> {
    match text {
        "default" => Ok(QuotaLimit::Default),
        "none" => Ok(QuotaLimit::None),
        text => {
            number(text).map(QuotaLimit::Limit).ok_or_else(|| format!("{text:?} is no number, `none` or `default`"))
        }
    }
}

fn messages(text: &str) -> Result<QuotaLimit, String> {
    quota_limit(text, |text| text.parse().ok())
}

/// A number of octets, with K, M, G or T for powers of 1024.
fn octets(text: &str) -> Result<QuotaLimit, String> {
    quota_limit(text, |text| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: u64 = match text.get(digits.len()..)?.to_ascii_uppercase().as_str() {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            "T" => 1 << 40,
            _ => return None,
        };
        digits.parse::<u64>().ok()?.checked_mul(unit)
    })
}

fn listener(text: &str) -> Result<(Protocol, SocketAddr), String> {
    let (protocol, address) =
        text.split_once('=').ok_or("expected PROTOCOL=ADDRESS:PORT, such as imap=127.0.0.1:1143")?;
    let protocol = Protocol::from_name(protocol)
        .ok_or_else(|| format!("{protocol:?} is none of imap, imaps, pop3, pop3s, lmtp, metrics"))?;
    let address =
        address.parse().map_err(|_| format!("{address:?} is no address with a port, such as 127.0.0.1:1143"))?;
    Ok((protocol, address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn limits_of_accounts() {
        for (text, limit) in [
            ("default", QuotaLimit::Default),
            ("none", QuotaLimit::None),
            ("0", QuotaLimit::Limit(0)),
            ("1500", QuotaLimit::Limit(1500)),
            ("3k", QuotaLimit::Limit(3072)),
            ("2G", QuotaLimit::Limit(2 << 30)),
        ] {
            assert_eq!(octets(text), Ok(limit), "{text}");
        }
        assert_eq!(messages("7"), Ok(QuotaLimit::Limit(7)));
        for bad in ["", "G", "1GB", "-1", "1.5G", "99999999999T", "all"] {
            assert!(octets(bad).is_err() && messages(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn listeners() {
        assert_eq!(listener("imaps=[::1]:993"), Ok((Protocol::Imaps, "[::1]:993".parse().unwrap())));
        for bad in ["imap", "pop2=127.0.0.1:1", "imap=localhost:1", "imap=127.0.0.1"] {
            assert!(listener(bad).is_err(), "{bad}");
        }
    }
}
