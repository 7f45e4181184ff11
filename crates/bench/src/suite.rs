//! The suites: the published workloads, each with its source.

mod answers;
mod backup;
mod deliver;
mod folder2007;
mod lisa2003;
mod mail;
mod mbox2004;
mod mixed;
mod pop3;
mod populate2006;
mod scan2002;
mod times;

use crate::error::Result;
use crate::run::Run;

/// A workload.
pub trait Suite {
    /// As in `--suite`.
    fn name(&self) -> &'static str;

    /// Who published it, where and when.
    fn source(&self) -> &'static str;

    /// What is measured, in a paragraph that a reader of the report gets.
    fn about(&self) -> &'static str;

    /// Whether it is measured for every mailbox size of the run, or once.
    fn per_size(&self) -> bool;

    /// Whether it measures servers, rather than programs or the machine.
    fn needs_servers(&self) -> bool {
        true
    }

    /// Measures every server of the run, in turn within each repetition.
    ///
    /// A server that fails is left out of the rest (see [`Run::each`]); only what makes the whole run senseless (a full
    /// disk, results that cannot be written) is an error.
    fn run(&self, run: &mut Run) -> Result<()>;
}

/// All suites, in the order they are run.
pub fn all() -> Vec<Box<dyn Suite>> {
    vec![
        Box::new(lisa2003::Lisa2003),
        Box::new(populate2006::Populate2006),
        Box::new(folder2007::Folder2007::default()),
        Box::new(mbox2004::Mbox2004::default()),
        Box::new(scan2002::Scan2002),
        Box::new(deliver::Deliver),
        Box::new(pop3::Pop3),
        Box::new(backup::Backup),
        Box::new(mixed::Mixed),
    ]
}
