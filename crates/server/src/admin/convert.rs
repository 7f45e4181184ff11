//! `convert`: the store does the work, here it is asked and reported.

use std::ops::ControlFlow;

use model::{AccountName, Result};
use serde_json::{Value, json};
use store::convert::{self, ConvertReport, Phase};

use super::accounts::described;
use super::{Context, NewMail, Progress};

/// Messages that are named one by one; how many there are is always said.
const NAMED_MAX: usize = 20;

/// What is wanted of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into another format, or on with it.
    Convert,
    /// The same, and the old store is given up at once.
    ConvertAndFinish,
    /// The old store is given up.
    Finish,
    /// Back to the old store.
    RollBack,
}

/// `convert`
pub fn run(context: &Context, user: &str, to: NewMail, step: Step, progress: &mut dyn Progress) -> Result<Value> {
    let account = context.account(user)?;
    let name = AccountName::new(user)?;
    let report = {
        let watch = &mut octets(progress);
        match step {
            Step::Convert | Step::ConvertAndFinish => {
                // What is under way need not be said again.
                let to = match convert::phase(&account)? {
                    Some(Phase::Filling { to: begun })
                        if to == (NewMail { format: to.format, ..NewMail::default() }) =>
                    {
                        begun
                    }
                    _ => context.new_mail.resolve(&name, to, &*context.store.env().disk)?,
                };
                let mut report = convert::convert(&account, &to, watch)?;
                if step == Step::ConvertAndFinish && !report.was_stopped {
                    let finished = convert::finish(&account, watch)?;
                    report = ConvertReport { proof: report.proof, held: report.held + finished.held, ..finished };
                }
                report
            }
            Step::Finish => convert::finish(&account, watch)?,
            Step::RollBack => convert::roll_back(&account, watch)?,
        }
    };
    for stayed in report.stayed.iter().take(NAMED_MAX) {
        progress.notice(format!(
            "UID {} of {} stays in the log: its format cannot hold it byte for byte",
            stayed.uid, stayed.mailbox
        ));
    }
    for left in &report.left {
        progress.notice(format!("{} stays: it was changed since", left.display()));
    }
    Ok(result(&name, &report))
}

fn result(name: &AccountName, report: &ConvertReport) -> Value {
    let (state, other) = match &report.phase {
        None => ("done", None),
        Some(Phase::Filling { to }) => ("under way", Some(to)),
        Some(Phase::Kept { old }) => ("the old store is kept", Some(old)),
        Some(Phase::Discarding { old }) => ("the old files are being removed", Some(old)),
    };
    let proof = report.proof.as_ref().map(|proof| {
        json!({
            "mailboxes": proof.mailboxes,
            "entries": proof.entries,
            "bytes": proof.bytes,
            "equal": proof.equal,
            "sha256": proof.sha256,
        })
    });
    let mut result = json!({
        "user": name.as_str(),
        "format": described(&report.format),
        "state": state,
        "other_format": other.map(described),
        "moved": report.moved,
        "moved_bytes": report.moved_bytes,
        "in_the_log_for_good": report.stayed.len(),
        "held_milliseconds": report.held.as_micros() as f64 / 1000.0,
        "left": report.left,
        "stopped": report.was_stopped,
    });
    if let (Some(Value::Object(proof)), Some(result)) = (proof, result.as_object_mut()) {
        result.extend(proof.into_iter().map(|(key, value)| (format!("compared_{key}"), value)));
    }
    result
}

fn octets(progress: &mut dyn Progress) -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |done, total| {
        progress.advanced(done, total, "bytes");
        if progress.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
