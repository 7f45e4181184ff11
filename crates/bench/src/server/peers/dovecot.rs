//! Dovecot 2.3 with its four formats: mbox, Maildir, sdbox, mdbox; mdbox also with Debian's full-text plugin.
//!
//! Every user with the one password exists (a static passdb), so accounts cost nothing. Sessions are processes of their own, as by
//! default; logins are served by processes that stay ("high-performance mode" of Dovecot's manual, "Login processes").

use super::daemon::{Product, Site};
use super::doveadm;
use super::package::Package;
use crate::error::Result;
use crate::server::Service;
use crate::server::mailyard::PASSWORD;
use crate::server::tree::{Launch, write};
use std::path::{Path, PathBuf};

/// What has to be installed.
pub const PACKAGE: Package = Package {
    name: "dovecot",
    debian: &["dovecot-imapd", "dovecot-core", "dovecot-lmtpd", "dovecot-pop3d"],
    program: "/usr/sbin/dovecot",
};

/// With the full-text plugin.
pub const PACKAGE_XAPIAN: Package = Package {
    name: "dovecot-xapian",
    debian: &["dovecot-fts-xapian", "dovecot-imapd", "dovecot-core", "dovecot-lmtpd", "dovecot-pop3d"],
    program: "/usr/lib/dovecot/modules/lib21_fts_xapian_plugin.so",
};

/// The plugin as its manual has it, but for needles of two letters as well. What it says is the answer: nothing is looked at again. The
/// index is made when a suite asks for it, not with every delivery.
const XAPIAN: [&str; 5] = [
    "mail_plugins = fts fts_xapian",
    "plugin/fts = xapian",
    "plugin/fts_xapian = partial=2 full=20",
    "plugin/fts_autoindex = no",
    "plugin/fts_enforced = yes",
];

/// More than any measurement opens at once.
const CONNECTIONS_MAX: u32 = 4_096;

/// Dovecot with one of its formats.
pub enum Dovecot {
    /// One file a mailbox (RFC 4155), indexes beside it.
    Mbox,
    /// One file a message, flags in its name.
    Maildir,
    /// One file a message, flags in the index only.
    Sdbox,
    /// Files of many messages, up to 10 MiB each.
    Mdbox,
    /// The same, with an index of pieces of words.
    MdboxXapian,
}

impl Dovecot {
    fn mail_location(&self) -> &'static str {
        match self {
            Dovecot::Mbox => "mbox:~/mbox:INBOX=~/mbox/INBOX",
            Dovecot::Maildir => "maildir:~/Maildir",
            Dovecot::Sdbox => "sdbox:~/sdbox",
            Dovecot::Mdbox | Dovecot::MdboxXapian => "mdbox:~/mdbox",
        }
    }

    fn plugins(&self) -> &'static [&'static str] {
        if matches!(self, Dovecot::MdboxXapian) { &XAPIAN } else { &[] }
    }

    /// What is said in the report.
    fn chosen(&self, site: &Site) -> Vec<String> {
        // "always" syncs index changes as well, such as flags; "optimized" only new messages.
        let fsync = if site.synced { "always" } else { "never" };
        let mut chosen = vec![
            format!("mail_location = {}", self.mail_location()),
            format!("mail_fsync = {fsync}"),
            "ssl = no".into(),
            "disable_plaintext_auth = no".into(),
            "mail_max_userip_connections = 0".into(),
            "default_vsz_limit = 0".into(),
            format!("default_process_limit = {CONNECTIONS_MAX}"),
            format!("default_client_limit = {}", CONNECTIONS_MAX * 4),
        ];
        chosen.extend(self.plugins().iter().map(|setting| setting.to_string()));
        chosen
    }
}

