//! Removing the files of a format that an account has left.

use std::path::{Path, PathBuf};

use model::Result;
use platform::Env;

use crate::format::AccountFormat;
use crate::format::{maildir, mbox};

/// Removes the files of an account in `dir` that were its own in that format, as far as they are as they were when it last looked. Gives those
/// that stay: somebody has changed them since, and what is in them may be nowhere else.
pub(super) fn discard(env: &Env, dir: &Path, format: &AccountFormat) -> Result<Vec<PathBuf>> {
    match format {
        AccountFormat::Native | AccountFormat::Sql => Ok(Vec::new()),
        AccountFormat::Maildir { root, .. } => maildir::discard::discard(&*env.disk, dir, root),
        AccountFormat::Mbox { inbox, root } => mbox::discard::discard(&*env.disk, dir, inbox, root),
    }
}
