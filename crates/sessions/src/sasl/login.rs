//! LOGIN: never a standard (draft-murchison-sasl-login), asked for by old clients.

use super::{Exchange, Mechanism, Step, verify_password};

/// Asks for the user, then for the password.
#[derive(Default)]
pub(super) struct Login {
    user: Option<Vec<u8>>,
}

impl Mechanism for Login {
    fn step(&mut self, response: Option<&[u8]>, exchange: &mut Exchange<'_>) -> Step {
        match (&self.user, response) {
            (_, None) => Step::Challenge(b"User Name\0".to_vec()),
            (None, Some(user)) => {
                self.user = Some(user.to_vec());
                Step::Challenge(b"Password\0".to_vec())
            }
            (Some(user), Some(password)) => Step::Done(verify_password(exchange, user, password)),
        }
    }
}
