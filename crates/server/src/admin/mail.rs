//! `import`, `export`, `restore`, `check`, `stats`: the store does the work, here it is asked and reported.

use model::{Error, ErrorKind, Result};
use serde_json::Value;

use super::{Context, Progress, Request};

/// Runs a command that concerns mail.
pub fn run(_context: &Context, request: Request, _progress: &mut dyn Progress) -> Result<Value> {
    Err(Error::new(ErrorKind::Invalid, format!("{request:?} is not offered")))
}
