//! Decoding of header text: RFC 2047 and RFC 2231.

use crate::Parameter;
use std::borrow::Cow;

/// A raw field value without its folding (RFC 5322 §2.2.3): line ends before white space removed.
pub fn unfold(_value: &[u8]) -> Cow<'_, [u8]> {
    todo!()
}

/// A raw field value as text: unfolded, encoded words decoded, raw 8-bit guessed.
pub fn decode_unstructured(_value: &[u8]) -> Cow<'_, str> {
    todo!()
}

/// The decoded value of the parameter `name` (`filename`, `name`, `charset` ...): RFC 2231, and encoded
/// words where RFC 2231 is not used.
pub fn decode_parameter(_parameters: &[Parameter], _name: &str) -> Option<String> {
    todo!()
}
