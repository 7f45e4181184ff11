//! Types that a configuration key can have: how each is read from TOML, written to the sample, and named in the documentation.
//!
//! A new kind of value is one more implementation of [`Setting`]; the keys themselves are declared in [`super::keys`].

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use sessions::pop3::UidlFormat;
use toml::de::DeValue;

/// A type of configuration values.
pub trait Setting: Sized {
    /// What the documentation calls it: `integer`, `list of addresses`.
    fn kind() -> String;
    /// Reads the value; the error says what was expected.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String>;
    /// The value as TOML.
    fn to_toml(&self) -> String;
}

/// A number whose key declares the range that makes sense.
pub trait Ranged: Setting + PartialOrd {
    /// The error names the range.
    fn check(self, range: &RangeInclusive<Self>) -> Result<Self, String> {
        if range.contains(&self) {
            return Ok(self);
        }
        Err(format!("{} is outside {} to {}", self.to_toml(), range.start().to_toml(), range.end().to_toml()))
    }
}

pub(super) fn expected<T: Setting>(value: &DeValue<'_>) -> String {
    format!("expected {}, found {}", T::kind(), value.type_str())
}

impl Setting for bool {
    fn kind() -> String {
        "true or false".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| expected::<Self>(value))
    }
    fn to_toml(&self) -> String {
        self.to_string()
    }
}

macro_rules! integer {
    ($($type:ty)*) => { $(
        impl Setting for $type {
            fn kind() -> String {
                "integer".into()
            }
            fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
                let integer = value.as_integer().ok_or_else(|| expected::<Self>(value))?;
                <$type>::from_str_radix(integer.as_str(), integer.radix())
                    .map_err(|_| format!("expected an integer from 0 to {}", <$type>::MAX))
            }
            fn to_toml(&self) -> String {
                grouped(u64::from(*self))
            }
        }
        impl Ranged for $type {}
    )* };
}
integer!(u16 u32 u64);

/// Digits in groups of three, as TOML allows: 64_000_000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && digits.len() > 4 {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

impl Setting for String {
    fn kind() -> String {
        "string".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| expected::<Self>(value))
    }
    fn to_toml(&self) -> String {
        toml::Value::from(self.as_str()).to_string()
    }
}

impl Setting for UidlFormat {
    fn kind() -> String {
        "string with %u and %v".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let text = value.as_str().ok_or_else(|| expected::<Self>(value))?;
        text.parse().map_err(|error: model::Error| error.details().to_owned())
    }
    fn to_toml(&self) -> String {
        self.to_string().to_toml()
    }
}

impl Setting for PathBuf {
    fn kind() -> String {
        "path".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map(PathBuf::from).ok_or_else(|| expected::<Self>(value))
    }
    fn to_toml(&self) -> String {
        toml::Value::from(self.to_string_lossy().as_ref()).to_string()
    }
}

impl Setting for Vec<SocketAddr> {
    fn kind() -> String {
        "list of addresses with ports".into()
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let array = value.as_array().ok_or_else(|| expected::<Self>(value))?;
        array
            .iter()
            .map(|item| {
                let text = item.get_ref().as_str().ok_or_else(|| expected::<Self>(item.get_ref()))?;
                text.parse().map_err(|_| {
                    format!("{text:?} is no address with a port, such as \"127.0.0.1:143\" or \"[::1]:143\"")
                })
            })
            .collect()
    }
    fn to_toml(&self) -> String {
        let items: Vec<String> = self.iter().map(|address| format!("\"{address}\"")).collect();
        format!("[{}]", items.join(", "))
    }
}

/// A list of values that stand for themselves, each at most once: `["dotlock", "fcntl"]`.
///
/// `names` are all that there are; the error names them.
pub(super) fn names_from_toml<T: Copy + PartialEq>(
    value: &DeValue<'_>,
    kind: &str,
    names: &[(&'static str, T)],
) -> Result<Vec<T>, String> {
    let array = value.as_array().ok_or_else(|| format!("expected {kind}, found {}", value.type_str()))?;
    let mut values = Vec::with_capacity(array.len());
    for item in array.iter() {
        let text = item.get_ref().as_str().ok_or_else(|| format!("expected {kind}"))?;
        let Some((_, value)) = names.iter().find(|(name, _)| *name == text) else {
            return Err(format!("{text:?} is none of {}", quoted(names.iter().map(|(name, _)| *name))));
        };
        if values.contains(value) {
            return Err(format!("{text:?} stands there twice"));
        }
        values.push(*value);
    }
    Ok(values)
}

/// A list of names as TOML.
pub(super) fn names_to_toml<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", quoted(names))
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Declares a closed choice: an enum whose values are written as strings.
macro_rules! choice {
    ($(#[doc = $doc:literal])* $name:ident { $( $(#[doc = $variant_doc:literal])* $variant:ident = $text:literal, )* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $variant_doc])* $variant, )* }

        impl $crate::config::setting::Setting for $name {
            fn kind() -> String {
                [$(concat!("\"", $text, "\"")),*].join(" or ")
            }
            fn from_toml(value: &toml::de::DeValue<'_>) -> Result<Self, String> {
                match value.as_str() {
                    $( Some($text) => Ok($name::$variant), )*
                    _ => Err(format!("expected {}", Self::kind())),
                }
            }
            fn to_toml(&self) -> String {
                match self { $( $name::$variant => concat!("\"", $text, "\"").to_owned(), )* }
            }
        }
    };
}
pub(super) use choice;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups_that_toml_reads() {
        for (number, text) in [(0, "0"), (1024, "1024"), (10_000, "10_000"), (1_234_567, "1_234_567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
