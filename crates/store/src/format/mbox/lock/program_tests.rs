//! Locks against the programs that others use: what they hold we see, what we hold they see. Programs that are not installed are said and left out.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use model::ErrorKind;
use platform::Env;

use super::{Access, LockPolicy, Locker, Method};

struct Bed {
    _dir: tempfile::TempDir,
    path: PathBuf,
    /// `path` with `.lock`.
    lock: PathBuf,
}

fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let (path, lock) = (dir.path().join("box"), dir.path().join("box.lock"));
    std::fs::write(&path, b"From a Thu Aug 22 12:36:23 2002\n\n").unwrap();
    Bed { _dir: dir, path, lock }
}

fn locker(method: Method) -> Locker {
    let policy = LockPolicy { read: vec![method], write: vec![method], ..LockPolicy::default() };
    Locker::new(Env::real(), policy)
}

fn is_free(method: Method, path: &Path, access: Access) -> bool {
    match locker(method).try_lock(path, access) {
        Ok(lock) => lock.release().is_ok(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
            false
        }
    }
}

/// Runs a program to its end; whether it said yes. None: there is no such program.
fn run(program: &str, arguments: &[&str]) -> Option<bool> {
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if status.is_err() {
        eprintln!("{program} is not installed");
    }
    Some(status.ok()?.success())
}

/// Starts a program that says a line when it has the lock, and gives it up at the end of its input.
fn start(program: &str, arguments: &[&str]) -> Option<Child> {
    let child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    if child.is_err() {
        eprintln!("{program} is not installed");
    }
    let mut child = child.ok()?;
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "locked", "{program}");
    Some(child)
}

fn end(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

const PYTHON: &str = "import fcntl, sys
f = open(sys.argv[1], 'r+')
try:
    fcntl.lockf(f, (fcntl.LOCK_EX if sys.argv[2] == 'exclusive' else fcntl.LOCK_SH) | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit(3)
print('locked', flush=True)
sys.stdin.read()
";

#[test]
fn fcntl_with_python() {
    let bed = bed();
    let path = bed.path.to_str().unwrap();
    let python = |mode| ["-c", PYTHON, path, mode];
    let Some(child) = start("python3", &python("exclusive")) else { return };
    assert!(!is_free(Method::Fcntl, &bed.path, Access::Write));
    assert!(!is_free(Method::Fcntl, &bed.path, Access::Read));
    end(child);
    let child = start("python3", &python("shared")).unwrap();
    assert!(!is_free(Method::Fcntl, &bed.path, Access::Write));
    assert!(is_free(Method::Fcntl, &bed.path, Access::Read));
    end(child);
    assert!(is_free(Method::Fcntl, &bed.path, Access::Write));

    let lock = locker(Method::Fcntl).lock(&bed.path, Access::Write).unwrap();
    // As any reader of the same process may: with the locks of the process this would lose ours.
    drop(std::fs::File::open(&bed.path).unwrap());
    assert_eq!(run("python3", &python("shared")), Some(false));
    lock.release().unwrap();
    let lock = locker(Method::Fcntl).lock(&bed.path, Access::Read).unwrap();
    assert_eq!(run("python3", &python("exclusive")), Some(false));
    end(start("python3", &python("shared")).unwrap());
    lock.release().unwrap();
    end(start("python3", &python("exclusive")).unwrap());
}

#[test]
fn flock_with_util_linux() {
    let bed = bed();
    let path = bed.path.to_str().unwrap();
    let holding = |mode| [mode, "-n", path, "sh", "-c", "echo locked; cat"];
    let Some(child) = start("flock", &holding("-x")) else { return };
    assert!(!is_free(Method::Flock, &bed.path, Access::Write));
    assert!(!is_free(Method::Flock, &bed.path, Access::Read));
    end(child);
    let child = start("flock", &holding("-s")).unwrap();
    assert!(!is_free(Method::Flock, &bed.path, Access::Write));
    assert!(is_free(Method::Flock, &bed.path, Access::Read));
    end(child);
    let lock = locker(Method::Flock).lock(&bed.path, Access::Write).unwrap();
    assert_eq!(run("flock", &["-n", "-s", path, "true"]), Some(false));
    lock.release().unwrap();
    assert_eq!(run("flock", &["-n", path, "true"]), Some(true));
}

/// A program that makes the lock, with these arguments, and what removes it.
fn check_dotlock(bed: &Bed, program: &str, make: &[&str], remove: &dyn Fn()) {
    let lock = locker(Method::Dotlock).lock(&bed.path, Access::Write).unwrap();
    let Some(is_made) = run(program, make) else { return };
    assert!(!is_made, "{program} made a second lock");
    lock.release().unwrap();
    assert_eq!(run(program, make), Some(true), "{program}");
    assert!(bed.lock.exists(), "{program}");
    assert!(!is_free(Method::Dotlock, &bed.path, Access::Write), "{program}");
    remove();
    assert!(is_free(Method::Dotlock, &bed.path, Access::Write), "{program}");
    assert!(!bed.lock.exists());
}

#[test]
fn dotlock_with_procmail() {
    let bed = bed();
    let lock = bed.lock.to_str().unwrap();
    check_dotlock(&bed, "lockfile", &["-r0", lock], &|| std::fs::remove_file(lock).unwrap());
}

#[test]
fn dotlock_with_liblockfile() {
    let bed = bed();
    let lock = bed.lock.to_str().unwrap();
    for with_process in [&["-l", "-r", "0", lock][..], &["-l", "-p", "-r", "0", lock]] {
        check_dotlock(&bed, "dotlockfile", with_process, &|| std::fs::remove_file(lock).unwrap());
    }
}

#[test]
fn dotlock_with_lockfile_progs() {
    let bed = bed();
    let path = bed.path.to_str().unwrap();
    let remove = || assert_eq!(run("lockfile-remove", &[path]), Some(true));
    check_dotlock(&bed, "lockfile-create", &["--retry", "0", path], &remove);
}

/// A lock of a process that is gone is taken at once; one of a process that lives is not, however old it is.
#[test]
fn the_processes_of_this_machine() {
    let bed = bed();
    let env = Env::real();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    std::fs::write(&bed.lock, format!("{}:{}", child.id(), env.host.name())).unwrap();
    let policy = LockPolicy {
        write: vec![Method::Dotlock],
        dotlock_stale_after: std::time::Duration::ZERO,
        ..LockPolicy::default()
    };
    let locker = Locker::new(env, policy);
    assert_eq!(locker.try_lock(&bed.path, Access::Write).err().unwrap().kind(), ErrorKind::InUse);
    child.kill().unwrap();
    child.wait().unwrap();
    locker.try_lock(&bed.path, Access::Write).unwrap().release().unwrap();
    std::fs::write(&bed.lock, "17:elsewhere").unwrap();
    locker.try_lock(&bed.path, Access::Write).unwrap().release().unwrap();
    assert_eq!(std::fs::read_dir(bed.path.parent().unwrap()).unwrap().count(), 1);
}
