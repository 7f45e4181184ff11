//! Takes the place of the crate of this name in the database driver: the driver trusts all the roots that it finds here, besides the
//! CA file that it is given. There are none.

/// No root.
pub const TLS_SERVER_ROOTS: &[pki_types::TrustAnchor<'static>] = &[];
