//! Courier IMAP 5 with Maildirs.
//!
//! Its paths are compiled in: the server sees a configuration folder and a folder for sockets of the run's at `/etc/courier` and `/run`.
//! Accounts are in its userdb. The daemon that starts a process for each connection (couriertcpd) is run as its script does, without the
//! limits on connections and memory.

use super::daemon::{Product, Site};
use super::package::Package;
use super::placed;
use crate::error::{Doing, Error, Result};
use crate::server::tree::{self, Launch, Mount, write};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What has to be installed.
pub const PACKAGE: Package = Package {
    name: "courier",
    debian: &["courier-imap", "courier-base", "courier-authdaemon", "courier-authlib-userdb"],
    program: "/usr/lib/courier/courier/imaplogin",
};

const AUTHDAEMON: &str = "/usr/lib/courier/courier-authlib/authdaemond";
const MAKEDAT: &str = "/usr/lib/courier/courier-authlib/makedatprog";
const ETC: &str = "/etc/courier";
const RUN: &str = "/run";
/// SHA-256 of the password of all accounts, in base64, in the notation of Courier's authentication library.
const PASSWORD: &str = "{SHA256}bTl5IGAReb/uc9D1sJ6ug1Y9z4jXEKdX669v3O71GW0=";
/// More than any measurement opens at once.
const CONNECTIONS_MAX: &str = "4096";

/// Settings of imapd, which come through its environment: those of Debian's /etc/courier/imapd that matter to a session.
const SETTINGS: [(&str, &str); 13] = [
    ("IMAP_CAPABILITY", "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE"),
    ("IMAP_KEYWORDS", "1"),
    ("IMAP_ACL", "1"),
    ("IMAP_IDLE_TIMEOUT", "60"),
    ("IMAP_MAILBOX_SANITY_CHECK", "1"),
    ("IMAP_DISABLETHREADSORT", "0"),
    ("IMAP_CHECK_ALL_FOLDERS", "0"),
    ("IMAP_OBSOLETE_CLIENT", "0"),
    ("IMAP_USELOCKS", "1"),
    ("IMAP_ENHANCEDIDLE", "0"),
    ("IMAP_TRASHFOLDERNAME", "Trash"),
    ("IMAP_MOVE_EXPUNGE_TO_TRASH", "0"),
    ("IMAP_UMASK", "022"),
];

/// Courier, whose IMAP server knows Maildirs only.
pub struct Courier;

impl Courier {
    fn mounts(site: &Site) -> Vec<Mount> {
        let mut mounts = site.installed.mounts();
        mounts.push(Mount::Bind { from: site.config(), at: ETC.into() });
        mounts.push(Mount::Bind { from: site.run(), at: RUN.into() });
        mounts
    }

    fn home(site: &Site, user: &str) -> PathBuf {
        site.mail().join(user)
    }

    /// Writes one of userdb's files.
    fn write_database(site: &Site, name: &str, entries: &str) -> Result<()> {
        let path = |ending: &str| OsString::from(format!("{ETC}/{name}.{ending}"));
        // It reads lines of key, tab, value up to one that is a dot, and renames the new file over the old one.
        let make = [MAKEDAT.into(), "-".into(), path("tmp"), path("dat")];
        tree::run(&Self::mounts(site), &make, format!("{entries}.\n").as_bytes())
    }
}

impl Product for Courier {
    fn package(&self) -> &'static Package {
        &PACKAGE
    }

    fn format(&self) -> &'static str {
        "Maildir"
    }

    fn durability(&self, _: bool) -> &'static str {
        "none: as packaged, Courier's IMAP server calls neither fsync nor fdatasync"
    }

    fn can_be_unsynced(&self) -> bool {
        false
    }

    fn prefix(&self) -> &'static str {
        "INBOX."
    }

    fn configure(&self, site: &Site) -> Result<Launch> {
        if site.work.starts_with(RUN) {
            return Err(Error::new(format!(
                "Courier cannot be run in {}: it has a {RUN} of its own",
                site.work.display()
            )));
        }
        let sockets = site.run().join("courier/authdaemon");
        std::fs::create_dir_all(&sockets).doing(sockets.display())?;
        let text = format!(
            "authmodulelist=\"authuserdb\"\nauthmodulelistorig=\"authuserdb\"\ndaemons=5\nauthdaemonvar={RUN}/courier/authdaemon\n\
             DEBUG_LOGIN=0\nDEFAULTOPTIONS=\"\"\nLOGGEROPTS=\"\"\n"
        );
        write(&site.config().join("authdaemonrc"), &text)?;
        let daemon = [
            "/usr/sbin/couriertcpd",
            "-address=127.0.0.1",
            &format!("-maxprocs={CONNECTIONS_MAX}"),
            &format!("-maxperip={CONNECTIONS_MAX}"),
            "-nodnslookup",
            "-noidentlookup",
            &site.port.to_string(),
            PACKAGE.program,
            "/usr/bin/imapd",
            "Maildir",
        ];
        Ok(Launch {
            mounts: Self::mounts(site),
            programs: vec![vec![AUTHDAEMON.into()], daemon.iter().map(OsString::from).collect()],
            environment: SETTINGS.iter().map(|(name, value)| (name.to_string(), value.into())).collect(),
        })
    }

    fn settings(&self, _: &Site) -> Vec<String> {
        let mut settings: Vec<String> = SETTINGS.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.push(format!("MAXDAEMONS={CONNECTIONS_MAX}"));
        settings.push(format!("MAXPERIP={CONNECTIONS_MAX}"));
        settings.push("no limit on memory (IMAP_ULIMITD)".into());
        settings
    }

    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()> {
        let (uid, gid) = site.owner;
        let (mut entries, mut shadow) = (String::new(), String::new());
        for user in users {
            let home = Self::home(site, user);
            entries.push_str(&format!("{user}\tuid={uid}|gid={gid}|home={}\n", home.display()));
            shadow.push_str(&format!("{user}\timappw={PASSWORD}\n"));
            make_maildir(site, &home)?;
        }
        Self::write_database(site, "userdb", &entries)?;
        Self::write_database(site, "userdbshadow", &shadow)
    }

    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf> {
        vec![Self::home(site, user)]
    }

    /// UIDs are given at the next SELECT, in the order of the names. The size in a name is what Courier's own deliveries write there.
    fn place(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<String> {
        let maildir = Self::home(site, user).join("Maildir").join(format!(".{mailbox}"));
        placed::maildir(mbox, &maildir, |path| site.give_to_owner(path))
    }

    fn can_place(&self) -> bool {
        true
    }
}

/// An account's Maildir is made by the administrator.
fn make_maildir(site: &Site, home: &Path) -> Result<()> {
    let maildir = home.join("Maildir");
    for folder in [home, &maildir, &maildir.join("cur"), &maildir.join("new"), &maildir.join("tmp")] {
        site.make_owned(folder)?;
    }
    Ok(())
}
