//! Progress and notices for whoever sits at the terminal.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use crate::admin::{Notice, Progress};

/// A bar on standard error when that is a terminal; notices there in any case, each a line.
pub struct Bar {
    bar: Option<ProgressBar>,
}

impl Bar {
    /// Shows nothing until there is progress, and never a bar when `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(ProgressBar::no_length);
        Bar { bar }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn advanced(&mut self, done: u64, total: u64, unit: &'static str) {
        let Some(bar) = &self.bar else { return };
        if total > 0 && bar.length() != Some(total) {
            bar.set_length(total);
            let template = match unit {
                "bytes" => "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                _ => "{bar:40} {human_pos} of {human_len}, {per_sec}, {eta} left",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
        }
        bar.set_position(done);
    }

    fn notice(&mut self, notice: Notice) {
        let show = || {
            let _ = writeln!(std::io::stderr(), "mailyard: {notice}");
        };
        match &self.bar {
            Some(bar) => bar.suspend(show),
            None => show(),
        }
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
