//! A Mailyard server of our own: started for the measurement, watched, stopped by its process id.

use super::mariadb::{self, Mariadb};
use super::peers::placed;
use super::{Backups, Local, Server, Service};
use crate::error::{Doing, Error, Result};
use crate::interrupt;
use crate::results::ServerInfo;
use crate::wire::{Address, Connection};
use rustix::process::{Pid, Signal};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(60);
const STOP_MAX: Duration = Duration::from_secs(60);
/// How often a starting or stopping server is looked at.
const POLL: Duration = Duration::from_millis(2);

/// More than any measurement opens.
const CONNECTIONS_MAX: u32 = 1_000;

const USER: &str = "bench";
/// Of all accounts of servers that are started for a run.
pub const PASSWORD: &str = "bench-password";

/// Where the messages of its accounts live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In its own store.
    Native,
    /// In mbox files.
    Mbox,
    /// In a Maildir.
    Maildir,
    /// In a database that is started with it.
    Sql,
}

impl Form {
    /// The format, as results name it.
    fn name(self) -> &'static str {
        match self {
            Form::Native => "native",
            Form::Mbox => "mbox",
            Form::Maildir => "maildir",
            Form::Sql => "sql",
        }
    }

    /// Whether the mail is in files of its own, beside the data directory.
    fn has_files(self) -> bool {
        matches!(self, Form::Mbox | Form::Maildir)
    }
}

/// A server process and its data.
pub struct Mailyard {
    program: PathBuf,
    form: Form,
    /// The mbox files or Maildirs, where there are some: a folder for each account.
    mail: PathBuf,
    data: PathBuf,
    log: PathBuf,
    config: PathBuf,
    child: Option<Child>,
    database: Option<Mariadb>,
    lmtp: u16,
    pop3: u16,
    /// Where it listens, and the first account that was made on it.
    pub address: Address,
    accounts: usize,
}

impl Mailyard {
    /// Makes a data directory with one account; starts nothing yet.
    pub fn create(program: &Path, work: &Path, form: Form) -> Result<Mailyard> {
        let data = work.join("data");
        std::fs::create_dir_all(&data).doing(data.display())?;
        // As the system names files that are open: a server that lets go of one is waited for.
        let work = work.canonicalize().doing(work.display())?;
        let address = Address {
            host: "127.0.0.1".into(),
            port: free_port()?,
            user: USER.into(),
            password: PASSWORD.into(),
            prefix: String::new(),
        };
        let database = (form == Form::Sql).then(|| Mariadb::create(&work.join("mariadb"))).transpose()?;
        let server = Mailyard {
            program: program.to_path_buf(),
            form,
            mail: work.join("mail"),
            data,
            log: work.join("server.log"),
            config: work.join("mailyard.toml"),
            child: None,
            database,
            lmtp: free_port()?,
            pop3: free_port()?,
            address,
            accounts: 1,
        };
        // A benchmark is one user with very many connections.
        let mut settings = format!("[limits]\nconnections_per_user_max = {CONNECTIONS_MAX}\n");
        if let Some(database) = &server.database {
            settings.push_str(&format!("[sql]\nurls = [\"{}\"]\n", database.url()));
        }
        std::fs::write(&server.config, settings).doing(server.config.display())?;
        if server.database.is_some() {
            let mut update = server.tool("sql");
            update.arg("update");
            server.run(update, b"")?;
        }
        server.add_user(USER)?;
        Ok(server)
    }

    fn add_user(&self, user: &str) -> Result<()> {
        let mut add = self.tool("user");
        add.args(["add", user, "--password-stdin"]);
        if self.form != Form::Native {
            add.args(["--format", self.form.name()]);
        }
        if self.form.has_files() {
            let folder = self.mail.join(user);
            std::fs::create_dir_all(&folder).doing(folder.display())?;
            if self.form == Form::Mbox {
                add.arg("--inbox").arg(folder.join("INBOX"));
            }
            add.arg("--mail-root").arg(folder.join(self.form.name()));
        }
        self.run(add, format!("{PASSWORD}\n").as_bytes())
    }

    /// Imports an mbox file into a mailbox, and has it indexed for searches; the server must not run. Gives the time it took.
    pub fn import(&self, mbox: &Path, mailbox: &str) -> Result<Duration> {
        let began = Instant::now();
        self.import_for(USER, mbox, mailbox, &["--index"])?;
        Ok(began.elapsed())
    }

    fn import_for(&self, user: &str, mbox: &Path, mailbox: &str, more: &[&str]) -> Result<()> {
        let mut import = self.tool("import");
        import.args(["--quiet", "--user", user, "--mailbox", mailbox]).args(more).arg(mbox);
        self.run(import, b"")
    }

    /// The folder of the account.
    pub fn account(&self) -> PathBuf {
        self.data.join("accounts").join(USER)
    }

