//! How far a conversion is, as the account's log says it: whoever opens the account goes on from there, or takes it back.
//!
//! The log keeps one line under [`KEY`], beside that of the format: `filling TARGET` while the account is still in its old format and the
//! messages are on their way; `kept OLD` once it is in the new one and the old store is kept; `discarding OLD` while the files of that format, which
//! the account does not have any more, are being removed. TARGET and OLD are lines as
//! [`AccountFormat`] has them, `native` for the store's own format, `sql` for a database.

use index::{State, Transaction};
use model::{Error, ErrorKind, Result};

use crate::format::{AccountFormat, account_format};

/// The account's annotation that says how far its conversion is.
pub(super) const KEY: &str = "/private/vendor/mailyard/convert";
const NATIVE: &str = "native";
const SQL: &str = "sql";

/// Where a conversion stands; none is under way without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Messages are on their way into this format.
    Filling {
        /// The new format.
        to: AccountFormat,
    },
    /// It is done, and what the account was before is kept.
    Kept {
        /// The format before.
        old: AccountFormat,
    },
    /// It is over, and the files of this format are being removed. Whoever opens the account goes on with that.
    Discarding {
        /// What they were.
        old: AccountFormat,
    },
}

fn line_of(format: &AccountFormat) -> Result<String> {
    let other = if *format == AccountFormat::Sql { SQL } else { NATIVE };
    Ok(format.to_line()?.unwrap_or_else(|| other.to_owned()))
}

fn format_of(line: &str) -> Result<AccountFormat> {
    match line {
        NATIVE => Ok(AccountFormat::Native),
        SQL => Ok(AccountFormat::Sql),
        line => AccountFormat::parse(Some(line.as_bytes())),
    }
}

impl Phase {
    /// What the account's log says.
    pub(crate) fn of(state: &State) -> Result<Option<Phase>> {
        let Some(value) = state.annotation(KEY) else { return Ok(None) };
        let unknown = || {
            let text = String::from_utf8_lossy(value);
            Error::new(ErrorKind::Corrupt, format!("the account is in a conversion that is not known: {text}"))
        };
        let (word, line) = std::str::from_utf8(value).ok().and_then(|text| text.split_once(' ')).ok_or_else(unknown)?;
        match word {
            "filling" => Ok(Some(Phase::Filling { to: format_of(line)? })),
            "kept" => Ok(Some(Phase::Kept { old: format_of(line)? })),
            "discarding" => Ok(Some(Phase::Discarding { old: format_of(line)? })),
            _ => Err(unknown()),
        }
    }

    /// It, as a line.
    pub(super) fn line(&self) -> Result<String> {
        Ok(match self {
            Phase::Filling { to } => format!("filling {}", line_of(to)?),
            Phase::Kept { old } => format!("kept {}", line_of(old)?),
            Phase::Discarding { old } => format!("discarding {}", line_of(old)?),
        })
    }

    /// Says it.
    pub(crate) fn set(phase: Option<&Phase>, transaction: &mut Transaction) -> Result<()> {
        let value = phase.map(Phase::line).transpose()?;
        transaction.annotate_account(KEY, value.as_deref().map(str::as_bytes))
    }
}

/// Says in which format the account is.
pub(crate) fn set_format(format: &AccountFormat, transaction: &mut Transaction) -> Result<()> {
    let line = format.to_line()?;
    transaction.annotate_account(account_format::KEY, line.as_deref().map(str::as_bytes))
}
