//! Changes that are made anew, since another node of the cluster became the writer of the account before they were durable.
//!
//! Such a change has done nothing ([`ErrorKind::TakenOver`]); made anew it waits for the right to write, and decides everything anew on
//! what the account is then: UIDs, conditions, what is there. The client sees a pause.

use model::{ErrorKind, Result};

/// How often a change is made until its caller hears that others are in its way. Each time may wait for as long as a dead node keeps its
/// right to write.
pub(crate) const TRIES_MAX: u32 = 8;

/// Whether a change that came to this is to be made anew, after so many tries.
pub(crate) fn is_due<T>(result: &Result<T>, tries: u32) -> bool {
    tries < TRIES_MAX && result.as_ref().is_err_and(|error| error.kind() == ErrorKind::TakenOver)
}

/// Makes a change, and waits for it, as often as it needs.
pub(crate) fn until_done<T>(mut change: impl FnMut() -> Result<T>) -> Result<T> {
    let mut tries = 0;
    loop {
        let result = change();
        tries += 1;
        if !is_due(&result, tries) {
            return result;
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Error;

    use super::*;

    #[test]
    fn only_what_has_changed_nothing_is_done_again() {
        for (kind, expected) in [(ErrorKind::TakenOver, TRIES_MAX), (ErrorKind::Io, 1)] {
            let mut tries = 0;
            let result: Result<()> = until_done(|| {
                tries += 1;
                Err(Error::new(kind, "no"))
            });
            assert_eq!((result.map_err(|error| error.kind()), tries), (Err(kind), expected));
        }
        let mut tries = 0;
        let second = until_done(|| {
            tries += 1;
            if tries == 2 { Ok(tries) } else { Err(Error::new(ErrorKind::TakenOver, "once")) }
        });
        assert_eq!(second.ok(), Some(2));
    }
}
