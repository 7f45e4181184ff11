//! LOGIN (RFC 9051 §6.2.3), and what every successful or failed login has in common.

use model::AccountName;

use crate::imap::capability;
use crate::imap::reply::{Done, Progress, Reply, Running, Started, Stop};
use crate::imap::state::{Login, Session};
use crate::imap::status;
use crate::sasl::{self, Exchange};
use crate::{Output, Refusal, open_account};

pub(crate) fn run(session: &mut Session, user: &[u8], password: &[u8]) -> Started {
    before_login(session)?;
    if !capability::plain_text_allowed(session) {
        // RFC 9051 §6.2.3, RFC 5530 PRIVACYREQUIRED.
        return Err(Done::no("A password must not cross this connection; use TLS").with_code("PRIVACYREQUIRED").into());
    }
    let outcome = with_exchange(session, |exchange| sasl::verify_password(exchange, user, password));
    conclude(session, outcome, "LOGIN")
}

/// LOGIN and AUTHENTICATE are for those who are not logged in (RFC 9051 §6.2).
pub(crate) fn before_login(session: &Session) -> Result<(), Stop> {
    match session.login {
        Some(_) => Err(Done::bad("Somebody is logged in already").into()),
        None => Ok(()),
    }
}

/// Gives a mechanism what it may ask of the world.
pub(crate) fn with_exchange<T>(session: &Session, act: impl FnOnce(&mut Exchange<'_>) -> T) -> T {
    let random = &session.context.store.env().random;
    act(&mut Exchange {
        authenticator: session.context.authenticator.as_ref(),
        connection: &session.connection,
        random: &mut |buffer| random.fill(buffer),
    })
}

/// Opens the account, or keeps the refusal back for as long as it asks for.
pub(crate) fn conclude(
    session: &mut Session,
    outcome: Result<AccountName, Refusal>,
    mechanism: &'static str,
) -> Started {
    let name = match outcome {
        Ok(name) => name,
        Err(Refusal { error, wait }) => {
            session.failed_logins = session.failed_logins.saturating_add(1);
            session.context.observer.error(&session.connection, mechanism, &error);
            let done = status::answer(&error);
            return Ok(Reply::Running(Box::new(HeldBack { until: session.now.monotonic.saturating_add(wait), done })));
        }
    };
    let account = open_account(&session.context.store, &name)?;
    session.context.observer.login(&session.connection, &name, mechanism);
    session.login = Some(Login { name, account });
    // RFC 9051 §7.1 CAPABILITY: saves the client a round trip.
    let code = format!("CAPABILITY {}", capability::list(session));
    Ok(Done::ok("Logged in").with_code(code).into())
}

/// An answer that is not given yet: throttling.
struct HeldBack {
    until: std::time::Duration,
    done: Done,
}

impl Running for HeldBack {
    fn pull(&mut self, session: &mut Session, _out: &mut Output) -> Result<Progress, Stop> {
        if session.now.monotonic < self.until {
            return Ok(Progress::WaitUntil(self.until));
        }
        Ok(Progress::Done(self.done.clone()))
    }
}
