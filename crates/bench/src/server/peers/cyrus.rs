//! Cyrus IMAP 3: one file a message, everything else in index and cache files of its own.
//!
//! Accounts are entries of a SASL password database; a mailbox INBOX is made at the first login (autocreate). Without a full-text index,
//! as by default, searches scan; with that of squatter (pieces of four octets), made when a suite asks for it, they look at what it names.

use super::daemon::{Product, Site};
use super::package::Package;
use super::placed::{self, LineEnds};
use crate::error::{Doing, Result};
use crate::server::mailyard::PASSWORD;
use crate::server::tree::{self, Launch, write};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What has to be installed.
pub const PACKAGE: Package =
    Package { name: "cyrus", debian: &["cyrus-imapd", "cyrus-common"], program: "/usr/lib/cyrus/bin/imapd" };

const PROGRAMS: &str = "/usr/lib/cyrus/bin";
/// Both the server's name and the realm of all users.
const REALM: &str = "localhost";

/// Cyrus, which has one format.
pub struct Cyrus {
    /// With squatter's index.
    pub squatter: bool,
}

impl Cyrus {
    fn chosen(&self, site: &Site) -> Vec<String> {
        let mail = site.mail();
        let mut settings = vec![
            format!("configdirectory: {}", mail.join("config").display()),
            format!("partition-default: {}", mail.join("spool").display()),
            format!("sasl_sasldb_path: {}", passwords(site).display()),
        ];
        if site.root {
            // Programs that root starts become this user.
            settings.extend(["cyrus_user: nobody".into(), "cyrus_group: nogroup".into()]);
        } else if let Some(user) = user_name() {
            settings.push(format!("cyrus_user: {user}"));
        }
        settings.extend(SETTINGS.map(str::to_string));
        if self.squatter {
            settings.push("search_engine: squat".into());
        }
        settings
    }
}

impl Cyrus {
    /// Where the messages of a mailbox are: mbpath(8) knows, as names of folders are made from ids.
    fn folder(site: &Site, mailbox: &str) -> Result<PathBuf> {
        let path = site.run().join("mbpath");
        let script = "\"$0\" -C \"$1\" \"$2\" > \"$3\"";
        let mut ask: Vec<OsString> = ["sh", "-c", script].map(OsString::from).to_vec();
        let imapd = site.config().join("imapd.conf");
        ask.extend([program("mbpath").into(), imapd.into(), mailbox.into(), path.clone().into()]);
        tree::run(&site.installed.mounts(), &ask, b"")?;
        let folder = std::fs::read_to_string(&path).doing(path.display())?;
        Ok(PathBuf::from(folder.trim()))
    }
}

/// Those that do not depend on the place. Mailboxes have the names that clients see on other servers; deleted ones go at once, as the
/// disk would fill with them otherwise. Expunging keeps its default (delayed: the files go later, by a job that is not run).
const SETTINGS: [&str; 11] = [
    "defaultpartition: default",
    "servername: localhost",
    "unixhierarchysep: yes",
    "altnamespace: yes",
    "delete_mode: immediate",
    "autocreate_quota: 0",
    "allowplaintext: yes",
    "sasl_mech_list: PLAIN",
    "sasl_pwcheck_method: auxprop",
    "sasl_auxprop_plugin: sasldb",
    "maxlogins_per_user: 0",
];

fn passwords(site: &Site) -> PathBuf {
    site.mail().join("sasldb")
}

fn program(name: &str) -> PathBuf {
    Path::new(PROGRAMS).join(name)
}

/// The name of the user that runs this program.
fn user_name() -> Option<String> {
    let id = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_string())
    })
}

