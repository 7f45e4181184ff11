//! `run`: suites over servers.

use super::{MailArgs, beside, named, named_address};
use crate::corpus::{self, Corpus};
use crate::error::{Doing, Error, Result};
use crate::interrupt;
use crate::progress::Progress;
use crate::random::Random;
use crate::results::{End, Record, Recorder, RunInfo};
use crate::run::{Contestant, Plan, Run};
use crate::server::peers::{self, Place};
use crate::server::{Remote, Server};
use crate::suite::{self, Suite};
use crate::wire::Address;
use clap::Args;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// A server, as NAME=imap://user:password@host:port; the same name again is another account on it. Mailboxes whose names begin with
    /// `bench` are made anew there.
    #[arg(long, value_name = "NAME=URL", value_parser = named_address)]
    server: Vec<(String, Address)>,
    /// Servers that are started for the run, by name (see `peers`).
    #[arg(long, value_delimiter = ',')]
    peer: Vec<String>,
    /// Where `peers --unpack` put servers that are not installed.
    #[arg(long)]
    peers_dir: Option<PathBuf>,
    /// The workloads: one or several names, or `all`.
    #[arg(long, value_delimiter = ',', required = true)]
    suite: Vec<String>,
    /// The mail: an mbox file; may be given several times.
    #[arg(long)]
    corpus: Vec<PathBuf>,
    /// Mail made for the run: small, medium, large, lohoff or lkml; may be given several times.
    #[arg(long, value_delimiter = ',')]
    size: Vec<String>,
    #[command(flatten)]
    mail: MailArgs,
    /// How often each test is measured.
    #[arg(long, default_value_t = 3)]
    repeat: usize,
    /// Minutes for the repetitions of a suite with one size of mail: none begins that would end later. The first always does.
    #[arg(long, value_name = "MINUTES")]
    suite_time_max: Option<u64>,
    /// A folder for the results; it may not hold others.
    #[arg(long)]
    out: PathBuf,
    /// A folder on the disk that is measured, for temporary files of several times the size of the mail for every server.
    #[arg(long)]
    work: Option<PathBuf>,
    /// The program `mailyard`; else the one beside this program.
    #[arg(long)]
    mailyard: Option<PathBuf>,
    /// Fewer connections, rounds and seconds: shows that everything works; the figures mean nothing.
    #[arg(long)]
    quick: bool,
}

/// Runs it.
pub fn run(args: &RunArgs) -> Result<()> {
    let suites = chosen(&args.suite)?;
    interrupt::listen()?;
    let mailyard = args.mailyard.clone().map_or_else(|| beside().ok(), Some);
    let parent = args.work.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&parent).doing(parent.display())?;
    // Servers give up root's rights: they have to get through to their own folder.
    let mode = Permissions::from_mode(0o711);
    let work = tempfile::Builder::new().prefix("mailyard-bench-").permissions(mode).tempdir_in(&parent);
    let work = work.doing(parent.display())?;
    interrupt::remove_at_once(work.path());
    let plan = Plan {
        repeat: args.repeat.max(1),
        suite_max: args.suite_time_max.map(|minutes| Duration::from_secs(minutes.saturating_mul(60))),
        seed: args.mail.seed,
        quick: args.quick,
        mailyard: mailyard.clone(),
        work: work.path().to_path_buf(),
    };
    let corpora = corpora(args, work.path())?;
    let mut recorder = Recorder::create(&args.out)?;
    recorder.add(&Record::Run(RunInfo {
        command: std::env::args().collect(),
        version: env!("CARGO_PKG_VERSION").into(),
        began: now(),
        machine: crate::limits::machine(work.path()),
        seed: plan.seed,
        repeat: plan.repeat,
        quick: plan.quick,
    }))?;
    // Before any server runs, so that nobody else uses the disk.
    for limit in crate::limits::yardsticks(work.path(), plan.quick)? {
        recorder.limit(limit)?;
    }
    let servers = contestants(args, mailyard, work.path(), &mut recorder)?;
    if servers.is_empty() && suites.iter().any(|suite| suite.needs_servers()) {
        return Err(Error::new("name a server with --server or --peer"));
    }
    let Some(first) = corpora.first().cloned() else { return Err(Error::new("name the mail with --corpus or --size")) };
    let steps = suites.iter().map(|suite| if suite.per_size() { corpora.len() as u64 } else { 1 }).sum();
    let random = Random::new(plan.seed);
    let mut run = Run { plan: &plan, corpus: first, servers, recorder, progress: Progress::new(steps), random };
    'suites: for (number, corpus) in corpora.iter().enumerate() {
        run.corpus = corpus.clone();
        for suite in suites.iter().filter(|suite| suite.per_size() || number == 0) {
            if let Err(error) = suite.run(&mut run) {
                run.recorder.problem("", suite.name(), &error)?;
            }
            if interrupt::check().is_err() {
                break 'suites;
            }
            run.progress.step();
        }
    }
    for contestant in &mut run.servers {
        if let Some(local) = contestant.server.local()
            && let Err(error) = local.stop()
            && interrupt::check().is_ok()
        {
            run.recorder.problem(&contestant.info.name, "", &error)?;
        }
    }
    interrupt::check().doing(format!("results so far are in {}", args.out.display()))?;
    run.recorder.add(&Record::End(End { ended: now() }))?;
    let failed: Vec<String> = run
        .servers
        .iter()
        .filter_map(|contestant| Some(format!("{}: {}", contestant.info.name, contestant.failed.as_ref()?)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Error::new(format!(
        "not every server came to the end ({}); results so far are in {}",
        failed.join("; "),
        args.out.display()
    )))
}

