//! `run`: suites over servers.

use super::{MailArgs, beside, named_address, size_names};
use crate::corpus::{self, Corpus, Size};
use crate::error::{Doing, Error, Result};
use crate::interrupt;
use crate::progress::Progress;
use crate::random::Random;
use crate::results::{End, LIMIT, Record, Recorder, RunInfo};
use crate::run::{Contestant, Plan, Run};
use crate::server::peers::{self, PEERS, Place};
use crate::server::{Remote, Server};
use crate::suite::{self, Suite};
use crate::wire::{Address, without_password};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Arguments of `run`.
#[derive(Args)]
pub struct RunArgs {
    /// A server that runs already. May be given for several servers; the same name again is another account on the same server. Mailboxes
    /// whose names begin with `bench` are made anew there and removed at the end; nothing else is touched.
    #[arg(long, value_name = "NAME=imap://USER:PASSWORD@HOST:PORT", value_parser = named_address)]
    server: Vec<(String, Address)>,
    /// Servers that are started for the run, on loopback and with mail of their own; `peers` says which can be.
    #[arg(long, value_delimiter = ',', value_parser = peer_names(), value_name = "NAME,...")]
    peer: Vec<String>,
    /// Where `peers --unpack` put servers that are not installed; else `mailyard/peers` in the user's folder for caches.
    #[arg(long, value_name = "FOLDER")]
    peers_dir: Option<PathBuf>,
    /// The workloads to measure.
    #[arg(long, value_delimiter = ',', required = true, value_parser = suite_names(), value_name = "NAME,...")]
    suite: Vec<String>,
    /// The mail: an mbox file; may be given several times.
    #[arg(long, required_unless_present = "size", value_name = "FILE.mbox")]
    corpus: Vec<PathBuf>,
    /// Mail made for the run, of a published size; may be several.
    #[arg(long, value_delimiter = ',', value_parser = size_names(), value_name = "NAME,...")]
    size: Vec<String>,
    #[command(flatten)]
    mail: MailArgs,
    /// How often each test is measured.
    #[arg(long, default_value_t = 3, value_name = "N")]
    repeat: usize,
    /// Minutes for the repetitions of a suite with one size of mail: none begins that would end later. The first always does.
    #[arg(long, value_name = "MINUTES")]
    suite_time_max: Option<u64>,
    /// A folder for the results, made when it is not there; one that holds a run already is refused.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// A folder on the disk that is measured, for temporary files of several times the size of the mail for every server; else the
    /// system's folder for temporary files.
    #[arg(long, value_name = "FOLDER")]
    work: Option<PathBuf>,
    /// The program `mailyard`; else the one beside this program.
    #[arg(long, value_name = "FILE")]
    mailyard: Option<PathBuf>,
    /// Fewer connections, rounds and seconds: shows that everything works; the figures mean nothing.
    #[arg(long)]
    quick: bool,
}

/// Runs it.
///
/// Whatever can be wrong with what was asked for is found before anything is measured or written to the folder of the results.
pub fn run(args: &RunArgs) -> Result<()> {
    let suites = chosen(&args.suite);
    let mailyard = args.mailyard.clone().map_or_else(|| beside().ok(), Some);
    let unpacked = args.peers_dir.clone().unwrap_or_else(peers::default_unpacked);
    check_names(args, &suites)?;
    check_peers(args, mailyard.as_deref(), &unpacked)?;
    Recorder::check(&args.out)?;
    let mut servers = remotes(args)?;
    interrupt::listen()?;
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
    let Some(first) = corpora.first().cloned() else { return Err(Error::new("name the mail with --corpus or --size")) };
    let mut recorder = Recorder::create(&args.out)?;
    recorder.add(&Record::Run(RunInfo {
        command: std::env::args().map(|argument| without_password(&argument)).collect(),
        version: env!("CARGO_PKG_VERSION").into(),
        began: now(),
        machine: crate::limits::machine(work.path()),
        seed: plan.seed,
        repeat: plan.repeat,
        quick: plan.quick,
    }))?;
    // Before any server is started, so that nobody else uses the disk.
    for limit in crate::limits::yardsticks(work.path(), plan.quick)? {
        recorder.limit(limit)?;
    }
    for name in &args.peer {
        let place = Place {
            work: work.path().join(name),
            mailyard: mailyard.clone().unwrap_or_default(),
            unpacked: unpacked.clone(),
        };
        servers.push(peers::start(name, &place)?);
    }
    let servers = contestants(servers, &mut recorder)?;
    let steps = suites.iter().map(|suite| if suite.per_size() { corpora.len() as u64 } else { 1 }).sum();
    let random = Random::new(plan.seed);
    let mut run = Run { plan: &plan, corpus: first, servers, recorder, progress: Progress::new(steps), random };
    let failed = measure(&mut run, &suites, &corpora).doing(format!("results so far are in {}", args.out.display()))?;
    run.recorder.add(&Record::End(End { ended: now() }))?;
    if failed.is_empty() {
        println!("the results are in {}; `report` makes a page of them", args.out.display());
        return Ok(());
    }
    Err(Error::new(format!(
        "not everything could be measured ({}); results so far are in {}",
        failed.join("; "),
        args.out.display()
    )))
}

