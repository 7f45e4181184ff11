//! Messages of an mbox as IMAP carries them.

use crate::error::{Doing, Result};
use std::io::BufRead;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Calls `take` with each message: CRLF line ends, without its `From ` line. Ends early when `take`
/// gives false.
///
/// For files of our own making: LF line ends, each message followed by an empty line, every other line that begins with `From ` quoted.
pub fn each_message(path: &Path, mut take: impl FnMut(Vec<u8>) -> Result<bool>) -> Result<()> {
    let file = std::fs::File::open(path).doing(path.display())?;
    let mut lines = std::io::BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    let mut message: Option<Vec<u8>> = None;
    loop {
        line.clear();
        let ended = lines.read_until(b'\n', &mut line).doing(path.display())? == 0;
        if ended || line.starts_with(b"From ") {
            if let Some(mut done) = message.replace(Vec::new()) {
                // The empty line before the next `From ` belongs to the file.
                done.truncate(done.len().saturating_sub(2));
                if !take(done)? {
                    return Ok(());
                }
            }
            if ended {
                return Ok(());
            }
            continue;
        }
        let Some(message) = &mut message else { continue };
        message.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(&line));
        message.extend_from_slice(b"\r\n");
    }
}

/// Puts a copy of an mbox file where a server serves it: the file, and folders that are not there yet, belong to whom the nearest folder
/// that is there belongs to.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    let missing: Vec<&Path> = to.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
    let nearest = to.ancestors().nth(missing.len() + 1).unwrap_or(Path::new("."));
    let owner = nearest.metadata().doing(nearest.display())?;
    let give = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).doing(path.display())?;
        std::os::unix::fs::chown(path, Some(owner.uid()), Some(owner.gid())).doing(path.display())
    };
    for folder in missing.into_iter().rev() {
        std::fs::create_dir(folder).doing(folder.display())?;
        give(folder, 0o700)?;
    }
    std::fs::copy(from, to).doing(to.display())?;
    give(to, 0o600)
}

#[cfg(test)]
mod tests {
    use super::{each_message, place};

    #[test]
    fn splits() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mbox");
        std::fs::write(&path, "From a\nA: 1\n\none\n>From here\n\nFrom b\nB: 2\n\n\n").expect("written");
        let mut found = Vec::new();
        let take = |message| {
            found.push(message);
            Ok(true)
        };
        each_message(&path, take).expect("read");
        assert_eq!(found, [b"A: 1\r\n\r\none\r\n>From here\r\n".to_vec(), b"B: 2\r\n\r\n".to_vec()]);
    }

    #[test]
    fn placed_for_the_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("mbox"), folder.path().join("user/mail/bench"));
        std::fs::write(&from, "From a\n\n\n").expect("written");
        place(&from, &to).expect("placed");
        place(&from, &to).expect("placed again");
        assert_eq!(std::fs::read(&to).expect("read"), b"From a\n\n\n");
        let mode =
            |path: &std::path::Path| std::os::unix::fs::MetadataExt::mode(&path.metadata().expect("there")) & 0o777;
        assert_eq!((mode(&to), mode(&folder.path().join("user"))), (0o600, 0o700));
    }
}
