//! GNU Mailutils' imap4d with mbox files and no index.
//!
//! It asks the system for users, see [`users`].

use super::daemon::{Product, Site};
use super::package::Package;
use super::{placed, users};
use crate::error::Result;
use crate::server::tree::{Launch, write};
use std::path::{Path, PathBuf};

/// What has to be installed.
pub const PACKAGE: Package = Package { name: "mailutils", debian: &["mailutils-imap4d"], program: "/usr/sbin/imap4d" };

/// More than any measurement opens at once.
const CONNECTIONS_MAX: u32 = 4_096;

/// imap4d with mbox files.
pub struct Mailutils;

impl Mailutils {
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
        let mut mounts = site.installed.mounts();
        mounts.push(users::mount(site)?);
        let program = vec![PACKAGE.program.into(), format!("--config-file={}", config.display()).into()];
        Ok(Launch { mounts, programs: vec![program], ..Launch::default() })
    }

    fn settings(&self, _: &Site) -> Vec<String> {
        Self::chosen()
    }

    fn set_accounts(&self, site: &Site, users: &[String]) -> Result<()> {
        users.iter().try_for_each(|user| site.make_owned(&site.mail().join(user).join("mbox")))?;
        users::set(site, users)
    }

    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf> {
        vec![site.mail().join(user)]
    }

    fn place(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<String> {
        placed::one_file(site, mbox, &site.mail().join(user).join("mbox").join(mailbox))?;
        Ok("written as an mbox file".into())
    }

    fn can_place(&self) -> bool {
        true
    }

    fn mbox(&self, site: &Site, user: &str, mailbox: &str) -> Option<PathBuf> {
        Some(site.mail().join(user).join("mbox").join(mailbox))
    }
}
