//! The account's storage goes through tar.

use super::NAME;
use crate::cold;
use crate::error::{Doing, Error, Result};
use crate::limits;
use crate::results::{Better, Key, LIMIT, State, Unit, Verdict};
use crate::run::{Contestant, Run, Tools};
use crate::wire::Address;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TEST: &str = "backup";

/// Records of 256 KiB, so that tar writes as much at once as the other side reads.
const BLOCKS: &str = "512";

/// Packs the account's storage while the server does not run.
pub fn measure(contestant: &mut Contestant, account: &Address, tools: &mut Tools, round: usize) -> Result<()> {
    let name = contestant.info.name.clone();
    let key = |measure| Key::new(NAME, TEST, &name, measure).size(&tools.corpus.name).state(State::Cold);
    let (time, bytes) = (key("time"), key("bytes"));
    let Some(local) = contestant.server.local() else {
        return tools.unsupported(time, round, "only the files of a server of our own can be packed");
    };
    local.stop()?;
    let storage: Vec<PathBuf> = local.storage(account).into_iter().filter(|path| path.exists()).collect();
    cold::drop_from_cache(&storage)?;
    let packed = through_pipe(&mut tar(&storage)?);
    local.start()?;
    let (packed, took) = packed?;
    tools.recorder.time(time, round, took)?;
    tools.recorder.sample(bytes, round, packed as f64, Unit::Bytes, Better::Lower, Verdict::Right)
}

/// The mbox file through the same pipe.
pub fn limit(run: &mut Run, round: usize) -> Result<()> {
    cold::drop_from_cache(std::slice::from_ref(&run.corpus.path))?;
    let (_, took) = through_pipe(Command::new("cat").arg(&run.corpus.path))?;
    let key = Key::new(NAME, TEST, LIMIT, "time").size(&run.corpus.name).state(State::Cold);
    run.recorder.time(key, round, took)
}

fn tar(storage: &[PathBuf]) -> Result<Command> {
    if storage.is_empty() {
        return Err(Error::new("the server has no storage to pack"));
    }
    let mut tar = Command::new("tar");
    tar.args(["-b", BLOCKS, "-cf", "-"]);
    for path in storage {
        // From the parent folder: tar warns of names that begin at the root.
        let (parent, name) = (path.parent().unwrap_or(Path::new("/")), path.file_name().unwrap_or(".".as_ref()));
        tar.arg("-C").arg(parent).arg(name);
    }
    Ok(tar)
}

/// Runs a command and reads all that it writes; the time ends with the process.
fn through_pipe(command: &mut Command) -> Result<(u64, Duration)> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().doing(&shown)?;
    let drained = child.stdout.take().map(limits::drain);
    let status = child.wait().doing(&shown)?;
    let took = began.elapsed();
    let (bytes, _) = drained.ok_or_else(|| Error::new("no pipe"))??;
    if !status.success() {
        return Err(Error::new(format!("{shown}: {status}")));
    }
    Ok((bytes, took))
}

#[cfg(test)]
mod tests {
    use super::{tar, through_pipe};
    use std::process::Command;

    #[test]
    fn everything_is_packed() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("mail")).expect("made");
        std::fs::write(folder.path().join("mail/1"), vec![7; 300_000]).expect("written");
        std::fs::write(folder.path().join("index"), b"x").expect("written");
        let storage = [folder.path().join("mail"), folder.path().join("index")];
        let (bytes, _) = through_pipe(&mut tar(&storage).expect("a command")).expect("packed");
        assert!(bytes > 300_000 && bytes % (512 * 512) == 0, "{bytes}");
        assert!(tar(&[]).is_err());
        assert!(through_pipe(&mut Command::new("false")).is_err());
        assert!(through_pipe(&mut tar(&[folder.path().join("gone")]).expect("a command")).is_err());
    }
}
