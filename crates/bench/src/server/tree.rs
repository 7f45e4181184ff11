//! The processes of a server: all of them, whoever started them, and none of them left.
//!
//! Mail servers consist of a master, login and session processes of several users, some of which leave their process group, give up their
//! parent or survive it. So a server is started in a process-id namespace of its own (pid_namespaces(7)): whatever it starts is a member,
//! and when the namespace's first process ends, the kernel kills all the others. That first process is a shell that waits for the end of
//! its standard input, a pipe whose other end is ours: even when this program is killed, nothing is left. The shell also has a mount
//! namespace of its own (mount_namespaces(7)), where an unpacked package can stand at the paths that are compiled into it.
//!
//! Both need root's rights or a kernel that lets users make namespaces (user_namespaces(7)).
//!
//! Invariants: a [`Tree`] that is dropped has no process left; the first process is never counted as one of the server's.

use crate::error::{Doing, Error, Result};
use crate::interrupt;
use rustix::process::{Pid, Signal};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that was told to end has this long; then it is killed.
const STOP_MAX: Duration = Duration::from_secs(20);
/// For steps that take no time unless the machine is in trouble.
const STEP_MAX: Duration = Duration::from_secs(10);
/// How often a starting or stopping server is looked at.
const POLL: Duration = Duration::from_millis(2);

/// What the first process writes once the programs were started.
const READY: &str = "ready";
/// What is missing when it cannot be run.
const UNSHARE: &str = "unshare, of the Debian package util-linux";

/// What to start, and what it is to see.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Changes to the file system that only this server sees, in this order.
    pub mounts: Vec<Mount>,
    /// Programs with their arguments, started together; each stays in the foreground.
    pub programs: Vec<Vec<OsString>>,
    /// Added to the environment.
    pub environment: Vec<(String, OsString)>,
}

/// A change to the file system.
#[derive(Clone, Debug)]
pub enum Mount {
    /// Shows a file or folder at another, existing path (mount(8), `--bind`).
    Bind {
        /// What is shown.
        from: PathBuf,
        /// Where.
        at: PathBuf,
    },
    /// Lays a folder over an existing one: what either has is there, and nothing can be written.
    Overlay {
        /// What lies on top.
        from: PathBuf,
        /// Over what.
        over: PathBuf,
    },
}

/// A running server.
pub struct Tree {
    /// The process outside that waits for the namespace's end, unshare(1); its standard input is the pipe.
    holder: Child,
    /// The first process inside, by its id outside.
    init: Pid,
    /// What `/proc/PID/ns/pid` names for all members.
    namespace: PathBuf,
}

