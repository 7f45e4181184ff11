//! Every configuration key, declared once: name, type, default, range and documentation.
//!
//! The macro below makes from it the structs, the defaults, the assignment by name that the parser uses, and the table that the
//! sample and the reference page are written from. A key whose doc says "At start." is read when the server starts; all others are
//! read again on SIGHUP and hold for connections that begin afterwards.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sessions::pop3::UidlFormat;
use store::format::mbox::lock::Method;
use toml::de::DeValue;

use super::delivery::{Aliases, FileMode, Networks};
use super::mbox::{Locks, UserPath, WriteBackAt, WriteLocks};
use super::setting::{Ranged, Setting, choice};

choice! {
    /// When a password may be sent in the clear.
    PlainTextLogin {
        /// Over TLS or within this machine.
        SecureOnly = "secure-only",
        /// Always.
        Always = "always",
    }
}

choice! {
    /// How log lines are written.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

choice! {
    /// What LMTP answers for an account that may hold no more.
    OverQuota {
        /// 452 4.2.2: to be tried again.
        Retry = "retry",
        /// 552 5.2.2: the mail goes back.
        Reject = "reject",
    }
}

choice! {
    /// Where the messages of an account live.
    MailFormat {
        /// In Mailyard's own log.
        Native = "native",
        /// In mbox files, which other programs may use as well.
        Mbox = "mbox",
        /// In the database that `[sql]` names.
        Sql = "sql",
        /// In Maildirs, which other programs may use as well.
        Maildir = "maildir",
    }
}

choice! {
    /// How the names of mailboxes become names of directories.
    Layout {
        /// `a/b` is `.a.b`.
        MaildirPlusPlus = "maildir++",
        /// `a/b` is `a/b`.
        Fs = "fs",
    }
}

choice! {
    /// Which lists of UIDs in Maildirs are kept up.
    UidLists {
        /// Those that are there.
        Auto = "auto",
        /// One in each mailbox.
        Always = "always",
        /// None.
        Never = "never",
    }
}

/// A section as documentation wants it.
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// Its description, line by line.
    pub doc: &'static [&'static str],
    /// Its keys, in the order of their declaration.
    pub keys: &'static [Key],
}

/// A key as documentation wants it.
pub struct Key {
    /// Its name within its section.
    pub name: &'static str,
    /// Its description, line by line.
    pub doc: &'static [&'static str],
    /// What its values are called.
    pub kind: fn() -> String,
    /// Its range, for numbers that have one.
    pub range: Option<fn() -> String>,
}

