//! A MariaDB server of our own, for a Mailyard server whose accounts are in a database: on a socket in the folder of the measurement.

use crate::error::{Doing, Error, Result};
use crate::interrupt;
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(2);
/// Where Debian has it, which is not in everybody's path.
const PROGRAM: &str = "/usr/sbin/mariadbd";
/// The database with the accounts.
const DATABASE: &str = "mail";
/// What is not as the server has it by default. Each transaction is durable when it is acknowledged.
pub const OPTIONS: [&str; 7] = [
    "--innodb-flush-log-at-trx-commit=1",
    "--innodb-buffer-pool-size=512M",
    "--innodb-log-file-size=512M",
    "--innodb-flush-method=O_DIRECT",
    "--performance-schema=off",
    "--skip-log-bin",
    "--max-connections=200",
];

/// A database server and its data.
pub struct Mariadb {
    folder: PathBuf,
    child: Option<Child>,
}

impl Mariadb {
    /// Makes an empty database and starts the server.
    pub fn create(folder: &Path) -> Result<Mariadb> {
        let data = folder.join("data");
        std::fs::create_dir_all(&data).doing(data.display())?;
        let mut server = Mariadb { folder: folder.to_path_buf(), child: None };
        server.start()?;
        let statement = format!("CREATE DATABASE {DATABASE}");
        let mut client = Command::new("mariadb");
        client.arg("--no-defaults").arg("--user=root").arg(format!("--socket={}", server.socket().display()));
        let output = client.args(["--execute", &statement]).output().doing("mariadb")?;
        if !output.status.success() {
            return Err(Error::new(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(server)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The address of the database, as the configuration has it.
    pub fn url(&self) -> String {
        format!("mysql://root@localhost/{DATABASE}?socket={}", self.socket().display())
    }

    /// Where its files are.
    pub fn files(&self) -> &Path {
        &self.folder
    }

    /// Its process, if it runs.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its version, as it says it.
    pub fn version() -> String {
        let output = Command::new(PROGRAM).arg("--version").output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default()
    }

    /// Starts it and waits until it answers. Nothing happens when it runs.
    pub fn start(&mut self) -> Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        let log_path = self.folder.join("log");
        let log = File::options().create(true).append(true).open(&log_path).doing(log_path.display())?;
        let errors = log.try_clone().doing(log_path.display())?;
        let mut command = Command::new(PROGRAM);
        command.args(["--no-defaults", "--user=root", "--skip-grant-tables", "--skip-networking"]).args(OPTIONS);
        command.arg(format!("--datadir={}", self.folder.join("data").display()));
        command.arg(format!("--socket={}", self.socket().display()));
        command.arg(format!("--pid-file={}", self.folder.join("pid").display()));
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        command.process_group(0);
        let mut child = command.spawn().doing(PROGRAM)?;
        interrupt::kill_on_interrupt(Pid::from_child(&child));
        let began = Instant::now();
        while UnixStream::connect(self.socket()).is_err() {
            let status = child.try_wait().doing("waiting")?;
            if status.is_some() || began.elapsed() > START_MAX {
                interrupt::is_gone(Pid::from_child(&child));
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(format!("the database does not begin; see {}", log_path.display())));
            }
            std::thread::sleep(POLL);
        }
        self.child = Some(child);
        Ok(())
    }

    /// Asks it to end and waits for that. Nothing happens when it does not run.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        interrupt::is_gone(Pid::from_child(&child));
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).doing(PROGRAM)?;
        let began = Instant::now();
        while child.try_wait().doing("waiting")?.is_none() {
            if began.elapsed() > STOP_MAX {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new("the database did not end"));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Mariadb {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            interrupt::is_gone(Pid::from_child(&child));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