impl Product for Cyrus {
    fn package(&self) -> &'static Package {
        &PACKAGE
    }

    fn format(&self) -> &'static str {
        if self.squatter { "Cyrus, squatter" } else { "Cyrus" }
    }

    fn durability(&self, _: bool) -> &'static str {
        "fsync of new messages, index and cache, fdatasync of databases, before OK (no setting turns it off)"
    }

    fn can_be_unsynced(&self) -> bool {
        false
    }

    fn configure(&self, site: &Site) -> Result<Launch> {
        let (mail, config) = (site.mail(), site.config());
        // Debian's scripts make these when the package is installed; sockets of services are in `socket`.
        for folder in ["config/socket", "config/proc", "config/lock", "config/db", "spool/stage."] {
            let folder = mail.join(folder);
            std::fs::create_dir_all(&folder).doing(folder.display())?;
            site.give_to_owner(&folder)?;
        }
        for folder in ["config", "spool"] {
            site.give_to_owner(&mail.join(folder))?;
        }
        let (imapd, cyrus) = (config.join("imapd.conf"), config.join("cyrus.conf"));
        write(&imapd, &format!("{}\n", self.chosen(site).join("\n")))?;
        let command = |name: &str| format!("{} -C {}", program(name).display(), imapd.display());
        let text = format!(
            "START {{\n  recover cmd=\"{} -r\"\n}}\nSERVICES {{\n  imap cmd=\"{}\" listen=\"127.0.0.1:{}\" proto=\"tcp4\" \
             prefork=0 maxchild=-1\n}}\nEVENTS {{\n}}\n",
            command("ctl_cyrusdb"),
            command("imapd"),
            site.port
        );
        write(&cyrus, &text)?;
        let pid = site.run().join("master.pid");
        let master = vec![
            program("master").into(),
            "-D".into(),
            "-C".into(),
            imapd.into(),
            "-M".into(),
            cyrus.into(),
            "-p".into(),
            pid.into(),
        ];
        Ok(Launch { mounts: site.installed.mounts(), programs: vec![master], ..Launch::default() })
    }

    fn settings(&self, site: &Site) -> Vec<String> {
        let mut settings = self.chosen(site);
        settings.push("imap prefork=0 maxchild=-1".into());
        settings
    }

    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()> {
        let mut entries = String::new();
        for user in users {
            // The key of sasldb: user, realm and property, zero bytes between them; db_load(1) -T reads pairs of lines.
            entries.push_str(&format!("{user}\\00{REALM}\\00userPassword\n{PASSWORD}\n"));
        }
        let path = passwords(site);
        let load = ["db5.3_load".into(), "-T".into(), "-t".into(), "hash".into(), path.clone().into_os_string()];
        tree::run(&site.installed.mounts(), &load, entries.as_bytes())?;
        site.give_to_owner(&path)
    }

    fn storage(&self, site: &Site, _: &str) -> Vec<PathBuf> {
        // Folders have names made from ids: all accounts together.
        vec![site.mail()]
    }

    /// reconstruct(8) takes files named by UID into the index, each with its time of modification as the internal date.
    fn place(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<String> {
        let name = format!("user/{user}/{mailbox}");
        let folder = Self::folder(site, &name)?;
        let numbered = |number: u32, _: usize| format!("{number}.");
        placed::files(mbox, &folder, LineEnds::CrLf, numbered, |path| site.give_to_owner(path))?;
        let imapd = site.config().join("imapd.conf");
        let reconstruct = [program("reconstruct").into(), "-C".into(), imapd.into(), name.into()];
        tree::run(&site.installed.mounts(), &reconstruct, b"")?;
        Ok("written as its files, one a message, and indexed by reconstruct".into())
    }

    fn can_place(&self) -> bool {
        true
    }

    fn index(&self, site: &Site, user: &str, mailbox: &str) -> Result<Option<String>> {
        if !self.squatter {
            return Ok(None);
        }
        let imapd = site.config().join("imapd.conf");
        let name = format!("user/{user}/{mailbox}");
        let squatter = [program("squatter").into(), "-C".into(), imapd.into(), name.into()];
        tree::run(&site.installed.mounts(), &squatter, b"")?;
        Ok(Some("squatter".into()))
    }
}
