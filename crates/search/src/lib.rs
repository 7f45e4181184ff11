//! Exact substring search over documents made of texts: dictionaries of their distinct tokens, and for each token the documents that
//! have it. Knows no mail, no files and no fields but by number.
//!
//! A text is cut into *tokens*, the maximal runs of characters of one class: words (letters, digits, marks) and what stands between
//! them. A needle all of one class lies inside one token of that class, so that the documents that contain it are exactly those of the
//! tokens that contain it: one substring scan over the dictionary, and no look at any text. A needle of several tokens is in documents
//! that have a token with its first piece at the end, one equal to each piece in the middle, and one with its last piece at the
//! beginning: a superset, which the caller verifies. Where a field is cut for it ([`Cut::Joints`]), what meets is noted as well, so that short
//! needles of several tokens are exact and the superset of longer ones is small; and of words that very many documents have ([`Frequent`])
//! what stands around them.
//!
//! Invariant (exactness): [`Index::find`] never leaves out a document that contains the needle in one of its texts, and names none that
//! does not as one that surely does. `tests/exact.rs` compares with a naive scan.
//!
//! The text that goes in and the needle must have been folded alike (case, compatibility forms) by the caller, with a folding that works
//! character by character.
//!
//! ```text
//!   texts ─▶ Builder ─▶ image ─▶ Index ─▶ DocSet          image: bytes of one immutable file, docs/format-search.md
//!                         ▲        │
//!                         └─ merge ┘
//! ```

mod build;
mod codec;
mod docs;
mod find;
mod format;
mod frequent;
mod index;
mod links;
mod lists;
mod merge;
mod needle;
mod token;
mod verify;
mod write;

pub use build::Builder;
pub use docs::DocSet;
pub use format::{BLOCK_ENTRY_BYTES, FIELD_BYTES, FIELDS_MAX, FOOTER_BYTES, MAGIC};
pub use frequent::Frequent;
pub use index::Index;
pub use merge::merge;
pub use needle::Needle;
pub use token::{Cut, NEEDLE_EXACT_BYTES_MAX, TOKEN_BYTES_MAX};
pub use verify::Digests;
