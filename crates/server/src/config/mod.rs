//! The configuration: one TOML file, every key declared once in [`keys`].
//!
//! Invariants: a file that was accepted names no unknown key; every key has a default, so that no file at all is a complete
//! configuration; `mailyard config --defaults`, `docs/configuration.md` and what the parser accepts come from the same declaration.

mod delivery;
mod keys;
mod mbox;
mod parse;
mod setting;
mod write;

pub use delivery::Aliases;
pub use keys::{
    Config, DeliverySection, FormatSection, Layout, LogFormat, LogSection, MailFormat, MaildirSection, MboxSection,
    OverQuota, PlainTextLogin, SqlSection, TlsSection, UidLists,
};
pub use parse::load;
pub use write::{reference, sample};