macro_rules! config {
    ($(
        $(#[doc = $section_doc:literal])*
        $section:ident: $Section:ident {
            $(
                $(#[doc = $doc:literal])*
                $key:ident: $Type:ty = $default:expr $(, in $range:expr)?;
            )*
        }
    )*) => {
        $(
            $(#[doc = $section_doc])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $Section {
                $( $(#[doc = $doc])* pub $key: $Type, )*
            }

            impl Default for $Section {
                fn default() -> Self {
                    $Section { $( $key: $default, )* }
                }
            }
        )*

        /// The whole configuration.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Config {
            $( $(#[doc = $section_doc])* pub $section: $Section, )*
        }

        impl Config {
            /// Sets one key; `None` when there is no such key.
            pub(super) fn set(&mut self, section: &str, key: &str, value: &DeValue<'_>) -> Option<Result<(), String>> {
                match (section, key) {
                    $( $( (stringify!($section), stringify!($key)) => {
                        let value = <$Type as Setting>::from_toml(value);
                        $( let value = value.and_then(|value| value.check(&$range)); )?
                        Some(value.map(|value| self.$section.$key = value))
                    } )* )*
                    _ => None,
                }
            }

            /// Every key with its value as TOML: section, key, value.
            pub(super) fn values(&self) -> Vec<(&'static str, &'static str, String)> {
                vec![ $( $( (stringify!($section), stringify!($key), self.$section.$key.to_toml()), )* )* ]
            }
        }

        /// The sections and keys, for documentation and for suggestions.
        pub static SECTIONS: &[Section] = &[ $(
            Section {
                name: stringify!($section),
                doc: &[ $($section_doc),* ],
                keys: &[ $( Key {
                    name: stringify!($key),
                    doc: &[ $($doc),* ],
                    kind: <$Type as Setting>::kind,
                    range: config!(@range $Type $(, $range)?),
                }, )* ],
            },
        )* ];
    };
    (@range $Type:ty) => { None };
    (@range $Type:ty, $range:expr) => {
        Some(|| {
            let range: std::ops::RangeInclusive<$Type> = $range;
            format!("{} to {}", range.start().to_toml(), range.end().to_toml())
        })
    };
}

config! {
    /// The server as a whole.
    server: ServerSection {
        /// The directory that holds the accounts and the users. `--data` on the command line wins. At start.
        data: PathBuf = PathBuf::new();
        /// How long commands that are under way may go on after SIGTERM, seconds.
        shutdown_grace_seconds: u32 = 10, in 0..=600;
        /// The text of the greeting.
        greeting: String = "Mailyard ready".to_owned();
    }

    /// Where connections are taken. Each list may be empty; port 0 takes a free port, which the `ready` line of the log shows.
    /// `--listen` on the command line replaces the lists. At start.
    listen: ListenSection {
        /// IMAP; STARTTLS is offered where a certificate is configured. At start.
        imap: Vec<SocketAddr> = Vec::new();
        /// IMAP over TLS (RFC 8314). At start.
        imaps: Vec<SocketAddr> = Vec::new();
        /// POP3; STLS is offered where a certificate is configured. At start.
        pop3: Vec<SocketAddr> = Vec::new();
        /// POP3 over TLS (RFC 8314). At start.
        pop3s: Vec<SocketAddr> = Vec::new();
        /// LMTP, for mail transfer agents in `delivery.networks`; nobody logs in. At start.
        lmtp: Vec<SocketAddr> = Vec::new();
        /// A Unix socket for LMTP; `--listen` leaves it as it is. Empty: none. At start.
        lmtp_socket: PathBuf = PathBuf::new();
        /// Metrics in Prometheus' text format over HTTP, with no protection: keep it on a loopback or an administration network.
        /// At start.
        metrics: Vec<SocketAddr> = Vec::new();
    }

    /// The server's certificate, read again on SIGHUP.
    tls: TlsSection {
        /// The certificate chain, PEM, the server's own certificate first. Empty: no TLS.
        certificate_file: PathBuf = PathBuf::new();
        /// The private key, PEM.
        key_file: PathBuf = PathBuf::new();
        /// How long a TLS handshake may take, seconds.
        handshake_seconds: u32 = 20, in 1..=600;
    }

    /// Logging in.
    login: LoginSection {
        /// When a password may be sent in the clear: over TLS and within this machine only, or always.
        plain_text: PlainTextLogin = PlainTextLogin::SecureOnly;
        /// How long a connection may go without logging in, seconds.
        seconds_max: u32 = 60, in 1..=3600;
        /// Failed logins on one connection before it is closed.
        failures_per_connection_max: u32 = 5, in 1..=1000;
        /// Failed logins in a row for one user before its further attempts have to wait.
        failures_per_user_max: u32 = 10, in 1..=1_000_000;
        /// Failed logins in a row from one address (of IPv6: one /64 network) before its further attempts have to wait.
        failures_per_address_max: u32 = 20, in 1..=1_000_000;
        /// The first wait after too many failures, seconds; it doubles with every further failure.
        wait_seconds_min: u32 = 1, in 1..=3600;
        /// The longest wait, seconds. A user or an address is forgiven everything after twice this time without a failure.
        wait_seconds_max: u32 = 300, in 1..=86_400;
        /// Password hashes that are computed at the same time; each takes 19 MiB. Further logins queue. At start.
        hashes_at_once_max: u32 = 2, in 1..=1024;
        /// How long a password that was right is remembered, as a keyed hash in memory, so that a client that logs in every minute
        /// does not cost a password hash each time, seconds. 0: never.
        remembered_seconds: u32 = 600, in 0..=86_400;
    }

    /// IMAP.
    imap: ImapSection {
        /// Whether COMPRESS=DEFLATE (RFC 4978) is offered.
        compress: bool = true;
        /// How long a client that has logged in may be silent, seconds. RFC 9051 §5.4 asks for 30 minutes at least.
        idle_seconds_max: u32 = 1800, in 1..=86_400;
        /// How long IDLE may last without a sign of the client, seconds.
        idle_command_seconds_max: u32 = 1800, in 1..=86_400;
        /// Lines in a row that are no commands before the connection is closed.
        bad_commands_max: u32 = 20, in 1..=10_000;
        /// The same before login, in total.
        bad_commands_before_login_max: u32 = 5, in 1..=10_000;
        /// Messages in one APPEND (RFC 3502).
        append_messages_max: u32 = 1000, in 1..=10_000;
        /// Received octets that a session holds while they wait to be read as commands.
        input_bytes_max: u32 = 65_536, in 16_384..=16_777_216;
    }

    /// POP3.
    pop3: Pop3Section {
        /// How UIDL names messages: %u is the UID, %v the UIDVALIDITY; `x` or `X` before them for hexadecimal digits, a width such as 08 before
        /// that. The default is Dovecot's; Courier has `UID%u-%v`, `%v-%u` or `%u`, Cyrus `%v.%u` or `%u`.
        uidl_format: UidlFormat = UidlFormat::default();
        /// Whether QUIT marks as \Seen what was retrieved.
        mark_seen: bool = true;
        /// Whether what a client has retrieved stays in the mailbox. If not, QUIT deletes it without being asked to, which clients are told
        /// with EXPIRE 0 (RFC 2449 §6.7).
        keep_retrieved: bool = true;
        /// How long a user has to wait from one login to the next (LOGIN-DELAY, RFC 2449 §6.5), seconds. 0: not at all. After SIGHUP
        /// everybody may come at once.
        login_delay_seconds: u32 = 0, in 0..=86_400;
        /// How long a client that has logged in may be silent, seconds. RFC 1939 §3 asks for 10 minutes at least.
        idle_seconds_max: u32 = 600, in 1..=86_400;
    }

    /// Delivery by LMTP (docs/delivery.md).
    delivery: DeliverySection {
        /// The name of this host in the greeting and in `Received`. Empty: what the system calls it.
        hostname: String = String::new();
        /// The domains whose mail is for the users here. Empty: every domain.
        domains: Vec<String> = Vec::new();
        /// Addresses that belong to somebody else: `{ "sales@example.org" = "ann", postmaster = "ann+system", "@example.org" = "bob" }`. Without a
        /// domain: in all of them. `@DOMAIN` and `@` get what nobody else gets. What stands behind the equals sign is a user, with a detail if
        /// there is a separator in it, and no other alias.
        aliases: Aliases = Aliases::default();
        /// What separates a user from a mailbox in an address: mail for `ann+lists` goes into the mailbox `lists` of ann, when there is one, and
        /// to her INBOX otherwise. Empty: nothing does.
        detail_separator: String = "+".to_owned();
        /// What is answered for an account that may hold no more (section `quota`): "retry" is 452 4.2.2, and the mail waits at the transfer
        /// agent; "reject" is 552 5.2.2, and it goes back to its sender.
        over_quota: OverQuota = OverQuota::Retry;
        /// Whether the parameters of RFC 3461 are offered, so that the transfer agent says the id of a delivery (ENVID) where it has one, and one
        /// that it repeats because the answer was lost is recognised. Transfer agents leave reports of successful delivery (NOTIFY=SUCCESS)
        /// to a server that offers them, and this one sends none.
        offers_dsn: bool = false;
        /// The networks that may deliver over TCP.
        networks: Networks = Networks::loopback();
        /// Who may use the Unix socket: its access mode, in octal. At start.
        socket_mode: FileMode = FileMode(0o600);
        /// Recipients of one message; the client sends it once more for further ones. RFC 5321 §4.5.3.1.8 asks for 100 at least.
        recipients_max: u32 = 1000, in 1..=100_000;
        /// How long a client may be silent, seconds. RFC 5321 §4.5.3.2.7 asks for 5 minutes at least.
        idle_seconds_max: u32 = 300, in 1..=86_400;
    }

    /// How much an account may hold. What counts are the entries of its mailboxes with their sizes. `mailyard user quota` and, over IMAP, the
    /// administrators give an account limits of its own.
    quota: QuotaSection {
        /// Octets of all entries together, in units of 1024 (RFC 9208 §5.1), a beginning one counted whole. 0: no limit. At start.
        storage_bytes_max: u64 = 0, in 0..=9_007_199_254_740_992;
        /// Entries. 0: no limit. At start.
        messages_max: u64 = 0, in 0..=9_007_199_254_740_992;
        /// The users who may see and set the quotas of others with GETQUOTA and SETQUOTA (RFC 9208).
        administrators: Vec<String> = Vec::new();
    }

    /// Limits of the network side.
    limits: LimitsSection {
        /// Connections in all. One more is told so and closed.
        connections_max: u32 = 10_000, in 1..=1_000_000;
        /// Connections of one user that are logged in.
        connections_per_user_max: u32 = 100, in 1..=1_000_000;
        /// Connections from one address (of IPv6: one /64 network). Loopback addresses are exempt.
        connections_per_address_max: u32 = 100, in 1..=1_000_000;
        /// How long a client may leave an answer unread before the connection is closed, seconds.
        write_seconds_max: u32 = 300, in 1..=86_400;
        /// Octets of answers that a connection holds while they wait to be sent.
        output_bytes_max: u32 = 262_144, in 4096..=16_777_216;
    }

    /// How mail is kept. At start.
    store: StoreSection {
        /// The largest message, octets; what APPENDLIMIT (RFC 7889) shows. At start.
        message_bytes_max: u64 = 52_428_800, in 1024..=1_073_741_824;
        /// How long an expunged message can be brought back with `mailyard restore`, days. At start.
        expunged_kept_days: u32 = 14, in 0..=3650;
        /// The zstd level that message bodies are compressed with; 0 keeps them as they are. At start.
        compression_level: u32 = 3, in 0..=19;
        /// An account that nobody has used for so long is closed, seconds. At start.
        account_idle_seconds: u64 = 300, in 1..=86_400;
    }

    /// Accounts that are made.
    format: FormatSection {
        /// Where the messages of an account live that `mailyard user add` makes without `--format`: in Mailyard's own store, in mbox
        /// files, in Maildirs, or in the database of `[sql]`. Accounts that are there stay as they are. At start.
        default: MailFormat = MailFormat::Native;
    }

    /// Accounts whose mail is in mbox files that other programs use as well (`docs/mbox.md`). At start.
    mbox: MboxSection {
        /// The file that is the INBOX of a new account, unless `mailyard user add` is told another; `%u` is the user's name. At start.
        inbox: UserPath = UserPath("/var/mail/%u".to_owned());
        /// The directory with the other mailboxes of a new account, unless `mailyard user add` is told another. At start.
        root: UserPath = UserPath("/home/%u/mail".to_owned());
        /// How a file is locked while it is read, in this order. At start.
        read_locks: Locks = Locks(vec![Method::Fcntl]);
        /// How a file is locked while it is written, in this order. It must be what the local delivery agent does: programs that lock in
        /// different ways do not see each other. The default is Debian's (policy §11.6). At start.
        write_locks: WriteLocks = WriteLocks(vec![Method::Fcntl, Method::Dotlock]);
        /// How long a command waits for a file that another program has locked, seconds; then the client is answered NO INUSE. What needs
        /// no file (STORE, EXPUNGE, APPEND) waits for none. At start.
        lock_seconds_max: u32 = 2, in 0..=600;
        /// When a dotlock of a program that nothing is known of counts as left behind: so long after it and the mbox were last changed,
        /// seconds. One whose process is known to live on this machine never does. At start.
        dotlock_stale_seconds: u32 = 120, in 10..=86_400;
        /// When UIDs, flags and keywords are written into the files, for other programs to see: when a client says CHECK, closes the
        /// mailbox, logs out, or when nothing has changed for `idle_seconds`. "never": only Mailyard knows them. They are durable before
        /// the client reads OK in any case; new and expunged messages are always written. At start.
        write_back: WriteBackAt = WriteBackAt::ALL;
        /// How long a mailbox has to rest before "idle" in `write_back`, seconds. At start.
        idle_seconds: u32 = 30, in 1..=86_400;
        /// Blanks that are left behind the fields of a message when they are written for the first time, octets: later flags and
        /// keywords then find room in place, and no byte of another message has to move. At start.
        padding_bytes: u32 = 32, in 0..=1000;
        /// Threads that read one file when it is opened for the first time. At start.
        scan_jobs: u32 = 1, in 1..=64;
    }

    /// Accounts whose mail is in a database that speaks the MySQL protocol, and that several servers share (`docs/sql.md`). At start.
    sql: SqlSection {
        /// The database, as `mysql://USER:PASSWORD@HOST:3306/DATABASE`, or `mysql://USER@localhost/DATABASE?socket=/run/mysqld/mysqld.sock`.
        /// Several: servers with the same data, of which the first is used that answers. Empty: there are no such accounts. At start.
        urls: Vec<String> = Vec::new();
        /// Connections that are open at once. At start.
        connections_max: u32 = 16, in 1..=10_000;
        /// How long an answer of the database may take, seconds. At start.
        timeout_seconds: u32 = 10, in 1..=600;
        /// How long something that the database refused is tried again before the client is answered NO UNAVAILABLE, seconds. At start.
        retry_seconds: u32 = 5, in 0..=600;
        /// How often this server looks what others did to the accounts that are open here, milliseconds. At start.
        poll_ms: u32 = 100, in 1..=60_000;
        /// How long a server that says nothing any more keeps the right to write to an account, seconds. At start.
        lease_seconds: u32 = 5, in 1..=600;
        /// More databases that have accounts ("cells"), as `NAME=mysql://…`; several of one name are servers with the same data. The
        /// database of `urls` is the cell "main", and has the directory that says which account is where. At start.
        cells: Vec<String> = Vec::new();
        /// The cell that new accounts are put into. Empty: "main". At start.
        new_accounts_cell: String = String::new();
        /// A PEM file with the certificate of the authority that signed those of the database's servers, or with a server's own when it
        /// has signed itself. Empty: connections are not encrypted. Sockets never are. At start.
        tls_ca_file: PathBuf = PathBuf::new();
        /// A PEM file with our certificate and its chain, for a database that asks for one. At start.
        tls_certificate_file: PathBuf = PathBuf::new();
        /// A PEM file with the key of that certificate. At start.
        tls_key_file: PathBuf = PathBuf::new();
    }

    /// Accounts whose mail is in Maildirs that other programs use as well (`docs/maildir.md`). At start.
    maildir: MaildirSection {
        /// The Maildir that is the INBOX of a new account, unless `mailyard user add` is told another; the other mailboxes are below it.
        /// `%u` is the user's name. At start.
        root: UserPath = UserPath("/home/%u/Maildir".to_owned());
        /// How the mailboxes of a new account are named below it: `a/b` is `.a.b` ("maildir++") or `a/b` ("fs"). At start.
        layout: Layout = Layout::MaildirPlusPlus;
        /// Whether `dovecot-uidlist` is kept up, so that Dovecot gives its clients the same UIDs: where Dovecot has made one ("auto"), in every
        /// mailbox ("always"), or not at all ("never"). At start.
        uid_lists: UidLists = UidLists::Auto;
        /// How long a mailbox has to rest before what is expunged is forgotten and its index is saved, seconds. At start.
        idle_seconds: u32 = 30, in 1..=86_400;
    }

    /// `mailyard backup`.
    backup: BackupSection {
        /// To whom backups are encrypted unless `--recipient` says it: public keys of age, `age1...`. Each of them opens all of a backup. Empty: backups
        /// are not encrypted.
        recipients: Vec<String> = Vec::new();
    }

    /// The log, on standard error.
    log: LogSection {
        /// Which lines are written: error, warn, info, debug or trace, or a filter such as `info,mailyard::net=debug`.
        /// The environment variable MAILYARD_LOG wins. At start.
        level: String = "info".to_owned();
        /// For people, or one JSON object a line. At start.
        format: LogFormat = LogFormat::Text;
    }
}

impl Config {
    /// Takes relative paths from `directory`.
    pub(super) fn resolve_paths(&mut self, directory: &Path) {
        for path in [
            &mut self.server.data,
            &mut self.tls.certificate_file,
            &mut self.tls.key_file,
            &mut self.listen.lmtp_socket,
            &mut self.sql.tls_ca_file,
            &mut self.sql.tls_certificate_file,
            &mut self.sql.tls_key_file,
        ] {
            if !path.as_os_str().is_empty() && path.is_relative() {
                *path = directory.join(&path);
            }
        }
    }
}
