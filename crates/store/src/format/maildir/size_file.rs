//! `maildirsize`: the quota of a Maildir++ account, and what counts against it.
//!
//! ```text
//! 10000000S,1000C
//!       4000        2
//!      -1000       -1
//! ```
//!
//! The first line is the quota: numbers with a letter each, S(ize) octets and C(ount) messages; none, 0 or an empty line is no limit. The sum of the others is
//! what is used. Programs append a line for each change, and the file is made anew when it has become long or old (Maildir++ page of Courier): a file of
//! [`FILE_BYTES_MAX`] octets or more is not believed.

/// A file of so many octets is made anew by whoever sees it.
pub(crate) const FILE_BYTES_MAX: u64 = 5120;

/// Octets of a line, its LF included, to which lines are padded: some file systems append badly.
const LINE_BYTES: usize = 14;

/// What is used, or what a change adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Octets.
    pub(crate) bytes: i64,
    /// Messages.
    pub(crate) messages: i64,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SizeFile<'a> {
    /// The first line.
    pub(crate) quota: &'a str,
    pub(crate) used: Usage,
    /// Whether something was added since it was made.
    pub(crate) has_grown: bool,
}

/// The first line for limits of octets and of messages.
pub(crate) fn quota_line(bytes: Option<u64>, messages: Option<u64>) -> String {
    let parts = [bytes.map(|bytes| format!("{bytes}S")), messages.map(|messages| format!("{messages}C"))];
    parts.into_iter().flatten().collect::<Vec<_>>().join(",")
}

impl Usage {
    /// The sum; at the ends of the range it stays there.
    #[must_use]
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage { bytes: self.bytes.saturating_add(other.bytes), messages: self.messages.saturating_add(other.messages) }
    }

    /// What takes it back.
    #[must_use]
    pub(crate) fn negated(self) -> Usage {
        Usage { bytes: self.bytes.saturating_neg(), messages: self.messages.saturating_neg() }
    }

    /// The line for a change, with its end.
    pub(crate) fn line(self) -> String {
        let mut line = format!("{} {}", self.bytes, self.messages);
        while line.len() < LINE_BYTES - 1 {
            line.push(' ');
        }
        line.push('\n');
        line
    }

    fn parse(line: &str) -> Option<Usage> {
        let mut words = line.split_ascii_whitespace();
        let usage = Usage { bytes: words.next()?.parse().ok()?, messages: words.next()?.parse().ok()? };
        words.next().is_none().then_some(usage)
    }
}

/// Reads a file. `None`: it is not to be believed (too long, a line that says nothing, less than nothing used), and has to be made anew from
/// the messages.
pub(crate) fn parse(bytes: &[u8]) -> Option<SizeFile<'_>> {
    if bytes.len() as u64 >= FILE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let mut lines = text.split('\n');
    let quota = lines.next()?;
    let (mut used, mut count) = (Usage::default(), 0);
    for line in lines {
        used = used.plus(Usage::parse(line)?);
        count += 1;
    }
    (used.bytes >= 0 && used.messages >= 0).then_some(SizeFile { quota, used, has_grown: count > 1 })
}

/// A file made anew.
pub(crate) fn write(quota: &str, used: Usage) -> String {
    format!("{quota}\n{}", used.line())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_answers() {
        let file = parse(b"10000000S,1000C\n        4000   2\n-1000 -1\n").unwrap();
        assert_eq!((file.quota, file.has_grown), ("10000000S,1000C", true));
        assert_eq!(file.used, Usage { bytes: 3000, messages: 1 });
        assert_eq!(write(file.quota, file.used), "10000000S,1000C\n3000 1       \n");
        assert_eq!(file.used.line().len(), LINE_BYTES);
        assert_eq!(parse(b"\n").unwrap(), SizeFile { quota: "", used: Usage::default(), has_grown: false });
        assert!(!parse(b"1S\n1 1\n").unwrap().has_grown);
        assert_eq!(quota_line(Some(5), Some(7)), "5S,7C");
        assert_eq!((quota_line(None, Some(7)), quota_line(None, None)), ("7C".to_owned(), String::new()));
    }

    #[test]
    fn files_that_are_not_believed() {
        for bad in ["", "1S", "1S\n1 1", "1S\n1\n", "1S\n1 x\n", "1S\n1 1 1\n", "1S\n-1 0\n", "1S\n\n"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
        let line = Usage { bytes: 1, messages: 1 }.line();
        let long = format!("1S\n{}", line.repeat(FILE_BYTES_MAX as usize / LINE_BYTES + 1));
        assert_eq!(parse(long.as_bytes()), None);
        assert_eq!(parse(b"\xff\n"), None);
        assert!(parse("\u{e9}\n1 1\n".as_bytes()).is_some());
    }

    proptest::proptest! {
        #[test]
        fn files_come_back(size in proptest::option::of(1u64..), count in proptest::option::of(1u64..), bytes in 0i64.., messages in 0i64..) {
            let (quota, used) = (quota_line(size, count), Usage { bytes, messages });
            let written = write(&quota, used);
            proptest::prop_assert_eq!(parse(written.as_bytes()), Some(SizeFile { quota: &quota, used, has_grown: false }));
        }

        #[test]
        fn any_octets_are_read(text in "([0-9SC,x -]{0,6}\n){0,6}|[\u{0}-\u{ff}]{0,20}") {
            if let Some(file) = parse(text.as_bytes()) {
                let again = write(file.quota, file.used);
                proptest::prop_assert_eq!(parse(again.as_bytes()).map(|file| file.used), Some(file.used));
            }
        }
    }
}
