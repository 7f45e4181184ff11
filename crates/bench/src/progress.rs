//! What the person at the terminal sees: a bar with the time left, a line for what is done now.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// The progress of a run, in steps of about equal length. Without a terminal, plain lines.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
}

impl Progress {
    /// A bar of so many steps.
    pub fn new(steps: u64) -> Progress {
        let bar = ProgressBar::new(steps);
        // The template is ours: a wrong one would show at the first test.
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} left {eta} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let plain = bar.is_hidden();
        if !plain {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Progress { bar, plain }
    }

    /// What is done now.
    pub fn say(&self, what: &str) {
        if self.plain {
            eprintln!("  {what}");
        } else {
            self.bar.set_message(what.to_string());
        }
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// More steps than were known at first.
    pub fn more(&self, steps: u64) {
        self.bar.inc_length(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
