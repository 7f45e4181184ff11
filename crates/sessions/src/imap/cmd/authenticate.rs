//! AUTHENTICATE (RFC 9051 §6.2.2, RFC 4959): the SASL mechanisms of [`crate::sasl`], in base64 and lines.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use imap_proto::command::Secret;

use crate::Output;
use crate::imap::capability;
use crate::imap::cmd::login;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::Session;
use crate::sasl::{self, Mechanism};

pub(crate) fn run(session: &mut Session, mechanism: &str, initial_response: Option<&Secret>) -> Started {
    login::before_login(session)?;
    let Some((name, machine)) = sasl::mechanism(mechanism) else {
        return Err(Done::no("That mechanism is not there").with_code("CANNOT").into());
    };
    if sasl::sends_password(name) && !capability::plain_text_allowed(session) {
        return Err(Done::no("A password must not cross this connection; use TLS").with_code("PRIVACYREQUIRED").into());
    }
    if name == "SCRAM-SHA-256-PLUS" && !capability::binding_available(session) {
        return Err(Done::no("There is no channel to bind to").with_code("CANNOT").into());
    }
    let response = match initial_response {
        None => Response::Missing,
        // RFC 4959 §3: `=` is an empty initial response.
        Some(Secret(sent)) if sent == b"=" => Response::Octets(Vec::new()),
        Some(Secret(sent)) => Response::Octets(decode(sent)?),
    };
    Ok(Reply::Running(Box::new(Exchange { name, machine, response, end: None })))
}

/// An exchange under way.
struct Exchange {
    name: &'static str,
    machine: Box<dyn Mechanism>,
    response: Response,
    /// The login was refused and the answer is kept back.
    end: Option<Box<dyn Running>>,
}

enum Response {
    /// The client sent no initial response.
    Missing,
    /// What the client said last.
    Octets(Vec<u8>),
    /// A challenge is out.
    Awaited,
}

fn decode(sent: &[u8]) -> Result<Vec<u8>, Stop> {
    STANDARD.decode(sent).map_err(|_| Done::bad("That is not base64").into())
}

impl Running for Exchange {
    fn pull(&mut self, session: &mut Session, out: &mut Output) -> Result<Progress, Stop> {
        if let Some(end) = &mut self.end {
            return end.pull(session, out);
        }
        let response = match std::mem::replace(&mut self.response, Response::Awaited) {
            Response::Awaited => return Ok(Progress::WaitForLine),
            Response::Missing => None,
            Response::Octets(octets) => Some(octets),
        };
        let machine = &mut self.machine;
        match login::with_exchange(session, |exchange| machine.step(response.as_deref(), exchange)) {
            sasl::Step::Challenge(octets) => {
                out.push_fmt(format_args!("+ {}\r\n", STANDARD.encode(octets)));
                Ok(Progress::WaitForLine)
            }
            sasl::Step::Malformed(why) => Err(Done::bad(why).into()),
            sasl::Step::Done(outcome) => match login::conclude(session, outcome, self.name)? {
                Reply::Running(mut held_back) => {
                    let progress = held_back.pull(session, out)?;
                    self.end = Some(held_back);
                    Ok(progress)
                }
                Reply::Done(done) | Reply::Then(done, _) | Reply::Logout(done) => Ok(Progress::Done(done)),
            },
        }
    }

    fn line(&mut self, _session: &mut Session, line: &[u8]) -> Result<(), Stop> {
        // RFC 9051 §6.2.2: the client gives up.
        if line == b"*" {
            return Err(Done::bad("Given up").into());
        }
        self.response = Response::Octets(decode(line)?);
        Ok(())
    }
}
