//! Single items of untagged responses that suites look at.

/// RFC 9051 §7.3.4 (STATUS response).
pub fn status_messages(line: &str) -> Option<u64> {
    let items = line.strip_prefix("* STATUS ")?.rsplit_once('(')?.1.trim_end_matches([')', ' ']);
    let mut words = items.split(' ').skip_while(|word| !word.eq_ignore_ascii_case("MESSAGES"));
    words.nth(1)?.parse().ok()
}

/// RFC 9051 §7.5.2 (FETCH response), RFC822.SIZE.
pub fn fetched_size(line: &str) -> Option<u64> {
    let (_, items) = line.strip_prefix("* ")?.split_once(" FETCH (")?;
    let (_, rest) = items.split_once("RFC822.SIZE ")?;
    rest.split([' ', ')']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{fetched_size, status_messages};

    #[test]
    fn items() {
        assert_eq!(status_messages("* STATUS bench-1 (MESSAGES 27)"), Some(27));
        assert_eq!(status_messages("* STATUS \"(a\" (UIDNEXT 3 MESSAGES 2 )"), Some(2));
        assert_eq!(status_messages("* STATUS bench-1 (UIDNEXT 3)"), None);
        assert_eq!(fetched_size("* 3 FETCH (RFC822.SIZE 44)"), Some(44));
        assert_eq!(fetched_size("* 3 FETCH (FLAGS (\\Seen) RFC822.SIZE 7 UID 9)"), Some(7));
        assert_eq!(fetched_size("* 3 FETCH (FLAGS ())"), None);
        assert_eq!(fetched_size("B OK done"), None);
    }
}