fn chosen(names: &[String]) -> Result<Vec<Box<dyn Suite>>> {
    let known: Vec<&str> = suite::all().iter().map(|suite| suite.name()).collect();
    for name in names {
        if name != "all" && !known.contains(&name.as_str()) {
            return Err(Error::new(format!("no suite is called {name:?}; there are {}", known.join(", "))));
        }
    }
    let wanted = |name: &str| names.iter().any(|wanted| wanted == "all" || wanted == name);
    Ok(suite::all().into_iter().filter(|suite| wanted(suite.name())).collect())
}

fn corpora(args: &RunArgs, work: &Path) -> Result<Vec<Corpus>> {
    let mut corpora: Vec<Corpus> = args.corpus.iter().map(|path| Corpus::open(path)).collect::<Result<_>>()?;
    for name in &args.size {
        let path = work.join(format!("{name}.mbox"));
        corpus::make(&args.mail.from, named(name)?, args.mail.seed, &path)?;
        corpora.push(Corpus::open(&path)?);
    }
    Ok(corpora)
}

/// Every server, connected or started; a server that cannot be reached at all is an error before anything is measured.
fn contestants(
    args: &RunArgs,
    mailyard: Option<PathBuf>,
    work: &Path,
    recorder: &mut Recorder,
) -> Result<Vec<Contestant>> {
    let mut servers: Vec<Box<dyn Server>> = Vec::new();
    let mut named: Vec<(&str, Vec<Address>)> = Vec::new();
    for (name, address) in &args.server {
        match named.iter_mut().find(|(known, _)| known == name) {
            Some((_, addresses)) => addresses.push(address.clone()),
            None => named.push((name, vec![address.clone()])),
        }
    }
    for (name, addresses) in named {
        servers.push(Box::new(Remote::connect(name, addresses)?));
    }
    for name in &args.peer {
        let place = Place {
            work: work.join(name),
            mailyard: mailyard.clone().unwrap_or_default(),
            unpacked: args.peers_dir.clone().unwrap_or_else(peers::default_unpacked),
        };
        servers.push(peers::start(name, &place)?);
    }
    let mut contestants: Vec<Contestant> = Vec::new();
    for server in servers {
        let info = server.info();
        if contestants.iter().any(|other| other.info.name == info.name) {
            return Err(Error::new(format!("two servers are called {}", info.name)));
        }
        recorder.add(&Record::Server(info.clone()))?;
        contestants.push(Contestant { info, server, failed: None });
    }
    Ok(contestants)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
