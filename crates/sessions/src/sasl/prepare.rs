//! User names and passwords in the one form in which they are compared (RFC 4013 SASLprep, as RFC 4616 §2 and RFC 5802 §5.1 ask).

/// Prepares a user name or a password; whoever stores passwords prepares them the same way. `None` when it has characters that may
/// not be in one, or is empty.
pub fn prepare(text: &str) -> Option<String> {
    let prepared = stringprep::saslprep(text).ok()?;
    (!prepared.is_empty()).then(|| prepared.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_4013() {
        assert_eq!(prepare("I\u{ad}X").as_deref(), Some("IX"));
        assert_eq!(prepare("user").as_deref(), Some("user"));
        assert_eq!(prepare("USER").as_deref(), Some("USER"));
        assert_eq!(prepare("\u{aa}").as_deref(), Some("a"));
        assert_eq!(prepare("\u{2168}").as_deref(), Some("IX"));
        assert_eq!(prepare("\u{7}"), None);
        assert_eq!(prepare("\u{627}1"), None);
        assert_eq!(prepare(""), None);
    }
}
