//! GNU Mailutils' imap4d with mbox files and no index.
//!
//! It asks the system for users: the server sees a list of users of the run's at `/etc/passwd`.

use super::daemon::{Product, Site};
use super::package::Package;
use crate::error::{Doing, Result};
use crate::server::tree::{Launch, Mount, write};
use std::path::{Path, PathBuf};

/// What has to be installed.
pub const PACKAGE: Package = Package { name: "mailutils", debian: &["mailutils-imap4d"], program: "/usr/sbin/imap4d" };

const USERS: &str = "/etc/passwd";
/// The password of all accounts, as crypt(5) writes it.
const PASSWORD: &str = "$1$mailyard$xW51jGjdvB7FF1otpjWC1.";
/// More than any measurement opens at once.
const CONNECTIONS_MAX: u32 = 4_096;

/// imap4d with mbox files.
pub struct Mailutils;

impl Mailutils {
    fn users(site: &Site) -> PathBuf {
        site.config().join("passwd")
    }

    fn chosen() -> Vec<String> {
        vec![format!("max-children {CONNECTIONS_MAX};"), "mailbox { mailbox-type mbox; };".into()]
    }
}

impl Product for Mailutils {
    fn package(&self) -> &'static Package {
        &PACKAGE
    }

    fn format(&self) -> &'static str {
        "mbox"
    }

    fn durability(&self, _: bool) -> &'static str {
        "none: Mailutils calls neither fsync nor fdatasync"
    }

    fn can_be_unsynced(&self) -> bool {
        false
    }

    fn configure(&self, site: &Site) -> Result<Launch> {
        let mail = site.mail();
        let text = format!(
            "mode daemon;
foreground yes;
pidfile \"{pid}\";
login-disabled no;
{chosen}
auth {{
  authentication generic;
  authorization system;
}};
logging {{
  syslog no;
}};
mailbox {{
  mailbox-pattern \"{mail}/${{user}}/INBOX\";
}};
namespace personal {{
  prefix \"\" {{
    directory \"{mail}/$user/mbox\";
    delimiter \"/\";
  }};
}};
server 127.0.0.1:{port} {{
}};
",
            chosen = Self::chosen().join("\n"),
            pid = site.run().join("pid").display(),
            mail = mail.display(),
            port = site.port
        );
        let config = site.config().join("imap4d.conf");
        write(&config, &text)?;
        let users = Self::users(site);
        if !users.exists() {
            // The file is shown to the server when it starts: it has to be there, and is written in place later.
            std::fs::copy(USERS, &users).doing(USERS)?;
        }
        let mut mounts = site.installed.mounts();
        mounts.push(Mount::Bind { from: users, at: USERS.into() });
        let program = vec![PACKAGE.program.into(), format!("--config-file={}", config.display()).into()];
        Ok(Launch { mounts, programs: vec![program], ..Launch::default() })
    }

    fn settings(&self, _: &Site) -> Vec<String> {
        Self::chosen()
    }

    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()> {
        let (uid, gid) = site.owner;
        let mut text = std::fs::read_to_string(USERS).doing(USERS)?;
        for user in users {
            let home = site.mail().join(user);
            site.make_owned(&home)?;
            site.make_owned(&home.join("mbox"))?;
            text.push_str(&format!("{user}:{PASSWORD}:{uid}:{gid}::{}:/bin/sh\n", home.display()));
        }
        write(Path::new(&Self::users(site)), &text)
    }

    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf> {
        vec![site.mail().join(user)]
    }

    fn mbox(&self, site: &Site, user: &str, mailbox: &str) -> Option<PathBuf> {
        Some(site.mail().join(user).join("mbox").join(mailbox))
    }
}