impl Product for Dovecot {
    fn package(&self) -> &'static Package {
        if matches!(self, Dovecot::MdboxXapian) { &PACKAGE_XAPIAN } else { &PACKAGE }
    }

    fn format(&self) -> &'static str {
        match self {
            Dovecot::Mbox => "mbox",
            Dovecot::Maildir => "Maildir",
            Dovecot::Sdbox => "sdbox",
            Dovecot::Mdbox => "mdbox",
            Dovecot::MdboxXapian => "mdbox, fts_xapian",
        }
    }

    fn durability(&self, synced: bool) -> &'static str {
        if synced {
            "mail_fsync=always: fsync or fdatasync of the messages, folders and index logs that a command wrote, before OK"
        } else {
            "mail_fsync=never: nothing is synced"
        }
    }

    fn can_be_unsynced(&self) -> bool {
        true
    }

    fn configure(&self, site: &Site) -> Result<Launch> {
        let (run, log, mail) = (site.run(), site.log(), site.mail());
        let (uid, gid) = site.owner;
        let mut text = self.chosen(site).join("\n");
        text.push_str(&format!(
            "
protocols = {protocols}
listen = 127.0.0.1
base_dir = {run}
state_dir = {run}
log_path = {log}
first_valid_uid = 1
namespace inbox {{
  inbox = yes
}}
passdb {{
  driver = static
  args = password={PASSWORD}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={mail}/%u allow_all_users=yes
}}
service imap-login {{
  service_count = 0
  process_min_avail = 2
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
",
            protocols = protocols(site),
            run = run.display(),
            log = log.display(),
            mail = mail.display(),
            port = site.port,
        ));
        text.push_str(&services(site));
        if !site.root {
            text.push_str(&unprivileged());
        }
        let path = site.config().join("dovecot.conf");
        write(&path, &text)?;
        let program = vec![PACKAGE.program.into(), "-F".into(), "-c".into(), path.into()];
        Ok(Launch { mounts: site.installed.mounts(), programs: vec![program], ..Launch::default() })
    }

    fn settings(&self, site: &Site) -> Vec<String> {
        let mut settings = self.chosen(site);
        settings.push("service imap-login { service_count = 0, process_min_avail = 2 }".into());
        settings
    }

    fn set_accounts(&self, _: &Site, _: &[String]) -> Result<()> {
        Ok(())
    }

    fn offers(&self, site: &Site, service: Service) -> bool {
        has(site, service)
    }

    fn storage(&self, site: &Site, user: &str) -> Vec<PathBuf> {
        vec![site.mail().join(user)]
    }

    fn convert(&self, site: &Site, user: &str, mailbox: &str, mbox: &Path) -> Result<Option<String>> {
        if matches!(self, Dovecot::Mbox) { Ok(None) } else { doveadm::import(site, user, mailbox, mbox) }
    }

    fn index(&self, site: &Site, user: &str, mailbox: &str) -> Result<Option<String>> {
        if !matches!(self, Dovecot::MdboxXapian) {
            return Ok(None);
        }
        doveadm::index(site, user, mailbox).map(Some)
    }

    fn mbox(&self, site: &Site, user: &str, mailbox: &str) -> Option<PathBuf> {
        matches!(self, Dovecot::Mbox).then(|| site.mail().join(user).join("mbox").join(mailbox))
    }
}

/// Whether the packages with the service are there.
fn has(site: &Site, service: Service) -> bool {
    let program = match service {
        Service::Lmtp => "usr/lib/dovecot/lmtp",
        Service::Pop3 => "usr/lib/dovecot/pop3",
    };
    site.installed.tree.as_deref().unwrap_or(Path::new("/")).join(program).is_file()
}

fn protocols(site: &Site) -> String {
    let all = [("lmtp", Service::Lmtp), ("pop3", Service::Pop3)];
    let there = all.into_iter().filter(|(_, service)| has(site, *service)).map(|(name, _)| name);
    std::iter::once("imap").chain(there).collect::<Vec<_>>().join(" ")
}

/// LMTP on TCP, as many processes as there are connections; POP3 as IMAP is.
fn services(site: &Site) -> String {
    let mut text = String::new();
    if has(site, Service::Lmtp) {
        text.push_str(&format!(
            "service lmtp {{
  process_limit = {CONNECTIONS_MAX}
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {}
  }}
}}
protocol lmtp {{
  postmaster_address = postmaster@localhost
}}
",
            site.lmtp
        ));
    }
    if has(site, Service::Pop3) {
        text.push_str(&format!(
            "service pop3-login {{
  service_count = 0
  process_min_avail = 2
  inet_listener pop3 {{
    port = {}
  }}
  inet_listener pop3s {{
    port = 0
  }}
}}
",
            site.pop3
        ));
    }
    text
}

/// Without root's rights everything is one user and nothing is confined ("Rootless installation" of Dovecot's manual).
fn unprivileged() -> String {
    let id = rustix::process::geteuid().as_raw();
    let name = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_string())
    });
    let name = name.unwrap_or_else(|| id.to_string());
    let group = rustix::process::getegid().as_raw();
    let mut text =
        format!("default_internal_user = {name}\ndefault_login_user = {name}\ndefault_internal_group = {group}\n");
    for service in ["imap-login", "anvil", "imap-urlauth-login", "pop3-login"] {
        text.push_str(&format!("service {service} {{\n  chroot =\n}}\n"));
    }
    text
}