    /// Resident memory now, in bytes.
    pub fn resident(&self) -> Result<u64> {
        self.status("VmRSS:")
    }

    /// The most that was resident since [`Mailyard::reset_peak`], in bytes.
    pub fn peak(&self) -> Result<u64> {
        self.status("VmHWM:")
    }

    /// Begins a new measurement of the peak.
    pub fn reset_peak(&self) -> Result<()> {
        let path = self.proc("clear_refs")?;
        // proc(5): 5 resets the peak resident set size to the current value.
        std::fs::write(&path, "5").doing(path.display())
    }

    fn status(&self, key: &str) -> Result<u64> {
        let path = self.proc("status")?;
        let text = std::fs::read_to_string(&path).doing(path.display())?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().doing(path.display())?;
        Ok(kilobytes * 1024)
    }

    fn proc(&self, file: &str) -> Result<PathBuf> {
        let child = self.child.as_ref().ok_or_else(|| Error::new("the server does not run"))?;
        Ok(PathBuf::from(format!("/proc/{}/{file}", child.id())))
    }

    /// Asks the server itself to end and waits for that.
    fn stop_server(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        interrupt::is_gone(Pid::from_child(&child));
        rustix::process::kill_process(Pid::from_child(&child), Signal::TERM).doing(self.program.display())?;
        let began = Instant::now();
        while child.try_wait().doing("waiting")?.is_none() {
            if began.elapsed() > STOP_MAX {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new("the server did not end"));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn tool(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(&self.config).arg("--data").arg(&self.data).arg(subcommand);
        command
    }

    /// Runs a command to its end; its output is shown only when it fails.
    fn run(&self, mut command: Command, input: &[u8]) -> Result<()> {
        let shown = format!("{command:?}");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().doing(&shown)?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input).doing(&shown)?;
        }
        let output = child.wait_with_output().doing(&shown)?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        Err(Error::new(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&said))))
    }
}

impl Server for Mailyard {
    fn info(&self) -> ServerInfo {
        let output = Command::new(&self.program).arg("--version").output();
        let version =
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default();
        let config = std::fs::read_to_string(&self.config).unwrap_or_default();
        let mut settings: Vec<String> = config.lines().map(str::to_string).collect();
        if self.database.is_some() {
            settings.push(Mariadb::version());
            settings.extend(mariadb::OPTIONS.map(str::to_string));
        }
        let durability = match self.form {
            Form::Sql => "every change is committed, and the database's log synced, before OK",
            _ => "every change is synced (fdatasync of the log, one for all that wait) before OK",
        };
        ServerInfo {
            name: format!("mailyard-{}", self.form.name()),
            version,
            format: self.form.name().into(),
            durability: durability.into(),
            settings,
        }
    }

    fn accounts(&mut self, count: usize) -> Result<Vec<Address>> {
        for number in self.accounts..count {
            self.add_user(&user(number))?;
        }
        self.accounts = self.accounts.max(count);
        let account = |number| Address { user: user(number), ..self.address.clone() };
        Ok((0..count.max(1)).map(account).collect())
    }

    fn local(&mut self) -> Option<&mut dyn Local> {
        Some(self)
    }
}

impl Local for Mailyard {
    fn start(&mut self) -> Result<()> {
        if self.child.is_some() {
            return Ok(());
        }
        if let Some(database) = &mut self.database {
            database.start()?;
        }
        let log = File::options().create(true).append(true).open(&self.log).doing(self.log.display())?;
        let errors = log.try_clone().doing(self.log.display())?;
        let mut command = Command::new(&self.program);
        command.arg("serve").arg("--data").arg(&self.data).arg("--config").arg(&self.config);
        for (protocol, port) in [("imap", self.address.port), ("lmtp", self.lmtp), ("pop3", self.pop3)] {
            command.arg("--listen").arg(format!("{protocol}={}:{port}", self.address.host));
        }
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        // Ctrl-C goes to the group of the terminal: this program alone decides when servers end.
        command.process_group(0);
        let mut child = command.spawn().doing(self.program.display())?;
        interrupt::kill_on_interrupt(Pid::from_child(&child));
        let began = Instant::now();
        loop {
            if Connection::login(&self.address).is_ok() {
                self.child = Some(child);
                return Ok(());
            }
            if let Some(status) = child.try_wait().doing("waiting")? {
                interrupt::is_gone(Pid::from_child(&child));
                return Err(Error::new(format!("the server ended with {status}; see {}", self.log.display())));
            }
            if began.elapsed() > START_MAX {
                interrupt::is_gone(Pid::from_child(&child));
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(format!("the server did not answer; see {}", self.log.display())));
            }
            std::thread::sleep(POLL);
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.stop_server()?;
        self.database.as_mut().map_or(Ok(()), Mariadb::stop)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        let database = self.database.as_ref().and_then(Mariadb::process);
        Ok(self.child.iter().map(Child::id).chain(database).collect())
    }

