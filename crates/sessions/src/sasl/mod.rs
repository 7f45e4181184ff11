//! SASL mechanisms (RFC 4422) as state machines, for every protocol here: octets in, octets out, no base64 and no lines.
//!
//! Invariants: secrets are compared in constant time; a wrong user and a wrong password look the same; what a client sends is
//! bounded by the line that it comes in.

mod login;
mod plain;
mod prepare;
mod scram;

use model::AccountName;

use crate::{Authenticator, Connection, Refusal};

pub use prepare::prepare;

/// What a mechanism may ask of the world.
pub struct Exchange<'a> {
    /// The users.
    pub authenticator: &'a dyn Authenticator,
    /// The connection, for its channel binding and for the log.
    pub connection: &'a Connection,
    /// Fills a buffer with random octets that are fit for nonces.
    pub random: &'a mut dyn FnMut(&mut [u8]),
}

/// How an exchange goes on.
#[derive(Debug)]
pub enum Step {
    /// Send this to the client and wait for its response.
    Challenge(Vec<u8>),
    /// The end: who logged in, or why not.
    Done(Result<AccountName, Refusal>),
    /// The client does not follow the mechanism; what is wrong.
    Malformed(&'static str),
}

/// A mechanism under way.
pub trait Mechanism: Send {
    /// Goes on with the client's response; `None` at the start when the client sent no initial response (RFC 4422 §3.3).
    fn step(&mut self, response: Option<&[u8]>, exchange: &mut Exchange<'_>) -> Step;
}

/// A mechanism by its name in upper case, with the name as it stands in logs; `None` for others.
pub fn mechanism(name: &str) -> Option<(&'static str, Box<dyn Mechanism>)> {
    Some(match name {
        "PLAIN" => ("PLAIN", Box::new(plain::Plain)),
        "LOGIN" => ("LOGIN", Box::<login::Login>::default()),
        "SCRAM-SHA-256" => ("SCRAM-SHA-256", Box::new(scram::Scram::new(false))),
        "SCRAM-SHA-256-PLUS" => ("SCRAM-SHA-256-PLUS", Box::new(scram::Scram::new(true))),
        _ => return None,
    })
}

/// Whether a mechanism sends the password itself, so that the connection must be protected.
pub fn sends_password(name: &str) -> bool {
    matches!(name, "PLAIN" | "LOGIN")
}

/// Asks for a password; `user` and `password` as the client sent them.
pub fn verify_password(exchange: &Exchange<'_>, user: &[u8], password: &[u8]) -> Result<AccountName, Refusal> {
    // A name that cannot be one is given to the authenticator too, so that it costs the same time.
    let text = |octets: &[u8]| std::str::from_utf8(octets).ok().and_then(prepare);
    match (text(user), text(password)) {
        (Some(user), Some(password)) => exchange.authenticator.verify_password(exchange.connection, &user, &password),
        (user, _) => exchange.authenticator.verify_password(exchange.connection, &user.unwrap_or_default(), ""),
    }
}
