//! Programs that the demo of a cluster starts and ends again, and the ports that they get.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use model::{Error, ErrorKind, Result};
use platform::Env;
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a server may take to begin, on a machine that does much else.
pub const BEGIN: Duration = Duration::from_secs(120);
/// The wait between two looks whether it has.
const LOOK: Duration = Duration::from_millis(20);
/// The lowest port that is given away.
const PORT_MIN: u16 = 20_000;
/// The lowest port that the system takes for connections, unless it says another.
const EPHEMERAL: u16 = 32_768;
/// Where servers are, to which only root's PATH leads.
const MORE_PATHS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A program that was started, in a process group of its own. It is ended when this is dropped.
pub struct Process {
    child: Child,
    ending: Signal,
}

impl Process {
    /// Starts it; what it says goes into `log`. It will be ended with SIGTERM.
    pub fn start(command: &mut Command, log: &Path) -> Result<Process> {
        let out = File::options().create(true).append(true).open(log)?;
        let program = command.get_program().to_owned();
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let child = command.spawn().map_err(|error| Error::from(error).context(Path::new(&program).display()))?;
        Ok(Process { child, ending: Signal::TERM })
    }

    /// It will be ended with SIGKILL: nothing that it has is wanted any more, and it would take its time.
    pub fn ended_at_once(mut self) -> Process {
        self.ending = Signal::KILL;
        self
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, self.ending);
        }
        let _ = self.child.wait();
    }
}

/// Waits until a port answers. [`ErrorKind::Io`]: it does not begin; with the end of what it said.
pub fn wait_for(port: u16, what: &str, log: &Path) -> Result<()> {
    let clock = Env::real().clock;
    let begun = clock.monotonic();
    while TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_err() {
        if clock.monotonic().saturating_sub(begun) > BEGIN {
            let said = fs::read_to_string(log).unwrap_or_default();
            return Err(Error::new(ErrorKind::Io, format!("{what} does not begin: {said}")));
        }
        clock.sleep(LOOK);
    }
    Ok(())
}

/// A port that is free just now, and that no connection can take meanwhile; a different one each time.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(EPHEMERAL);
    let count = u64::from(first.saturating_sub(PORT_MIN)).max(1);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..count {
        let port = PORT_MIN + (Env::real().random.u64() % count) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() && given.insert(port) {
            return Ok(port);
        }
    }
    Err(Error::new(ErrorKind::Io, "no port is free"))
}

/// Where a program is.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(MORE_PATHS.map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
