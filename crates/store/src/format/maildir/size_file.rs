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

use std::fmt::Write as _;

/// A file of so many octets is made anew by whoever sees it.
pub(crate) const FILE_BYTES_MAX: u64 = 5120;

/// Octets of a line, its LF included, to which lines are padded: some file systems append badly.
const LINE_BYTES: usize = 14;

/// A limit of an account; `None`: there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    /// Octets of all messages.
    pub(crate) bytes: Option<u64>,
    /// Messages.
    pub(crate) messages: Option<u64>,
    /// Limits of other kinds, as they stand there.
    pub(crate) others: Vec<String>,
}

/// What is used, or what a change adds to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Octets.
    pub(crate) bytes: i64,
    /// Messages.
    pub(crate) messages: i64,
}

impl Quota {
    /// Reads the first line; what is no limit is kept.
    fn parse(line: &str) -> Quota {
        let mut quota = Quota::default();
        for part in line.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let limit = part.get(..part.len() - 1).and_then(|digits| super::name::number::<u64>(digits.as_bytes()));
            match (limit, part.as_bytes().last()) {
                (Some(limit), Some(b'S')) => quota.bytes = Some(limit).filter(|limit| *limit > 0),
                (Some(limit), Some(b'C')) => quota.messages = Some(limit).filter(|limit| *limit > 0),
                _ => quota.others.push(part.to_owned()),
            }
        }
        quota
    }

    /// The first line, without its end.
    fn write(&self) -> String {
        let size = self.bytes.map(|bytes| format!("{bytes}S"));
        let count = self.messages.map(|messages| format!("{messages}C"));
        let parts: Vec<String> = size.into_iter().chain(count).chain(self.others.iter().cloned()).collect();
        parts.join(",")
    }

    /// Whether `usage` is more than is allowed.
    pub(crate) fn is_exceeded_by(&self, usage: Usage) -> bool {
        let is_over = |used: i64, limit: Option<u64>| {
            limit.is_some_and(|limit| u64::try_from(used).is_ok_and(|used| used > limit))
        };
        is_over(usage.bytes, self.bytes) || is_over(usage.messages, self.messages)
    }
}

impl Usage {
    /// The sum; at the ends of the range it stays there.
    #[must_use]
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage { bytes: self.bytes.saturating_add(other.bytes), messages: self.messages.saturating_add(other.messages) }
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

/// Reads a file: the quota and what is used. `None`: it is not to be believed (too long, a line that says nothing, less than nothing used), and has to be made
/// anew from the messages.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Quota, Usage)> {
    if bytes.len() as u64 >= FILE_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
    let mut lines = text.split('\n');
    let quota = Quota::parse(lines.next()?);
    let mut used = Usage::default();
    for line in lines {
        used = used.plus(Usage::parse(line)?);
    }
    (used.bytes >= 0 && used.messages >= 0).then_some((quota, used))
}

/// A file made anew.
pub(crate) fn write(quota: &Quota, used: Usage) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{}", quota.write());
    out + &used.line()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn known_answers() {
        let (quota, used) = parse(b"10000000S,1000C\n        4000   2\n-1000 -1\n").unwrap();
        assert_eq!((quota.bytes, quota.messages), (Some(10_000_000), Some(1000)));
        assert_eq!(used, Usage { bytes: 3000, messages: 1 });
        assert!(!quota.is_exceeded_by(Usage { bytes: 10_000_000, messages: 1000 }));
        assert!(quota.is_exceeded_by(Usage { bytes: 1, messages: 1001 }));
        assert!(quota.is_exceeded_by(Usage { bytes: 10_000_001, messages: 0 }));
        assert_eq!(write(&quota, used), "10000000S,1000C\n3000 1       \n");
        assert_eq!(used.line().len(), LINE_BYTES);
        assert_eq!(parse(b"\n").unwrap(), (Quota::default(), Usage::default()));
        assert!(!Quota::default().is_exceeded_by(Usage { bytes: i64::MAX, messages: i64::MAX }));
        let (quota, _) = parse(b"0S,x,5Q,7C\n1 1\n").unwrap();
        assert_eq!((quota.bytes, quota.messages, quota.others.join(" ")), (None, Some(7), "x 5Q".to_owned()));
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
            let quota = Quota { bytes: size, messages: count, others: Vec::new() };
            let used = Usage { bytes, messages };
            proptest::prop_assert_eq!(parse(write(&quota, used).as_bytes()), Some((quota, used)));
        }

        #[test]
        fn any_octets_are_read(text in "([0-9SC,x -]{0,6}\n){0,6}|[\u{0}-\u{ff}]{0,20}") {
            if let Some((quota, used)) = parse(text.as_bytes()) {
                let again = write(&quota, used);
                proptest::prop_assert_eq!(parse(again.as_bytes()), Some((quota, used)));
            }
        }
    }
}
