//! `mailyard cluster demo`: three database servers of a Galera group and two Mailyard servers on it, on this machine, until a signal ends
//! them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::{AccountName, Error, ErrorKind, Result};
use platform::Env;
use serde_json::json;
use store::{AccountFormat, Cluster, Store};
use store_sql::{Database, Settings};
use tokio::signal::unix::{SignalKind, signal};

use super::galera::{Group, Process, SERVERS, free_port};
use super::{USER, mail, password};
use crate::cli::print;
use crate::users::{Credentials, Directory, User};

/// Mailyard servers.
const NODES: usize = 2;
/// How long a server may take to begin.
const BEGIN: Duration = Duration::from_secs(120);

/// Starts everything, says how to connect, and waits for a signal. With `json`, one line of JSON says where.
pub fn run(json: bool) -> Result<()> {
    let directory = tempfile::Builder::new().prefix("mailyard-cluster-").tempdir()?;
    let (databases, nodes) = (directory.path().join("databases"), directory.path().join("nodes"));
    for path in [&databases, &nodes] {
        std::fs::create_dir(path)?;
    }
    if rustix::process::geteuid().is_root() {
        // The servers of the group run as another user, who has to come through here to what is theirs.
        let through = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        std::fs::set_permissions(directory.path(), through)?;
    }
    let mut group = Group::prepare(&databases)?;
    for number in 0..SERVERS {
        if !json {
            print::line(format_args!("starting database server {} of {SERVERS}", number + 1))?;
        }
        group.start_next()?;
        let database = Database::new(Env::real(), settings(vec![group.address(number)]))?;
        if number == 0 { database.update().map(drop)? } else { database.check()? }
    }
    let password = password();
    let nodes = (0..NODES).map(|number| node(&nodes, number, &group, &password)).collect::<Result<Vec<Node>>>()?;
    if json {
        let imap: Vec<_> = nodes.iter().map(|node| json!({ "host": "127.0.0.1", "port": node.port })).collect();
        let ids: Vec<u32> = nodes.iter().map(|node| node.process.id()).collect();
        print::line(
            json!({ "imap": imap, "user": USER, "password": password, "databases": group.ids(), "nodes": ids }),
        )?;
    } else {
        print::text(&text(&nodes, &group, &password))?;
    }
    wait_for_signal()?;
    // The nodes first: they hand over what they have.
    drop(nodes);
    drop(group);
    Ok(directory.close()?)
}

fn settings(urls: Vec<String>) -> Settings {
    Settings { urls, retry: BEGIN, ..Settings::default() }
}

/// A Mailyard server that runs.
struct Node {
    port: u16,
    process: Process,
}

/// Starts a node with a user; the first one makes the account, with sample mail.
fn node(parent: &Path, number: usize, group: &Group, password: &str) -> Result<Node> {
    let data = parent.join(format!("node{}", number + 1));
    std::fs::create_dir(&data)?;
    let urls = group.addresses(number);
    let env = Env::real();
    let name = AccountName::new(USER)?;
    if number == 0 {
        let database = Database::new(env.clone(), settings(urls.clone()))? as std::sync::Arc<dyn Cluster>;
        let store = Store::open_with(env.clone(), data.clone(), store::Options::default(), Some(database))?;
        store.create_account_as(&name, &AccountFormat::Sql)?;
        mail::fill(&*store.account(&name)?, env.clock.now().seconds)?;
    }
    let users = Directory::open(env.clone(), &data)?;
    users.put(User { name, credentials: Credentials::new(password, &*env.random)? })?;
    drop(users);
    let port = free_port()?;
    let file = configuration(&data, &urls, port)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--config"]).arg(&file);
    let process = Process::start(&mut command, &data.join("log"))?;
    let begun = env.clock.monotonic();
    while TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_err() {
        if env.clock.monotonic().saturating_sub(begun) > BEGIN {
            let said = std::fs::read_to_string(data.join("log")).unwrap_or_default();
            return Err(Error::new(ErrorKind::Io, format!("a node does not begin: {said}")));
        }
        env.clock.sleep(Duration::from_millis(20));
    }
    Ok(Node { port, process })
}

/// Writes the configuration of a node.
fn configuration(data: &Path, urls: &[String], port: u16) -> Result<PathBuf> {
    let file = data.join("mailyard.toml");
    let urls: Vec<String> = urls.iter().map(|url| toml::Value::from(url.as_str()).to_string()).collect();
    let text = format!(
        "[server]\ndata = {}\n\n[listen]\nimap = [\"127.0.0.1:{port}\"]\n\n[format]\ndefault = \"sql\"\n\n[sql]\nurls = [{}]\n",
        toml::Value::from(data.to_string_lossy().as_ref()),
        urls.join(", "),
    );
    std::fs::write(&file, text)?;
    Ok(file)
}

fn text(nodes: &[Node], group: &Group, password: &str) -> String {
    let mut text = format!(
        "\nTwo Mailyard servers on one Galera group serve the same account until you press Ctrl-C.\n\n  user      {USER}\n  password  {password}\n"
    );
    for (number, node) in (1..).zip(nodes) {
        text += &format!(
            "  node {number}    127.0.0.1, port {} (IMAP, no TLS), process {}\n",
            node.port,
            node.process.id()
        );
    }
    for (number, id) in (1..).zip(group.ids()) {
        text += &format!("  database {number}  process {id}\n");
    }
    text += &format!(
        "\nLook at the mail in SQL:\n\nmariadb --user=root --socket={} mail -e 'SELECT mailbox, uid, from_address, subject FROM mail'\n\n\
         Kill one of the database servers (kill -9), or one of the nodes: the other node goes on.\n",
        group.address(0).rsplit('=').next().unwrap_or_default()
    );
    text
}

/// Returns with SIGINT or SIGTERM.
fn wait_for_signal() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}
