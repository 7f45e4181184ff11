//! Takes the place of the crate of this name in the database driver, which converts two of its errors and calls nothing of it.
//! Certificates are verified by `rustls` with its own `rustls-webpki`.

use std::fmt;

/// Never made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {}

/// Never made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidDnsNameError {}

impl fmt::Display for Error {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for InvalidDnsNameError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for Error {}
impl std::error::Error for InvalidDnsNameError {}
