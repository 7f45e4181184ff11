//! What an administrator can choose, and the limits of a session by name (ARCHITECTURE.md, invariant 6).

use std::time::Duration;

use model::AccountName;

/// When a password may be sent in the clear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainTextLogin {
    /// Over TLS, or within this machine (RFC 9051 §11.1).
    #[default]
    SecureOnly,
    /// Always.
    Always,
}

/// The settings of IMAP sessions.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The text of the greeting.
    pub greeting: String,
    /// When a password may be sent in the clear.
    pub plain_text_login: PlainTextLogin,
    /// What ID answers (RFC 2971), field by field; empty: NIL.
    pub id_fields: Vec<(String, String)>,
    /// Who may see and set the quotas of others (RFC 9208 §4.1.3).
    pub administrators: Vec<AccountName>,
    /// Whether COMPRESS=DEFLATE (RFC 4978) is offered.
    pub compress: bool,
    /// The limits.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            greeting: "Mailyard ready".to_owned(),
            plain_text_login: PlainTextLogin::default(),
            id_fields: vec![
                ("name".to_owned(), "Mailyard".to_owned()),
                ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ],
            administrators: Vec::new(),
            compress: true,
            limits: Limits::default(),
        }
    }
}

/// The limits of a session that an administrator may set. Those of the grammar are in [`imap_proto::limits`], those of the store in
/// [`model::limits`] and in the store's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may go without logging in, from its start; then BYE.
    pub login_time_max: Duration,
    /// How long an authenticated connection may be silent; then BYE. RFC 9051 §5.4 asks for at least 30 minutes.
    pub idle_time_max: Duration,
    /// How long IDLE may last without a sign of the client (RFC 9051 §6.3.13 lets a client renew it every 29 minutes).
    pub idle_command_time_max: Duration,
    /// Commands that are no commands (BAD from the parser) in a row, then BYE.
    pub bad_commands_max: u32,
    /// The same before login, in total: whoever talks HTTP here is gone quickly.
    pub bad_commands_before_login_max: u32,
    /// Failed logins on one connection; then BYE.
    pub failed_logins_max: u32,
    /// Messages in one APPEND (RFC 3502).
    pub append_messages_max: u32,
    /// Octets received that wait to be read as commands; what is over it stays with the driver.
    pub input_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            login_time_max: Duration::from_secs(60),
            idle_time_max: Duration::from_secs(30 * 60),
            idle_command_time_max: Duration::from_secs(30 * 60),
            bad_commands_max: 20,
            bad_commands_before_login_max: 5,
            failed_logins_max: 5,
            append_messages_max: 1000,
            input_bytes_max: 64 * 1024,
        }
    }
}