impl Tree {
    /// Starts it; what it writes goes to the end of the log. The programs run then, or have ended again.
    pub fn start(launch: &Launch, log: &Path) -> Result<Tree> {
        let errors = File::options().create(true).append(true).open(log).doing(log.display())?;
        let mut holder = inside();
        holder.args(["sh", "-c", &script(launch, log)?]).envs(launch.environment.iter().cloned());
        // Ctrl-C goes to the group of the terminal: this program alone decides when servers end.
        holder.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).process_group(0);
        let mut holder = holder.spawn().doing(UNSHARE)?;
        let mut ready = String::new();
        if let Some(stdout) = holder.stdout.take() {
            // An empty line says the same as an error: it has ended.
            let _ = BufReader::new(stdout).read_line(&mut ready);
        }
        match members(&holder) {
            Ok((init, namespace)) if ready.trim() == READY => {
                interrupt::kill_on_interrupt(init);
                Ok(Tree { holder, init, namespace })
            }
            _ => {
                let _ = holder.kill();
                let _ = holder.wait();
                permitted()?;
                Err(Error::new(format!("cannot be started: {}", last_lines(log))))
            }
        }
    }

    /// Ids of all processes of the server, in no order.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").doing("/proc")? {
            let entry = entry.doing("/proc")?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            // A process may end while one looks.
            let Ok(namespace) = std::fs::read_link(entry.path().join("ns/pid")) else { continue };
            if namespace == self.namespace && pid != self.init.as_raw_nonzero().get().unsigned_abs() && !ended(pid) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    /// Whether any of its processes is left.
    pub fn runs(&self) -> Result<bool> {
        Ok(!self.processes()?.is_empty())
    }

    /// Asks the server to end as a system would (SIGTERM to what was started), waits until all its processes are gone, and kills those
    /// that are not after 20 seconds; whether that was needed.
    pub fn stop(mut self) -> Result<bool> {
        let began = Instant::now();
        let mut asked = Vec::new();
        while self.runs()? && began.elapsed() < STOP_MAX {
            for pid in self.processes()? {
                // What outlives its parent becomes a child of the first process and is asked in turn.
                if parent(pid) == Some(self.init) && !asked.contains(&pid) {
                    asked.push(pid);
                    send(pid, Signal::TERM);
                }
            }
            std::thread::sleep(POLL);
        }
        let killed = self.runs()?;
        self.end()?;
        Ok(killed)
    }

    /// Ends the namespace, and with it all that is in it.
    fn end(&mut self) -> Result<()> {
        interrupt::is_gone(self.init);
        drop(self.holder.stdin.take());
        let _ = rustix::process::kill_process(self.init, Signal::KILL);
        let began = Instant::now();
        while self.holder.try_wait().doing("waiting for a server's end")?.is_none() {
            if began.elapsed() > STEP_MAX {
                let _ = self.holder.kill();
                return Err(Error::new("processes of the server cannot be killed"));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // There is nobody to tell; what cannot be killed waits for its disk.
        let _ = self.end();
    }
}

/// A command that runs another one in namespaces of its own.
fn inside() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount"]);
    if !rustix::process::geteuid().is_root() {
        // The same user inside, with the right to mount.
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    command.arg("--");
    command
}

/// Runs one program to its end with the same view of the file system.
pub fn run(mounts: &[Mount], program: &[OsString], input: &[u8]) -> Result<()> {
    let mut script = b"set -e\n".to_vec();
    mount(&mut script, mounts);
    let words: Vec<_> = program.iter().map(OsString::as_os_str).collect();
    line(&mut script, &["exec"], &words);
    let script = String::from_utf8(script).doing("a path that is no UTF-8")?;
    let shown = program.first().map_or_else(String::new, |program| program.to_string_lossy().into_owned());
    let mut command = inside();
    command.args(["sh", "-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().doing(UNSHARE)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input).doing(&shown)?;
    }
    let output = child.wait_with_output().doing(&shown)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(Error::new(format!("{shown}: {}: {}", output.status, said.trim())))
}

/// Whether servers can be started here; else why not.
pub fn permitted() -> Result<()> {
    let mut probe = inside();
    let output = probe.arg("true").output().doing(UNSHARE)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(format!(
        "servers are started in process-id and mount namespaces, which this system does not permit ({}); root's rights are needed",
        said.trim()
    )))
}

/// The first process of the namespace that unshare(1) made, and the namespace's name.
fn members(holder: &Child) -> Result<(Pid, PathBuf)> {
    let link = PathBuf::from(format!("/proc/{}/ns/pid_for_children", holder.id()));
    let namespace = std::fs::read_link(&link).doing(link.display())?;
    let init = child(holder.id()).ok_or_else(|| Error::new("unshare has no child"))?;
    Ok((init, namespace))
}

/// The only child of a process.
fn child(of: u32) -> Option<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).ok()?;
    Pid::from_raw(text.split_ascii_whitespace().next()?.parse().ok()?)
}

fn parent(of: u32) -> Option<Pid> {
    Pid::from_raw(status(of, "PPid:")?.parse().ok()?)
}

/// Whether a process has ended and only waits to be waited for (proc(5), `State`).
fn ended(pid: u32) -> bool {
    status(pid, "State:").is_none_or(|state| state.starts_with(['Z', 'X']))
}

fn status(pid: u32, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_string())
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The end of a log, for an error.
pub fn last_lines(log: &Path) -> String {
    const LINES: usize = 6;
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    if last.is_empty() { "it wrote nothing".into() } else { last.join("\n") }
}

