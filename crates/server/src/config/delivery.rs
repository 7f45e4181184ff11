//! The kinds of values that only the section `[delivery]` has.

use std::collections::BTreeMap;
use std::net::IpAddr;

use toml::de::DeValue;

use super::setting::{Setting, expected};

/// Addresses in lower case, and to whom their mail goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases(pub BTreeMap<String, String>);

impl Setting for Aliases {
    fn kind() -> String {
        "table of addresses and users".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let table = value.as_table().ok_or_else(|| expected::<Self>(value))?;
        let mut aliases = BTreeMap::new();
        for (address, user) in table {
            let user = user.get_ref().as_str().ok_or_else(|| expected::<Self>(user.get_ref()))?;
            if aliases.insert(address.get_ref().to_lowercase(), user.to_owned()).is_some() {
                return Err(format!("{} stands there twice; upper and lower case are the same", address.get_ref()));
            }
        }
        Ok(Aliases(aliases))
    }
    fn to_toml(&self) -> String {
        let quoted = |text: &String| toml::Value::from(text.as_str()).to_string();
        let items: Vec<String> = self.0.iter().map(|(a, user)| format!("{} = {}", quoted(a), quoted(user))).collect();
        if items.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", items.join(", ")) }
    }
}

/// Networks as CIDR has them (RFC 4632).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Networks(Vec<(IpAddr, u8)>);

impl Networks {
    /// This machine.
    pub fn loopback() -> Self {
        Networks(vec![([127, 0, 0, 0].into(), 8), (std::net::Ipv6Addr::LOCALHOST.into(), 128)])
    }

    /// Whether one of them has `address`, which is canonical ([`IpAddr::to_canonical`]).
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(network, length)| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(*length)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = network.to_bits() ^ address.to_bits();
                differing.leading_zeros() >= u32::from(*length)
            }
            _ => false,
        })
    }
}

/// `10.0.0.0/8`, or one address.
fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Some(all), |length| length.parse().ok())?;
    (length <= all).then_some((address, length))
}

impl Setting for Networks {
    fn kind() -> String {
        "list of networks".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let array = value.as_array().ok_or_else(|| expected::<Self>(value))?;
        let read = |item: &toml::Spanned<DeValue<'_>>| {
            let text = item.get_ref().as_str().ok_or_else(|| expected::<Self>(item.get_ref()))?;
            network(text).ok_or_else(|| format!("{text:?} is no network, such as \"10.0.0.0/8\" or \"::1\""))
        };
        array.iter().map(read).collect::<Result<_, _>>().map(Networks)
    }
    fn to_toml(&self) -> String {
        let items: Vec<String> = self.0.iter().map(|(address, length)| format!("\"{address}/{length}\"")).collect();
        format!("[{}]", items.join(", "))
    }
}

/// An access mode, written as chmod(1) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

impl Setting for FileMode {
    fn kind() -> String {
        "string of octal digits".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| expected::<Self>(value))?;
        let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(FileMode).ok_or_else(|| format!("{text:?} is no access mode, such as \"0660\""))
    }
    fn to_toml(&self) -> String {
        format!("\"{:04o}\"", self.0)
    }
}

impl Setting for Vec<String> {
    fn kind() -> String {
        "list of strings".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let array = value.as_array().ok_or_else(|| expected::<Self>(value))?;
        let text = |item: &toml::Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
        array.iter().map(|item| text(item).ok_or_else(|| expected::<Self>(item.get_ref()))).collect()
    }
    fn to_toml(&self) -> String {
        let items: Vec<String> = self.iter().map(|item| toml::Value::from(item.as_str()).to_string()).collect();
        format!("[{}]", items.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_their_addresses() {
        let networks =
            Networks(["10.1.0.0/16", "192.0.2.7", "2001:db8::/32"].map(|text| network(text).unwrap()).into());
        for (address, is_in) in [
            ("10.1.255.1", true),
            ("10.2.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.6", false),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
            ("::1", false),
        ] {
            assert_eq!(networks.contains(address.parse().unwrap()), is_in, "{address}");
        }
        assert!(Networks::loopback().contains([127, 3, 4, 5].into()));
        let everybody = Networks(vec![network("0.0.0.0/0").unwrap()]);
        assert!(everybody.contains([192, 0, 2, 1].into()));
        for bad in ["", "10.0.0.0/33", "10.0.0/8", "::1/129", "10.0.0.0/x"] {
            assert_eq!(network(bad), None, "{bad}");
        }
    }
}
