//! A MariaDB server of our own, on a temporary directory and a socket in it. It ends with the test process, whatever that dies of: a shell
//! beside it waits for the end of its input.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part")]

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long a server may take to begin.
const BEGIN: Duration = Duration::from_secs(300);
/// The wait between two looks whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the server, and when the input ends, kills it and waits for it; the first argument is what to remove then.
const KEEPER: &str = r#"dir=$1; shift; "$@" & pid=$!; echo $pid >"$dir/keeper.pid"; read _; kill -9 $pid; wait $pid; [ -e "$dir/keep" ] || rm -rf "$dir""#;

/// A database server.
pub struct Server {
    dir: PathBuf,
    extra: Vec<String>,
    keeper: Mutex<Option<Child>>,
}

/// The server of this test program, shared by its tests; each has a database of its own in it.
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::make(&[]);
        server.start();
        server
    })
}

/// The address of an empty database in the shared server.
pub fn fresh_database() -> String {
    shared().fresh_database()
}

impl Server {
    /// Starts one, with more options than the usual. It may be killed.
    pub fn begin(extra: &[&str]) -> Server {
        let server = Self::make(extra);
        // What a server makes for itself when it is new is safe only once that server has ended well.
        let mut first = Command::new(mariadbd());
        first.args(["--no-defaults", "--user=root", "--bootstrap", "--innodb-log-file-size=64M"]);
        first.arg(format!("--datadir={}", server.dir.join("data").display()));
        let output = first.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        server.start();
        server
    }

    /// A place for a server.
    fn make(extra: &[&str]) -> Server {
        let dir = tempfile::Builder::new().prefix("mailyard-sql-").tempdir().unwrap().keep();
        fs::create_dir(dir.join("data")).unwrap();
        let extra = extra.iter().map(|option| (*option).to_owned()).collect();
        Server { dir, extra, keeper: Mutex::new(None) }
    }

    /// Starts it, again when it was stopped, and waits until it answers.
    pub fn start(&self) {
        let _ = fs::remove_file(self.dir.join("keep"));
        let path = |name: &str| self.dir.join(name).display().to_string();
        let log = fs::File::options().create(true).append(true).open(self.dir.join("log")).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh", &self.dir.display().to_string()]);
        command.args([mariadbd().as_str(), "--no-defaults", "--user=root", "--skip-grant-tables", "--skip-networking"]);
        command.args([
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-log-file-size=64M",
            "--innodb-buffer-pool-size=64M",
        ]);
        command.args(["--skip-name-resolve", "--skip-log-bin", "--performance-schema=off"]);
        command.args([format!("--datadir={}", path("data")), format!("--socket={}", path("socket"))]);
        command.args([format!("--pid-file={}", path("pid"))]).args(&self.extra);
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        *self.keeper.lock().unwrap() = Some(command.spawn().unwrap());
        let begun = Instant::now();
        while UnixStream::connect(self.dir.join("socket")).is_err() {
            let text = || fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(begun.elapsed() < BEGIN, "the database does not begin:\n{}", text());
            std::thread::park_timeout(LOOK);
        }
    }

    /// Kills it. What it has made durable is there when it is started again.
    pub fn kill(&self) {
        let Some(mut keeper) = self.keeper.lock().unwrap().take() else { return };
        fs::write(self.dir.join("keep"), "").unwrap();
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("socket")
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        fs::read_to_string(self.dir.join("keeper.pid")).unwrap().trim().parse().unwrap()
    }

    /// The address of an empty database in it.
    pub fn fresh_database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("test{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.query("", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// The address of a database in it.
    pub fn address(&self, database: &str) -> String {
        format!("mysql://root@localhost/{database}?socket={}", self.dir.join("socket").display())
    }

    /// Runs statements as an administrator would, with the command-line client; what it says, one line a row, columns apart by tabs.
    pub fn query(&self, database: &str, statements: &str) -> String {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--batch", "--skip-column-names", "--user=root"]);
        client.arg(format!("--socket={}", self.dir.join("socket").display())).arg(database);
        let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        client.stdin.take().unwrap().write_all(statements.as_bytes()).unwrap();
        let output = client.wait_with_output().unwrap();
        assert!(output.status.success(), "{statements}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.dir.join("keep"));
        match self.keeper.lock().unwrap().take() {
            Some(mut keeper) => {
                drop(keeper.stdin.take());
                let _ = keeper.wait();
            }
            None => drop(fs::remove_dir_all(&self.dir)),
        }
    }
}

/// The name of a database in an address.
pub fn database_of(address: &str) -> &str {
    address
        .rsplit('/')
        .find_map(|piece| piece.strip_prefix("test").map(|_| piece))
        .map_or("", |piece| piece.split('?').next().unwrap_or(""))
}

/// A port that is free now, outside of the range from which the system takes them for connections.
pub fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let port = 22_000 + (std::process::id() as u16 % 400) * 20 + NEXT.fetch_add(1, Ordering::Relaxed) % 20;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Servers are where only root's PATH leads.
fn mariadbd() -> String {
    let path = Path::new("/usr/sbin/mariadbd");
    if path.is_file() { path.display().to_string() } else { "mariadbd".to_owned() }
}
