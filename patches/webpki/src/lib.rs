//! Takes the place of the crate of this name in the database driver, which converts two of its errors and calls nothing of it.
//! Certificates are verified by `rustls` with its own `rustls-webpki`.

use std::fmt;

/// Never made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {}

/// A name that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidDnsNameError;

impl fmt::Display for Error {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for InvalidDnsNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server's name is none that a certificate can have")
    }
}

impl std::error::Error for Error {}
impl std::error::Error for InvalidDnsNameError {}
