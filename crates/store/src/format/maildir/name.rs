//! Names of message files: `BASE:2,FLAGS`, where the base may say sizes (`,S=` and `,W=`).
//!
//! The sources are the Maildir page of D. J. Bernstein (cr.yp.to/proto/maildir.html), the Maildir++ page of Courier for `,S=`, and Dovecot's page of
//! the format for `,W=`, for keyword letters, and for what may follow a comma behind the flags.
//!
//! Rules:
//! - A name begins with no dot and has no slash; what begins with a dot is no message.
//! - The base ends at the first `:2,`, else at the first colon; what is behind a colon that is not `2,` is *info* of a kind that is not known here: it
//!   is kept as it is and means no flags. File systems without colons have `;` or `!` in its place, which counts before `2,` only.
//! - The base is the message's identity as long as nobody renames it; [`Name::stem`] is what stays when programs add fields (mbsync `,U=`, delivery
//!   agents `,S=`).
//! - Letters are one octet each and in ASCII order; unknown ones are kept. Behind a comma in them are fields of other programs, kept as they are.

use std::fmt;

use model::SystemFlag;

/// What stands before `2,` where colons can be in names.
pub(crate) const SEPARATOR: u8 = b':';
/// What stands there elsewhere, and before nothing else.
const OTHER_SEPARATORS: [u8; 2] = [b';', b'!'];

/// The letters of the system flags: P(assed) is a keyword in IMAP, `$Forwarded`.
pub(crate) const SYSTEM_LETTERS: [(u8, SystemFlag); 5] = [
    (b'D', SystemFlag::Draft),
    (b'F', SystemFlag::Flagged),
    (b'R', SystemFlag::Answered),
    (b'S', SystemFlag::Seen),
    (b'T', SystemFlag::Deleted),
];

/// The letter for `$Forwarded`.
pub(crate) const PASSED: u8 = b'P';

/// A file name of a message, taken apart. [`Name::write`] gives the same octets back, the letters in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    /// What stays when flags change.
    pub(crate) base: &'a [u8],
    /// What is behind it.
    pub(crate) info: Info<'a>,
}

/// What stands behind the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Info<'a> {
    /// Nothing: a file in `new`, as a rule.
    None,
    /// `:2,` and flags.
    Flags {
        /// The octet before `2,`.
        separator: u8,
        /// The flags.
        letters: Letters,
        /// What follows them, from the comma on; empty for most.
        rest: &'a [u8],
    },
    /// Another kind of info, from the colon on.
    Other(&'a [u8]),
}

impl<'a> Name<'a> {
    /// Takes a name apart. `None`: no message has this name.
    pub(crate) fn parse(name: &'a [u8]) -> Option<Name<'a>> {
        if name.starts_with(b".") || name.contains(&b'/') || name.contains(&0) {
            return None;
        }
        let at = flags_at(name).or_else(|| memchr::memchr(SEPARATOR, name));
        let (base, info) = name.split_at_checked(at.unwrap_or(name.len()))?;
        if base.is_empty() {
            return None;
        }
        let info = match info {
            [] => Info::None,
            [separator, b'2', b',', flags @ ..] => {
                let (letters, rest) = flags.split_at_checked(memchr::memchr(b',', flags).unwrap_or(flags.len()))?;
                Info::Flags { separator: *separator, letters: Letters::read(letters), rest }
            }
            other => Info::Other(other),
        };
        Some(Name { base, info })
    }

    /// The name as it is written, letters in order.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = self.base.to_vec();
        match self.info {
            Info::None => {}
            Info::Flags { separator, letters, rest } => {
                out.extend([separator, b'2', b',']);
                out.extend(letters.iter());
                out.extend(rest);
            }
            Info::Other(info) => out.extend(info),
        }
        out
    }

    /// The flags; none where there is no `2,`.
    pub(crate) fn letters(&self) -> Letters {
        match self.info {
            Info::Flags { letters, .. } => letters,
            _ => Letters::default(),
        }
    }