/// What the first process does: mounts, programs, and then waiting for the end of the pipe.
fn script(launch: &Launch, log: &Path) -> Result<String> {
    let mut script = b"set -e\n".to_vec();
    mount(&mut script, &launch.mounts);
    for program in &launch.programs {
        let words: Vec<_> = program.iter().map(OsString::as_os_str).collect();
        line(&mut script, &[], &words);
        script.extend_from_slice(b"</dev/null >>");
        line(&mut script, &[], &[log.as_os_str()]);
        script.extend_from_slice(b"2>&1 &\n");
    }
    script.extend_from_slice(format!("echo {READY}\nread -r _ || true\n").as_bytes());
    String::from_utf8(script).doing("a path that is no UTF-8")
}

fn mount(script: &mut Vec<u8>, mounts: &[Mount]) {
    for mount in mounts {
        match mount {
            Mount::Bind { from, at } => line(script, &["mount", "--bind"], &[from.as_os_str(), at.as_os_str()]),
            Mount::Overlay { from, over } => {
                let lower = ["lowerdir=".as_ref(), from.as_os_str(), ":".as_ref(), over.as_os_str()];
                let lower: OsString = lower.iter().copied().collect();
                line(script, &["mount", "-t", "overlay", "overlay", "-o"], &[&lower, over.as_os_str()]);
            }
        }
        script.push(b'\n');
    }
}

/// One command, every word quoted (POSIX.1 XCU 2.2.2).
fn line(script: &mut Vec<u8>, first: &[&str], words: &[&std::ffi::OsStr]) {
    for word in first.iter().map(std::ffi::OsStr::new).chain(words.iter().copied()) {
        script.push(b'\'');
        for byte in word.as_encoded_bytes() {
            match byte {
                b'\'' => script.extend_from_slice(b"'\\''"),
                byte => script.push(*byte),
            }
        }
        script.extend_from_slice(b"' ");
    }
}

/// Writes a file of a server's configuration.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = File::create(path).doing(path.display())?;
    file.write_all(text.as_bytes()).doing(path.display())
}

#[cfg(test)]
mod tests {
    use super::{Launch, Mount, Tree, permitted, script};
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn shell(text: &str) -> Launch {
        Launch { programs: vec![vec!["sh".into(), "-c".into(), text.into()]], ..Launch::default() }
    }

    fn alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}/ns")).exists()
    }

    #[test]
    fn words_are_quoted() {
        let mut launch = shell("it's");
        launch.mounts = vec![Mount::Bind { from: "/a b".into(), at: "/c".into() }];
        let script = script(&launch, Path::new("/log")).expect("UTF-8");
        assert!(script.contains("'mount' '--bind' '/a b' '/c' \n"), "{script}");
        assert!(script.contains(r"'sh' '-c' 'it'\''s' </dev/null >>'/log' 2>&1 &"), "{script}");
    }

    #[test]
    fn nothing_is_left_of_processes_that_will_not_end() {
        if let Err(error) = permitted() {
            println!("left out: {error}");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        // A child in a session of its own whose parent is gone, and that ignores SIGTERM.
        let text = "trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 1000' &) ; sleep 1000";
        let tree = Tree::start(&shell(text), &log).expect("started");
        let began = Instant::now();
        while tree.processes().expect("read").len() < 4 && began.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        let pids = tree.processes().expect("read");
        assert_eq!(pids.len(), 4, "two shells, two sleeps");
        drop(tree);
        let began = Instant::now();
        while pids.iter().any(|pid| alive(*pid)) {
            assert!(began.elapsed() < Duration::from_secs(10), "some are left");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_ends_when_asked_is_not_killed() {
        if let Err(error) = permitted() {
            println!("left out: {error}");
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let tree = Tree::start(&shell("sleep 1000 & sleep 1000"), &folder.path().join("log")).expect("started");
        assert!(!tree.stop().expect("stopped"));
    }
}
