//! Special-use attributes of mailboxes (RFC 6154 §2, RFC 8457 §3).

/// What a mailbox is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SpecialUse {
    /// `\All`
    All = 1,
    /// `\Archive`
    Archive = 2,
    /// `\Drafts`
    Drafts = 3,
    /// `\Flagged`
    Flagged = 4,
    /// `\Important`
    Important = 5,
    /// `\Junk`
    Junk = 6,
    /// `\Sent`
    Sent = 7,
    /// `\Trash`
    Trash = 8,
}

impl SpecialUse {
    /// Every special use.
    pub const EVERY: [SpecialUse; 8] = [
        SpecialUse::All,
        SpecialUse::Archive,
        SpecialUse::Drafts,
        SpecialUse::Flagged,
        SpecialUse::Important,
        SpecialUse::Junk,
        SpecialUse::Sent,
        SpecialUse::Trash,
    ];

    /// The attribute with its backslash.
    pub const fn as_str(self) -> &'static str {
        match self {
            SpecialUse::All => "\\All",
            SpecialUse::Archive => "\\Archive",
            SpecialUse::Drafts => "\\Drafts",
            SpecialUse::Flagged => "\\Flagged",
            SpecialUse::Important => "\\Important",
            SpecialUse::Junk => "\\Junk",
            SpecialUse::Sent => "\\Sent",
            SpecialUse::Trash => "\\Trash",
        }
    }

    /// Reads an attribute with its backslash, in any case.
    pub fn parse(name: &str) -> Option<Self> {
        Self::EVERY.into_iter().find(|attribute| attribute.as_str().eq_ignore_ascii_case(name))
    }

    /// The number on disk; it never changes its meaning.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What a number on disk stands for.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::EVERY.into_iter().find(|attribute| attribute.code() == code)
    }
}
