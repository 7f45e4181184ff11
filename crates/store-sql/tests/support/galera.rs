//! A Galera group of MariaDB servers of our own, on temporary directories and loopback ports.
//!
//! The servers run as the user `mysql` when we are root: the transfer of all data to a server that joins (rsync) fails as root.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::mariadb::free_port;

/// How long a server may take to join.
const JOIN: Duration = Duration::from_secs(300);
/// The wait between two looks whether it has.
const LOOK: Duration = Duration::from_millis(100);
const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";
/// A silent server is out of the group after some seconds.
const TIMEOUTS: &str = "evs.keepalive_period=PT0.2S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;\
                        evs.inactive_check_period=PT0.1S;evs.install_timeout=PT4S;gcache.size=32M";

pub struct Group {
    dir: tempfile::TempDir,
    ports: Vec<[u16; 3]>,
    servers: Vec<Option<Child>>,
}

impl Group {
    /// Starts three servers, one after the other.
    pub fn begin() -> Group {
        let dir = tempfile::Builder::new().prefix("mailyard-galera-").tempdir().unwrap();
        let ports = (0..3).map(|_| [free_port(), free_port(), free_port()]).collect();
        let mut group = Group { dir, ports, servers: vec![None, None, None] };
        for number in 0..3 {
            fs::create_dir_all(group.path(number, "data")).unwrap();
        }
        give_to_mysql(group.dir.path());
        let mut install = as_mysql("mariadb-install-db");
        install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        install.arg(format!("--datadir={}", group.path(0, "data").display()));
        let done = install.output().unwrap();
        let said = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        assert!(done.status.success(), "{}{}", said(&done.stdout), said(&done.stderr));
        for number in 0..3 {
            group.start(number, number == 0);
        }
        group
    }

    fn path(&self, number: usize, name: &str) -> PathBuf {
        self.dir.path().join(number.to_string()).join(name)
    }

    pub fn socket(&self, number: usize) -> PathBuf {
        self.path(number, "socket")
    }

    /// Starts a server, which joins the others unless it is the first of all, and waits until it serves.
    pub fn start(&mut self, number: usize, is_first: bool) {
        let [port, ist, sst] = self.ports[number];
        let members: Vec<String> = self.ports.iter().map(|ports| format!("127.0.0.1:{}", ports[0])).collect();
        let address = if is_first { "gcomm://".to_owned() } else { format!("gcomm://{}", members.join(",")) };
        let log = fs::File::options().create(true).append(true).open(self.path(number, "log")).unwrap();
        let mut server = as_mysql("/usr/sbin/mariadbd");
        server.args(["--no-defaults", "--skip-grant-tables", "--skip-networking", "--skip-name-resolve"]);
        server.args(["--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--innodb-flush-log-at-trx-commit=1"]);
        server.args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M", "--performance-schema=off"]);
        server.args(["--wsrep-on=ON", "--wsrep-cluster-name=mailyard", "--wsrep-sst-method=rsync"]);
        server.args(["--wsrep-node-address=127.0.0.1", &format!("--wsrep-provider={PROVIDER}")]);
        server.arg(format!("--wsrep-cluster-address={address}")).arg(format!("--wsrep-node-name=node{number}"));
        server.arg(format!("--wsrep-sst-receive-address=127.0.0.1:{sst}"));
        server.arg(format!(
            "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{port};ist.recv_addr=127.0.0.1:{ist};{TIMEOUTS}"
        ));
        server.arg(format!("--datadir={}", self.path(number, "data").display()));
        server.arg(format!("--socket={}", self.socket(number).display()));
        server.arg(format!("--pid-file={}", self.path(number, "pid").display()));
        // A process group of its own: what it starts for a transfer ends with it.
        server.process_group(0).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.servers[number] = Some(server.spawn().unwrap());
        let begun = Instant::now();
        while !self
            .try_query(number, "", "SHOW STATUS LIKE 'wsrep_ready'")
            .is_some_and(|answer| answer.ends_with("ON\n"))
        {
            let text = || fs::read_to_string(self.path(number, "log")).unwrap_or_default();
            assert!(begun.elapsed() < JOIN, "server {number} does not join:\n{}", text());
            // Asking is a program of its own, and the servers need the machine.
            std::thread::park_timeout(LOOK);
        }
    }

    /// SIGKILL, for it and what it has started.
    pub fn kill(&mut self, number: usize) {
        if let Some(mut server) = self.servers[number].take() {
            let group = rustix::process::Pid::from_raw(server.id() as i32).unwrap();
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            server.wait().unwrap();
        }
    }

    /// Addresses of a database in all servers, beginning with one of them.
    pub fn addresses(&self, database: &str, first: usize) -> Vec<String> {
        let order = (0..3).map(|step| (first + step) % 3);
        order.map(|n| format!("mysql://root@localhost/{database}?socket={}", self.socket(n).display())).collect()
    }

    fn try_query(&self, number: usize, database: &str, statement: &str) -> Option<String> {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--batch", "--skip-column-names", "--user=root"]);
        client.arg(format!("--socket={}", self.socket(number).display())).arg(format!("--execute={statement}"));
        let output = client.arg(database).stderr(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    pub fn query(&self, number: usize, database: &str, statement: &str) -> String {
        self.try_query(number, database, statement).unwrap_or_else(|| panic!("{statement}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for number in 0..3 {
            self.kill(number);
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A program, run as `mysql` when we are root.
fn as_mysql(program: &str) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=mysql", "--regid=mysql", "--clear-groups", program]);
    command
}

fn give_to_mysql(dir: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "mysql:mysql"]).arg(dir).status().unwrap().success());
    }
}
