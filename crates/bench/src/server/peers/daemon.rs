//! What all peers have in common: a folder, a port, accounts, starting, waiting for the greeting, stopping.
//!
//! What differs from product to product is a [`Product`]: its configuration, its accounts, its names for things.

use super::package::{Installed, Package};
use crate::error::{Doing, Error, Result};
use crate::interrupt;
use crate::results::ServerInfo;
use crate::server::mailyard::{PASSWORD, free_port, user};
use crate::server::tree::{Launch, Tree, last_lines};
use crate::server::{Local, Server, Service};
use crate::wire::{Address, Connection};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A server that starts has this long to greet.
const START_MAX: Duration = Duration::from_secs(60);
/// One attempt to be greeted.
const GREETING_MAX: Duration = Duration::from_secs(5);
/// How often a starting server is looked at.
const POLL: Duration = Duration::from_millis(5);
/// The user who owns the mail when this program runs as root: servers refuse to open mail as root. `nobody` in Debian.
const OWNER: u32 = 65_534;

/// A mail server that the benchmark knows how to run.
pub trait Product {
    /// What has to be installed.
    fn package(&self) -> &'static Package;

    /// Where messages live: `mbox`, `Maildir`, ...
    fn format(&self) -> &'static str;

    /// What it does before it acknowledges, in words.
    fn durability(&self, synced: bool) -> &'static str;

    /// Whether [`Local::set_synced`] can turn syncing off.
    fn can_be_unsynced(&self) -> bool;

    /// What names of mailboxes begin with, see [`Address::prefix`].
    fn prefix(&self) -> &'static str {
        ""
    }

    /// Writes the configuration for this start; says what to run and which settings were chosen. The folders of the site are there.
    fn configure(&self, site: &Site) -> Result<Launch>;

    /// The settings that were chosen, for the report.
    fn settings(&self, site: &Site) -> Vec<String>;

    /// Makes accounts, all that there are from now on, earlier ones among them; the server runs.
    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()>;

    /// Whether it offers a service beside IMAP, at [`Site::lmtp`] or [`Site::pop3`].
    fn offers(&self, site: &Site, service: Service) -> bool {
        let _ = (site, service);
        false
    }

    /// Where the mail of an account is.
    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf>;

    /// See [`Local::convert`].
    fn convert(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
        let _ = (site, user, mailbox, mbox);
        Ok(None)
    }

    /// See [`Local::place`].
    fn place(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<String> {
        let _ = (site, user, mailbox, mbox);
        Err(Error::new("the server's files cannot be written by others"))
    }

    /// See [`Local::can_place`].
    fn can_place(&self) -> bool {
        false
    }

    /// See [`Local::index`].
    fn index(&self, site: &Site, user: &str, mailbox: &str) -> Result<Option<String>> {
        let _ = (site, user, mailbox);
        Ok(None)
    }

    /// The mbox file of a mailbox, when there is one.
    fn mbox(&self, site: &Site, user: &str, mailbox: &str) -> Option<PathBuf> {
        let _ = (site, user, mailbox);
        None
    }
}

/// What a server of ours has on this machine.
pub struct Site {
    /// The peer's name.
    pub name: &'static str,
    /// Its folder.
    pub work: PathBuf,
    /// Loopback only.
    pub port: u16,
    /// The same for LMTP, where there is that.
    pub lmtp: u16,
    /// The same for POP3.
    pub pop3: u16,
    /// Whether it is to sync before it acknowledges.
    pub synced: bool,
    /// User and group id of the mail.
    pub owner: (u32, u32),
    /// Whether this program is root, and servers may change their user.
    pub root: bool,
    /// What names of mailboxes begin with, see [`Address::prefix`].
    pub prefix: &'static str,
    /// How its programs are found.
    pub installed: Installed,
}

impl Site {
    /// The folder of the mail; writable for the owner.
    pub fn mail(&self) -> PathBuf {
        self.work.join("mail")
    }

    /// The folder for sockets and other things that only live as long as the server.
    pub fn run(&self) -> PathBuf {
        self.work.join("run")
    }

    /// The folder for configuration.
    pub fn config(&self) -> PathBuf {
        self.work.join("config")
    }

    /// What the server reports.
    pub fn log(&self) -> PathBuf {
        self.work.join("server.log")
    }

    /// Makes a folder, the owner's.
    pub fn make_owned(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).doing(folder.display())?;
        self.give_to_owner(folder)
    }

    /// Gives a file or folder to the owner of the mail.
    pub fn give_to_owner(&self, path: &Path) -> Result<()> {
        if self.root {
            std::os::unix::fs::chown(path, Some(self.owner.0), Some(self.owner.1)).doing(path.display())?;
        }
        Ok(())
    }

    /// The address of an account.
    pub fn address(&self, user: &str) -> Address {
        Address {
            host: "127.0.0.1".into(),
            port: self.port,
            user: user.into(),
            password: PASSWORD.into(),
            prefix: self.prefix.into(),
        }
    }
}

/// A peer that is set up, and runs or not.
pub struct Daemon {
    product: Box<dyn Product>,
    site: Site,
    tree: Option<Tree>,
    users: usize,
}