    /// This name with other flags. Info of a kind that is not known gives way to them: it cannot say flags.
    pub(crate) fn with_letters(self, letters: Letters) -> Name<'a> {
        let (separator, rest) = match self.info {
            Info::Flags { separator, rest, .. } => (separator, rest),
            _ => (SEPARATOR, &[][..]),
        };
        Name { info: Info::Flags { separator, letters, rest }, ..self }
    }

    /// The size of the file, octets, as the name says it (`,S=`).
    pub(crate) fn size(&self) -> Option<u64> {
        number(field(self.base, b"S")?)
    }

    /// The size of the message with CRLF line ends, octets, as the name says it (`,W=`).
    pub(crate) fn crlf_size(&self) -> Option<u64> {
        number(field(self.base, b"W")?)
    }

    /// The base without its fields.
    pub(crate) fn stem(&self) -> &'a [u8] {
        self.base.split(|byte| *byte == b',').next().unwrap_or(self.base)
    }

    /// Seconds since 1970 of the delivery, as the name says them: names begin with them by convention, which says nothing of a name that does not.
    pub(crate) fn unix_seconds(&self) -> Option<u64> {
        number(self.base.split(|byte| *byte == b'.').next()?)
    }
}

/// Where `:2,` begins.
fn flags_at(name: &[u8]) -> Option<usize> {
    let mut windows = name.windows(3);
    if let Some(at) = windows.position(|window| window == [SEPARATOR, b'2', b',']) {
        return Some(at);
    }
    if name.contains(&SEPARATOR) {
        return None;
    }
    // The last one: these octets are no less likely in a base than others.
    name.windows(3)
        .rposition(|window| matches!(window, [separator, b'2', b','] if OTHER_SEPARATORS.contains(separator)))
}

/// The value of the field `key` of a base: `,KEY=VALUE`. The first one counts.
pub(crate) fn field<'a>(base: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut fields = base.split(|byte| *byte == b',').skip(1);
    fields.find_map(|field| field.strip_prefix(key)?.strip_prefix(b"="))
}

/// A decimal number and nothing else.
pub(super) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    // `parse` would take a sign.
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

/// A set of flag letters: any graphic ASCII octet but comma and slash.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Letters(u128);

impl Letters {
    /// The letters in `text`; octets that are none are passed over.
    pub(crate) fn read(text: &[u8]) -> Letters {
        text.iter().fold(Letters::default(), |letters, letter| letters.with(*letter))
    }

    /// Those of the system flags in `flags`.
    pub(crate) fn of_system(flags: impl IntoIterator<Item = SystemFlag>) -> Letters {
        let letter = |flag| SYSTEM_LETTERS.iter().find(|(_, known)| *known == flag).map(|(letter, _)| *letter);
        flags.into_iter().filter_map(letter).fold(Letters::default(), Letters::with)
    }

    /// With `letter`, unless that is none.
    #[must_use]
    pub(crate) fn with(self, letter: u8) -> Letters {
        Letters(self.0 | bit(letter))
    }

    /// Those of `self` and of `other`.
    #[must_use]
    pub(crate) fn union(self, other: Letters) -> Letters {
        Letters(self.0 | other.0)
    }

    /// Those of `self` that are not in `other`.
    #[must_use]
    pub(crate) fn difference(self, other: Letters) -> Letters {
        Letters(self.0 & !other.0)
    }

    /// Whether `letter` is one of them.
    pub(crate) fn has(self, letter: u8) -> bool {
        bit(letter) != 0 && self.0 & bit(letter) != 0
    }

    /// In ASCII order, as names have them.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (b'!'..=b'~').filter(move |letter| self.has(*letter))
    }

    /// The system flags among them.
    pub(crate) fn system(self) -> impl Iterator<Item = SystemFlag> {
        SYSTEM_LETTERS.into_iter().filter(move |(letter, _)| self.has(*letter)).map(|(_, flag)| flag)
    }

    /// The keyword letters among them, `a` to `z`.
    pub(crate) fn keywords(self) -> impl Iterator<Item = u8> {
        (b'a'..=b'z').filter(move |letter| self.has(*letter))
    }
}

impl fmt::Debug for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().map(char::from).collect::<String>())
    }
}

