//! This machine and its processes.

use rustix::io::Errno;
use rustix::process::Pid;

use crate::host::Host;

/// The machine that this runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealHost;

impl Host for RealHost {
    fn name(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn process(&self) -> u32 {
        std::process::id()
    }

    fn is_running(&self, process: u32) -> bool {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
        // EPERM: it runs, and belongs to somebody else.
        !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH))
    }
}