    fn port(&self, service: Service) -> Option<u16> {
        Some(match service {
            Service::Lmtp => self.lmtp,
            Service::Pop3 => self.pop3,
        })
    }

    fn storage(&self, account: &Address) -> Vec<PathBuf> {
        let kept = if self.form == Form::Sql { "cache" } else { "accounts" };
        let mut storage = vec![self.data.join(kept).join(&account.user)];
        storage.extend(self.form.has_files().then(|| self.mail.join(&account.user)));
        // The rows of one account are nowhere apart.
        storage.extend(self.database.as_ref().map(|database| database.files().to_path_buf()));
        storage
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.data.clone()];
        files.extend(self.form.has_files().then(|| self.mail.clone()));
        files.extend(self.database.as_ref().map(|database| database.files().to_path_buf()));
        files
    }

    fn mbox(&self, account: &Address, mailbox: &str) -> Option<PathBuf> {
        (self.form == Form::Mbox).then(|| self.mail.join(&account.user).join("mbox").join(mailbox))
    }

    fn convert(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
        if self.form.has_files() {
            return Ok(None);
        }
        if let Some(database) = &mut self.database {
            database.start()?;
        }
        self.import_for(&account.user, mbox, mailbox, &[])?;
        Ok(Some("mailyard import".into()))
    }

    /// A Maildir that others have filled is served as it is.
    fn place(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<String> {
        let maildir = self.mail.join(&account.user).join(self.form.name()).join(format!(".{mailbox}"));
        for part in ["cur", "new", "tmp"] {
            let part = maildir.join(part);
            std::fs::create_dir_all(&part).doing(part.display())?;
        }
        placed::maildir(mbox, &maildir, |_| Ok(()))
    }

    fn can_place(&self) -> bool {
        self.form == Form::Maildir
    }

    fn backups(&self) -> Option<&dyn Backups> {
        Some(self)
    }
}

impl Backups for Mailyard {
    fn save(&self, account: &Address, folder: &Path) -> Result<()> {
        let mut save = self.tool("backup");
        save.args(["--quiet", "--user", &account.user, "--to"]).arg(folder);
        self.run(save, b"")
    }

    fn verify(&self, folder: &Path) -> Result<()> {
        let mut verify = self.tool("backup");
        verify.args(["verify", "--quiet"]).arg(folder);
        self.run(verify, b"")
    }

    fn restore_mailbox(&self, account: &Address, folder: &Path, mailbox: &str, into: &str) -> Result<()> {
        let mut restore = self.tool("restore");
        restore.args(["--quiet", "--user", &account.user, "--mailbox", mailbox, "--into", into, "--from"]).arg(folder);
        self.run(restore, b"")
    }

    fn restore_account(&self, account: &Address, folder: &Path, user: &str) -> Result<()> {
        let mut restore = self.tool("restore");
        restore.args(["--quiet", "--user", &account.user, "--as-user", user, "--from"]).arg(folder);
        self.run(restore, b"")
    }

    fn admit(&self, user: &str) -> Result<Address> {
        let mut add = self.tool("user");
        add.args(["add", user, "--password-stdin"]);
        self.run(add, format!("{PASSWORD}\n").as_bytes())?;
        Ok(Address { user: user.to_string(), ..self.address.clone() })
    }

    fn forget_account(&self, user: &str) -> Result<()> {
        let mut remove = self.tool("user");
        remove.args(["remove", user, "--delete-mail"]);
        self.run(remove, b"")
    }
}

/// Names of the accounts: the first one's has no number.
pub fn user(number: usize) -> String {
    if number == 0 { USER.to_string() } else { format!("{USER}{number}") }
}

impl Drop for Mailyard {
    fn drop(&mut self) {
        // An error on the way leaves no server behind.
        if let Some(mut child) = self.child.take() {
            interrupt::is_gone(Pid::from_child(&child));
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that nobody listens on now, and that no connection of anybody is given: it lies below the range that the
/// kernel takes the near ends of connections from, and this process is given each one once.
pub fn free_port() -> Result<u16> {
    /// The first port that is tried; registered services lie below and seldom here.
    const LOWEST: u32 = 20_000;
    const RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string(RANGE).doing(RANGE)?;
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768u32);
    let count = first.saturating_sub(LOWEST).max(1);
    for _ in 0..count {
        // Processes that run side by side begin at different places.
        let step = std::process::id().wrapping_mul(97).wrapping_add(TRIED.fetch_add(1, Ordering::Relaxed));
        let Ok(port) = u16::try_from(LOWEST.saturating_add(step % count)) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(Error::new(format!("no port from {LOWEST} to {first} is free")))
}
