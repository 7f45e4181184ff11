//! Addresses.

/// One address of an address list as IMAP represents it (RFC 9051 §7.5.2), undecoded.
///
/// A group is an address with `mailbox` = the group's name and no `host`, then its members, then an
/// address with neither `mailbox` nor `host`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// Display name ("personal name"), dequoted and unfolded, still with encoded words.
    pub name: Option<Vec<u8>>,
    /// Obsolete source route ("at-domain-list").
    pub adl: Option<Vec<u8>>,
    /// Local part.
    pub mailbox: Option<Vec<u8>>,
    /// Domain.
    pub host: Option<Vec<u8>>,
}

impl Address {
    /// The address as one decoded text, for SEARCH and display: `Name <mailbox@host>`.
    pub fn text(&self) -> String {
        todo!()
    }
}

/// The addresses of a raw field value.
pub fn parse_addresses(_value: &[u8], _addresses_max: usize) -> Vec<Address> {
    todo!()
}
