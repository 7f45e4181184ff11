//! The log, on standard error.

use std::io::IsTerminal;

use model::{Error, ErrorKind, Result};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSection};

/// Begins to log. The environment variable MAILYARD_LOG wins over the configured level.
pub fn start(section: &LogSection) -> Result<()> {
    let level = std::env::var("MAILYARD_LOG").unwrap_or_else(|_| section.level.clone());
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| Error::new(ErrorKind::Invalid, format!("log.level {level:?}: {error}")))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let started = match section.format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    // A panic is our own bug. It ends the connection that met it and nothing else; the log is where somebody looks for it.
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, panic = info.payload_as_str().unwrap_or_default(), "panic");
    }));
    Ok(())
}
