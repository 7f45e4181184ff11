//! Three MariaDB servers of one Galera group, in a directory and on loopback ports, for as long as the demo lasts.
//!
//! When we are root they run as the user `mysql`: the transfer of all data to a server that joins (by rsync) fails as root. Nobody needs a
//! password for them; whoever can enter the directory can use them, and nobody else can.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use model::{Error, ErrorKind, Result};
use rustix::process::geteuid;

use super::process::{Process, free_port};

/// The database with the accounts.
const DATABASE: &str = "mail";
/// Servers of the group: the fewest that go on when one is lost.
pub const SERVERS: usize = 3;
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
const SERVER: &str = "/usr/sbin/mariadbd";
/// A silent server is out of the group after a second.
const TIMEOUTS: &str = "evs.keepalive_period=PT0.2S;evs.suspect_timeout=PT1S;evs.inactive_timeout=PT2S;\
                        evs.inactive_check_period=PT0.1S;evs.install_timeout=PT2S";

/// The servers that run.
pub struct Group {
    dir: PathBuf,
    /// Of each server: for the group, for what a server that joins missed, for the transfer of everything.
    ports: [[u16; 3]; SERVERS],
    servers: Vec<Process>,
}

impl Group {
    /// Makes the directories and the first server's tables. [`ErrorKind::NotFound`]: programs are missing.
    pub fn prepare(dir: &Path) -> Result<Group> {
        for needed in [SERVER, PROVIDER] {
            if !Path::new(needed).exists() {
                let text = format!(
                    "{needed} is missing; the demo needs the Debian packages mariadb-server, galera-4 and rsync"
                );
                return Err(Error::new(ErrorKind::NotFound, text));
            }
        }
        let mut ports = [[0; 3]; SERVERS];
        for port in ports.as_flattened_mut() {
            *port = free_port()?;
        }
        let group = Group { dir: dir.to_owned(), ports, servers: Vec::new() };
        for number in 0..SERVERS {
            fs::create_dir_all(group.path(number, "data"))?;
        }
        fs::write(group.path(0, "init.sql"), format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"))?;
        if geteuid().is_root() {
            run(Command::new("chown").args(["-R", "mysql:mysql"]).arg(dir))?;
        }
        let mut install = as_mysql("mariadb-install-db");
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        run(install.arg(format!("--datadir={}", group.path(0, "data").display())))?;
        Ok(group)
    }

    fn path(&self, number: usize, name: &str) -> PathBuf {
        self.dir.join(format!("database{}", number + 1)).join(name)
    }

    /// Starts the next server, which joins those that run. It serves a while later.
    pub fn start_next(&mut self) -> Result<()> {
        let number = self.servers.len();
        let Some([port, missed, transfer]) = self.ports.get(number).copied() else { return Ok(()) };
        let members: Vec<String> = self.ports.iter().map(|[port, ..]| format!("127.0.0.1:{port}")).collect();
        let members = if number == 0 { String::new() } else { members.join(",") };
        let mut server = as_mysql(SERVER);
        server.args(["--no-defaults", "--skip-grant-tables", "--skip-networking", "--skip-name-resolve"]);
        server.args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1"]);
        server.args(["--innodb-buffer-pool-size=128M", "--innodb-log-file-size=64M", "--performance-schema=off"]);
        server.args(["--wsrep-on=ON", "--wsrep-cluster-name=mailyard-demo", "--wsrep-sst-method=rsync"]);
        server.args(["--wsrep-node-address=127.0.0.1", &format!("--wsrep-provider={PROVIDER}")]);
        server.arg(format!("--wsrep-cluster-address=gcomm://{members}"));
        server.arg(format!("--wsrep-sst-receive-address=127.0.0.1:{transfer}"));
        server.arg(format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};ist.recv_addr=127.0.0.1:{missed};{TIMEOUTS}"
        ));
        server.arg(format!("--datadir={}", self.path(number, "data").display()));
        server.arg(format!("--socket={}", self.path(number, "socket").display()));
        server.arg(format!("--pid-file={}", self.path(number, "pid").display()));
        if number == 0 {
            server.arg(format!("--init-file={}", self.path(0, "init.sql").display()));
        }
        self.servers.push(Process::start(&mut server, &self.path(number, "log"))?);
        Ok(())
    }

    /// The address of the database in one server.
    pub fn address(&self, number: usize) -> String {
        format!("mysql://root@localhost/{DATABASE}?socket={}", self.path(number, "socket").display())
    }

    /// The addresses in all servers, beginning with one of them.
    pub fn addresses(&self, first: usize) -> Vec<String> {
        (0..SERVERS).map(|step| self.address((first + step) % SERVERS)).collect()
    }

    /// The process ids of the servers.
    pub fn ids(&self) -> Vec<u32> {
        self.servers.iter().map(Process::id).collect()
    }
}

/// A program, run as `mysql` when we are root.
fn as_mysql(program: &str) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=mysql", "--regid=mysql", "--clear-groups", program]);
    command
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let (program, said) = (command.get_program().to_string_lossy(), String::from_utf8_lossy(&output.stderr));
    Err(Error::new(ErrorKind::Io, format!("{program} failed: {said}")))
}
