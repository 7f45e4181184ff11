//! APPEND: single messages, each durable before the next, by one connection and by twenty.

use super::{APPENDED, Bench, Target, say};
use crate::error::{Error, Result};
use crate::limits::{self, Group, Prefill};
use crate::wire::Connection;
use crate::workload::report::{Goal, Samples, Unit};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const WRITERS: usize = 20;
/// Twenty appenders, against the machine's group-commit limit.
const GROUP_TIMES: f64 = 1.5;

/// Where the messages go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mailboxes {
    One,
    OneEach,
}

impl Bench<'_> {
    /// All three forms.
    pub(super) fn appends(&mut self) -> Result<()> {
        let messages = self.messages(APPENDED)?;
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        for target in &mut self.targets {
            let connection = target.connection()?;
            for number in 0..WRITERS {
                // May exist from an earlier run against the same server.
                let _ = connection.command(&format!("CREATE bench-{number}"));
            }
        }
        let count = messages.len();
        self.append_row(&format!("APPEND {count} by 1 connection"), &messages, 1, Mailboxes::One, None)?;
        let goal = Some(Goal::TimesLimit(GROUP_TIMES));
        self.append_row(
            &format!("APPEND {count} by {WRITERS}, one mailbox"),
            &messages,
            WRITERS,
            Mailboxes::One,
            goal,
        )?;
        self.append_row(
            &format!("APPEND {count} by {WRITERS}, a mailbox each"),
            &messages,
            WRITERS,
            Mailboxes::OneEach,
            goal,
        )
    }

    fn append_row(
        &mut self,
        name: &str,
        messages: &[&[u8]],
        writers: usize,
        mailboxes: Mailboxes,
        goal: Option<Goal>,
    ) -> Result<()> {
        say(name);
        let mut results = self.no_samples();
        let mut prefilled = Samples::default();
        let mut growing = Samples::default();
        let mut over_sockets = Samples::default();
        for target in &mut self.targets {
            target.reset_peak()?;
        }
        for _ in 0..self.plan.repeat {
            for (target, samples) in self.targets.iter_mut().zip(&mut results) {
                samples.push_time(append(target, messages, writers, mailboxes)?);
            }
            let file = self.work("sync");
            for (limit, prefill) in [(&mut prefilled, Prefill::Yes), (&mut growing, Prefill::No)] {
                limit.push_time(if writers == 1 {
                    limits::single_syncs(&file, messages, prefill)?
                } else {
                    limits::group_commit(&file, messages, writers, prefill)?.0
                });
            }
            let group = Group::create(&file, messages, Prefill::Yes)?;
            over_sockets.push_time(limits::group_commit_over_sockets(&group, messages, writers)?);
        }
        let kind = if writers == 1 { "one sync each" } else { "one sync per batch" };
        let what = format!(
            "{kind}, prefilled file (growing: {:.0}; messages over sockets: {:.0})",
            growing.median(),
            over_sockets.median()
        );
        self.row(name, Unit::Ms, results, Some((prefilled, what)), goal);
        self.peak_row(name)
    }
}

/// Appends the messages, an equal part by each writer; from the moment all are ready until the last answer.
fn append(target: &Target, messages: &[&[u8]], writers: usize, mailboxes: Mailboxes) -> Result<Duration> {
    let mut connections = Vec::new();
    for _ in 0..writers {
        connections.push(Connection::login(&target.address)?);
    }
    let ready = Barrier::new(writers + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(number, mut connection)| {
                let mailbox =
                    if mailboxes == Mailboxes::One { "bench-0".to_string() } else { format!("bench-{number}") };
                let ready = &ready;
                let mine = messages.iter().skip(number).step_by(writers);
                scope.spawn(move || {
                    ready.wait();
                    for message in mine {
                        connection.append(&mailbox, &[message])?;
                    }
                    Ok(connection)
                })
            })
            .collect();
        ready.wait();
        let began = Instant::now();
        // Connections are kept, so that closing them is not measured.
        let ended: Result<Vec<Connection>> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| Error::new("a writer failed"))?).collect();
        let took = began.elapsed();
        ended.map(|_| took)
    })
}