impl Daemon {
    /// Prepares a server in an existing folder; starts nothing yet.
    pub fn create(name: &'static str, product: Box<dyn Product>, work: &Path, installed: Installed) -> Result<Daemon> {
        let root = rustix::process::geteuid().is_root();
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let work = work.canonicalize().doing(work.display())?;
        if root {
            reachable_for_others(name, &work)?;
        }
        let owner = if root { (OWNER, OWNER) } else { own };
        let prefix = product.prefix();
        let (port, lmtp, pop3) = (free_port()?, free_port()?, free_port()?);
        let site = Site { name, work, port, lmtp, pop3, synced: true, owner, root, prefix, installed };
        for folder in [site.run(), site.config()] {
            std::fs::create_dir_all(&folder).doing(folder.display())?;
        }
        site.make_owned(&site.mail())?;
        Ok(Daemon { product, site, tree: None, users: 0 })
    }

    /// Whether the server greets. Those who are full or not yet ready may close the connection or say BYE.
    fn greets(&self) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.site.port));
        let Ok(stream) = TcpStream::connect_timeout(&address, GREETING_MAX) else { return false };
        let mut line = Vec::new();
        stream.set_read_timeout(Some(GREETING_MAX)).is_ok()
            && BufReader::new(stream).read_until(b'\n', &mut line).is_ok()
            && line.starts_with(b"* OK")
    }

    /// Whether the server is ready: once there are accounts, a real login has to succeed, since what asks for passwords may be a program
    /// of its own that is not up yet when the listener greets.
    fn answers(&self) -> bool {
        self.greets() && (self.users == 0 || Connection::login(&self.site.address(&user(0))).is_ok())
    }

    fn failed(&self, what: &str) -> Error {
        Error::new(format!("{}: {what}: {}", self.site.name, last_lines(&self.site.log())))
    }
}

/// Servers give up root's rights and must still reach their files.
fn reachable_for_others(name: &str, work: &Path) -> Result<()> {
    const SEARCHABLE_BY_OTHERS: u32 = 0o001;
    for folder in work.ancestors() {
        let mode = folder.metadata().doing(folder.display())?.permissions().mode();
        if mode & SEARCHABLE_BY_OTHERS == 0 {
            let text = "is closed to other users, and the server does not run as root: name another folder with --work";
            return Err(Error::new(format!("{name}: {} {text}", folder.display())));
        }
    }
    Ok(())
}

impl Server for Daemon {
    fn info(&self) -> ServerInfo {
        ServerInfo {
            name: self.site.name.into(),
            version: self.site.installed.version.clone(),
            format: self.product.format().into(),
            durability: self.product.durability(self.site.synced).into(),
            settings: self.product.settings(&self.site),
        }
    }

    fn accounts(&mut self, count: usize) -> Result<Vec<Address>> {
        let count = count.max(1);
        if self.users < count {
            let all: Vec<String> = (0..count).map(user).collect();
            self.product.set_accounts(&self.site, &all).doing(format!("{}: making accounts", self.site.name))?;
            self.users = count;
        }
        Ok((0..count).map(|number| self.site.address(&user(number))).collect())
    }

    fn local(&mut self) -> Option<&mut dyn Local> {
        Some(self)
    }
}

impl Local for Daemon {
    fn start(&mut self) -> Result<()> {
        if let Some(tree) = &self.tree {
            if tree.runs()? {
                return Ok(());
            }
            // It died by itself.
            self.tree = None;
        }
        interrupt::check()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, self.site.port))
            .doing(format!("{}: port {} is taken by another program", self.site.name, self.site.port))?;
        let launch = self.product.configure(&self.site)?;
        let tree = Tree::start(&launch, &self.site.log()).doing(self.site.name)?;
        let began = Instant::now();
        while !self.answers() {
            interrupt::check()?;
            if !tree.runs()? {
                return Err(self.failed("the server ended at once"));
            }
            if began.elapsed() > START_MAX {
                return Err(self.failed("the server does not answer"));
            }
            std::thread::sleep(POLL);
        }
        self.tree = Some(tree);
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        let Some(tree) = self.tree.take() else { return Ok(()) };
        if !tree.runs()? {
            return Err(self.failed("the server had ended by itself"));
        }
        tree.stop().doing(self.site.name).map(drop)
    }

    fn processes(&self) -> Result<Vec<u32>> {
        self.tree.as_ref().map_or(Ok(Vec::new()), Tree::processes)
    }

    fn port(&self, service: Service) -> Option<u16> {
        let port = match service {
            Service::Lmtp => self.site.lmtp,
            Service::Pop3 => self.site.pop3,
        };
        self.product.offers(&self.site, service).then_some(port)
    }

    fn storage(&self, account: &Address) -> Vec<PathBuf> {
        self.product.storage(&self.site, &account.user)
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.site.work.clone()]
    }

    fn mbox(&self, account: &Address, mailbox: &str) -> Option<PathBuf> {
        self.product.mbox(&self.site, &account.user, mailbox)
    }

    fn convert(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
        self.product.convert(&self.site, &account.user, mailbox, mbox)
    }

    fn place(&mut self, account: &Address, mailbox: &str, mbox: &Path) -> Result<String> {
        self.product.place(&self.site, &account.user, mailbox, mbox)
    }

    fn can_place(&self) -> bool {
        self.product.can_place()
    }

    fn index(&mut self, account: &Address, mailbox: &str) -> Result<Option<String>> {
        self.product.index(&self.site, &account.user, mailbox)
    }

    fn set_synced(&mut self, synced: bool) -> Result<bool> {
        if !self.product.can_be_unsynced() {
            return Ok(false);
        }
        self.site.synced = synced;
        Ok(true)
    }
}