/// 0 for an octet that is no letter.
fn bit(letter: u8) -> u128 {
    if letter.is_ascii_graphic() && !matches!(letter, b',' | b'/') { 1 << letter } else { 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn flags<'a>(base: &'a str, letters: &str, rest: &'a str) -> Option<Name<'a>> {
        let info = Info::Flags { separator: b':', letters: Letters::read(letters.as_bytes()), rest: rest.as_bytes() };
        Some(Name { base: base.as_bytes(), info })
    }

    #[test]
    fn names_of_all_writers() {
        let parse = |name: &'static str| Name::parse(name.as_bytes());
        // qmail, Dovecot, Courier, mbsync, Python.
        assert_eq!(parse("1035478339.27041_118.foo.org:2,S"), flags("1035478339.27041_118.foo.org", "S", ""));
        assert_eq!(parse("1.M2P3.h,S=1000,W=1030:2,STln"), flags("1.M2P3.h,S=1000,W=1030", "STln", ""));
        assert_eq!(parse("1.2_0.h,U=7:2,"), flags("1.2_0.h,U=7", "", ""));
        assert_eq!(parse("1.h:2,FS,x=1,y"), flags("1.h", "FS", ",x=1,y"));
        assert_eq!(parse("1.h").unwrap().info, Info::None);
        assert_eq!(parse("1.h:1,abc").unwrap().info, Info::Other(b":1,abc"));
        assert_eq!(parse("1.h:2").unwrap().info, Info::Other(b":2"));
        assert_eq!(parse("a:b:2,S"), flags("a:b", "S", ""));
        let other = parse("1.a!2,RS").unwrap();
        assert_eq!((other.base, other.letters()), (&b"1.a"[..], Letters::read(b"RS")));
        assert_eq!(parse("1;2,a;2,S").unwrap().base, b"1;2,a");
        assert_eq!(parse("1;2,a:1").unwrap().base, b"1;2,a");
        for none in ["", ".nfs0001", ".", "..", ":2,S", "a/b", "a\0"] {
            assert_eq!(parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_a_base_says() {
        let name = Name::parse(b"1491941793.M41P85.mx,S=10956,W=11200,U=3,S=1:2,S").unwrap();
        assert_eq!((name.size(), name.crlf_size(), name.unix_seconds()), (Some(10956), Some(11200), Some(1491941793)));
        assert_eq!(name.stem(), b"1491941793.M41P85.mx");
        assert_eq!((field(name.base, b"U"), field(name.base, b"Z")), (Some(&b"3"[..]), None));
        let name = Name::parse(b"x,S=+1,W=").unwrap();
        assert_eq!((name.size(), name.crlf_size(), name.unix_seconds()), (None, None, None));
    }

    #[test]
    fn letters_of_all_octets() {
        for byte in 0..=255u8 {
            let letters = Letters::default().with(byte);
            let is_letter = (b'!'..=b'~').contains(&byte) && byte != b',' && byte != b'/';
            assert_eq!((letters.has(byte), letters.iter().count()), (is_letter, usize::from(is_letter)), "{byte}");
            assert_eq!(letters.keywords().count(), usize::from(byte.is_ascii_lowercase()));
            assert_eq!(letters.system().count(), usize::from(b"DFRST".contains(&byte)));
        }
        assert_eq!(format!("{:?}", Letters::read(b"bTSa?")), "?STab");
        assert_eq!(Letters::of_system(SYSTEM_LETTERS.map(|(_, flag)| flag)), Letters::read(b"DFRST"));
    }

    #[test]
    fn other_flags_keep_the_rest() {
        let written = |name: &str, letters: &str| {
            let name = Name::parse(name.as_bytes()).unwrap().with_letters(Letters::read(letters.as_bytes()));
            String::from_utf8(name.write()).unwrap()
        };
        assert_eq!(written("1.h,S=2:2,S,x", "TF"), "1.h,S=2:2,FT,x");
        assert_eq!((written("1.h", ""), written("1.h;2,S", "R")), ("1.h:2,".to_owned(), "1.h;2,R".to_owned()));
        assert_eq!(written("1.h:1,x", "S"), "1.h:2,S");
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_a_name_that_comes_back_or_none(name in proptest::collection::vec(proptest::num::u8::ANY, 0..24)) {
            if let Some(parsed) = Name::parse(&name) {
                let written = parsed.write();
                proptest::prop_assert_eq!(Name::parse(&written), Some(parsed));
                let _ = (parsed.size(), parsed.crlf_size(), parsed.unix_seconds(), parsed.stem());
            }
        }

        #[test]
        fn names_come_back(name in "[a-z0-9][a-z0-9.]{0,7}(,[SWU]=[0-9]{1,3}){0,3}((:2,[A-Z]{0,3}[a-z]{0,3}(,[a-z=]{0,3})?)|(:1,x))?") {
            let parsed = Name::parse(name.as_bytes()).unwrap();
            let again = parsed.with_letters(parsed.letters());
            proptest::prop_assert_eq!(again.letters(), parsed.letters());
            if !matches!(parsed.info, Info::Flags { .. }) {
                proptest::prop_assert_eq!(parsed.write(), name.into_bytes());
            }
        }
    }
}
