//! Opening an account.

use std::path::Path;

use model::Result;
use platform::Env;

use crate::log::Opened;
use crate::options::Options;

pub(crate) fn open(env: &Env, dir: &Path, options: &Options) -> Result<Opened> {
    let _ = (env, dir, options);
    todo!()
}