/// Every suite over every size, then the servers are stopped. Gives what failed on the way; an error is an end before that.
fn measure(run: &mut Run, suites: &[Box<dyn Suite>], corpora: &[Corpus]) -> Result<Vec<String>> {
    let mut failed = Vec::new();
    for (number, corpus) in corpora.iter().enumerate() {
        run.corpus = corpus.clone();
        for suite in suites.iter().filter(|suite| suite.per_size() || number == 0) {
            if suite.needs_servers() && run.nobody_is_left() {
                continue;
            }
            let done = suite.run(run);
            interrupt::check()?;
            // That the last server failed is known with the reason already.
            if let Err(error) = done
                && !(suite.needs_servers() && run.nobody_is_left())
            {
                run.recorder.problem("", suite.name(), &error)?;
                failed.push(format!("{}: {error}", suite.name()));
            }
            run.progress.step();
        }
    }
    for contestant in &mut run.servers {
        if let Some(local) = contestant.server.local()
            && let Err(error) = local.stop()
        {
            interrupt::check()?;
            run.recorder.problem(&contestant.info.name, "", &error)?;
        }
        let reason = contestant.failed.as_ref().map(|why| format!("{}: {why}", contestant.info.name));
        failed.extend(reason);
    }
    Ok(failed)
}

fn suite_names() -> PossibleValuesParser {
    PossibleValuesParser::new(suite::all().iter().map(|suite| suite.name()).chain(["all"]))
}

fn peer_names() -> PossibleValuesParser {
    PossibleValuesParser::new(PEERS.iter().map(|peer| peer.name))
}

fn chosen(names: &[String]) -> Vec<Box<dyn Suite>> {
    let wanted = |name: &str| names.iter().any(|wanted| wanted == "all" || wanted == name);
    suite::all().into_iter().filter(|suite| wanted(suite.name())).collect()
}

/// Every server and every mailbox size has one name, and no server the one that stands for the machine.
fn check_names(args: &RunArgs, suites: &[Box<dyn Suite>]) -> Result<()> {
    if args.server.is_empty() && args.peer.is_empty() && suites.iter().any(|suite| suite.needs_servers()) {
        return Err(Error::new("name a server with --server or --peer"));
    }
    for (name, _) in &args.server {
        if name == LIMIT || name.is_empty() || args.peer.contains(name) {
            return Err(Error::new(format!("a --server cannot be called {name:?}: choose another name")));
        }
    }
    once("--peer", args.peer.iter().cloned())?;
    let files = args.corpus.iter().filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    once("a mailbox size", files.chain(args.size.iter().cloned()))
}

fn once(what: &str, names: impl Iterator<Item = String>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if seen.contains(&name) {
            return Err(Error::new(format!("{what} is named twice: {name}")));
        }
        seen.insert(name);
    }
    Ok(())
}

fn check_peers(args: &RunArgs, mailyard: Option<&Path>, unpacked: &Path) -> Result<()> {
    for peer in PEERS.iter().filter(|peer| args.peer.iter().any(|name| name == peer.name)) {
        peer.installed(mailyard.unwrap_or(Path::new("")), unpacked).doing(peer.name)?;
    }
    Ok(())
}

fn corpora(args: &RunArgs, work: &Path) -> Result<Vec<Corpus>> {
    let mut corpora: Vec<Corpus> = args.corpus.iter().map(|path| Corpus::open(path)).collect::<Result<_>>()?;
    for (name, size) in Size::NAMED.iter().filter(|(name, _)| args.size.iter().any(|wanted| wanted == name)) {
        let path = work.join(format!("{name}.mbox"));
        corpus::make(&args.mail.from, *size, args.mail.seed, &path)?;
        corpora.push(Corpus::open(&path)?);
    }
    Ok(corpora)
}

/// The servers that run already: one that cannot be reached or does not let us in is an error before anything is measured.
fn remotes(args: &RunArgs) -> Result<Vec<Box<dyn Server>>> {
    let mut named: Vec<(&str, Vec<Address>)> = Vec::new();
    for (name, address) in &args.server {
        match named.iter_mut().find(|(known, _)| known == name) {
            Some((_, addresses)) => addresses.push(address.clone()),
            None => named.push((name, vec![address.clone()])),
        }
    }
    let mut servers: Vec<Box<dyn Server>> = Vec::new();
    for (name, addresses) in named {
        servers.push(Box::new(Remote::connect(name, addresses).doing(name)?));
    }
    Ok(servers)
}

fn contestants(servers: Vec<Box<dyn Server>>, recorder: &mut Recorder) -> Result<Vec<Contestant>> {
    let mut contestants = Vec::new();
    for server in servers {
        let info = server.info();
        recorder.add(&Record::Server(info.clone()))?;
        contestants.push(Contestant { info, server, failed: None });
    }
    Ok(contestants)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
