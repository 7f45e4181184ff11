//! PLAIN (RFC 4616).

use super::{Exchange, Mechanism, Step, verify_password};
use crate::Refusal;

/// The mechanism has one message and no state.
pub(super) struct Plain;

impl Mechanism for Plain {
    /// `message = [authzid] UTF8NUL authcid UTF8NUL passwd` (RFC 4616 §2)
    fn step(&mut self, response: Option<&[u8]>, exchange: &mut Exchange<'_>) -> Step {
        let Some(response) = response else { return Step::Challenge(Vec::new()) };
        let mut fields = response.split(|octet| *octet == 0);
        let (Some(authzid), Some(authcid), Some(password), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Step::Malformed("PLAIN has three fields");
        };
        // Nobody acts for another here; RFC 4616 §2 lets a client name itself twice.
        if !authzid.is_empty() && authzid != authcid {
            return Step::Done(Err(Refusal::wrong_credentials(std::time::Duration::ZERO)));
        }
        Step::Done(verify_password(exchange, authcid, password))
    }
}
