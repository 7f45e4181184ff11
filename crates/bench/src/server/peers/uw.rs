//! UW-IMAP's imapd (and its successors of the same code) with mbox files and no index.
//!
//! It serves one connection on its standard input and output: systemd-socket-activate listens and starts it, as inetd did. It becomes the
//! user who logs in, so it has to be started by root.

use super::daemon::{Product, Site};
use super::package::Package;
use super::users;
use crate::error::{Error, Result};
use crate::server::tree::Launch;
use std::path::{Path, PathBuf};

/// What has to be installed. Debian 12 has its library only.
pub const PACKAGE: Package = Package { name: "uw-imap", debian: &[], program: "imapd" };

const LISTENER: &str = "/usr/bin/systemd-socket-activate";

/// imapd with mbox files.
pub struct Uw;

impl Product for Uw {
    fn package(&self) -> &'static Package {
        &PACKAGE
    }

    fn format(&self) -> &'static str {
        "mbox"
    }

    fn durability(&self, _: bool) -> &'static str {
        "fsync of the mbox file after APPEND and after it was rewritten"
    }

    fn can_be_unsynced(&self) -> bool {
        false
    }

    fn configure(&self, site: &Site) -> Result<Launch> {
        if !site.root {
            return Err(Error::new("UW-IMAP's imapd logs users in as root only"));
        }
        if !Path::new(LISTENER).is_file() {
            return Err(Error::new(format!("{LISTENER} is not there: apt-get install systemd")));
        }
        let address = format!("127.0.0.1:{}", site.port);
        let program = vec![
            LISTENER.into(),
            "--accept".into(),
            "--inetd".into(),
            "--listen".into(),
            address.into(),
            site.installed.program.clone().into(),
        ];
        Ok(Launch { mounts: vec![users::mount(site)?], programs: vec![program], ..Launch::default() })
    }

    fn settings(&self, _: &Site) -> Vec<String> {
        vec!["started for each connection by systemd-socket-activate --accept --inetd".into()]
    }

    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()> {
        users::set(site, users)
    }

    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf> {
        vec![site.mail().join(user)]
    }

    fn mbox(&self, site: &Site, user: &str, mailbox: &str) -> Option<PathBuf> {
        Some(site.mail().join(user).join(mailbox))
    }
}
