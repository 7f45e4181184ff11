//! Mail bytes to structure, never failing.
