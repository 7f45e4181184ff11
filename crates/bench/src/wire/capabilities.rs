//! What a server says that it can do (RFC 9051 §6.1.1, §7.2.2): a feature that it does not name is not used with it.

/// A server's capabilities, as told after the login.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(Vec<String>);

impl Capabilities {
    /// From the untagged lines of an answer: those that begin with `* CAPABILITY `.
    pub fn of(lines: &[String]) -> Capabilities {
        let listed = lines.iter().filter_map(|line| {
            let (head, names) = (line.get(..CAPABILITY.len())?, line.get(CAPABILITY.len()..)?);
            head.eq_ignore_ascii_case(CAPABILITY).then_some(names)
        });
        Capabilities(listed.flat_map(str::split_ascii_whitespace).map(str::to_ascii_uppercase).collect())
    }

    /// Whether the server names it; upper and lower case are the same.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Whether one APPEND may bring several messages (RFC 3502).
    pub fn multiappend(&self) -> bool {
        self.has("MULTIAPPEND")
    }

    /// How messages may be sent.
    pub fn literals(&self) -> Literals {
        // RFC 9051 appendix E: what RFC 7888 calls LITERAL- is part of IMAP4rev2.
        match () {
            () if self.has("LITERAL+") => Literals::Pushed { bytes_max: usize::MAX },
            () if self.has("LITERAL-") || self.has("IMAP4rev2") => Literals::Pushed { bytes_max: LITERAL_MINUS_BYTES },
            () => Literals::Waited,
        }
    }
}

const CAPABILITY: &str = "* CAPABILITY ";

/// The largest literal that LITERAL- lets one push (RFC 7888 §5).
const LITERAL_MINUS_BYTES: usize = 4096;

/// How a literal is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literals {
    /// The client waits for the server's permission before each (RFC 9051 §4.3, synchronizing).
    Waited,
    /// Up to this size it does not wait (RFC 7888, non-synchronizing).
    Pushed {
        /// The largest that is not waited for.
        bytes_max: usize,
    },
}

impl Literals {
    /// Whether a literal of this size is sent without waiting.
    pub fn pushed(self, bytes: usize) -> bool {
        matches!(self, Literals::Pushed { bytes_max } if bytes <= bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, Literals};

    fn told(line: &str) -> Capabilities {
        Capabilities::of(&["* OK hello".into(), line.into()])
    }

    #[test]
    fn features() {
        let one = told("* CAPABILITY IMAP4rev1 Literal+ MULTIAPPEND AUTH=PLAIN");
        assert!(one.has("imap4REV1") && one.multiappend() && !one.has("AUTH"));
        assert!(one.literals().pushed(1 << 30));
        assert_eq!(told("* capability IMAP4rev1").literals(), Literals::Waited);
        assert!(!told("* CAPABILITY IMAP4rev1").multiappend());
        for minus in ["* CAPABILITY IMAP4rev1 LITERAL-", "* CAPABILITY IMAP4rev2"] {
            let literals = told(minus).literals();
            assert!(literals.pushed(4096) && !literals.pushed(4097), "{minus}");
        }
        assert_eq!(Capabilities::of(&["* FLAGS ()".into(), "* é".into()]), Capabilities::default());
    }
}
