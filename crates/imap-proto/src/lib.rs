//! The grammar of IMAP, both directions.
