//! Unpacks Debian packages that conflict with an installed one: nothing of the system changes.
//!
//! apt says what is missing for a package and fetches it, checked against its lists; dpkg-deb takes it apart. Scripts of the packages are
//! not run: what they would do (users, folders, certificates) each peer's configuration does for itself.

use super::package::{Package, VERSIONS};
use crate::error::{Doing, Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that became part of `usr` in Debian 12; packages still name them.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// Fetches a package with all that the system lacks and unpacks it into a folder of its name; replaces an earlier one. Gives the folder.
pub fn unpack(package: &Package, into: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(into).doing(into.display())?;
    let folder = tempfile::Builder::new().prefix(package.name).tempdir_in(into).doing(into.display())?;
    let (debs, tree) = (folder.path().join("debs"), folder.path().join("tree"));
    std::fs::create_dir(&debs).doing(debs.display())?;
    for name in MERGED {
        let real = tree.join("usr").join(name);
        std::fs::create_dir_all(&real).doing(real.display())?;
        let link = tree.join(name);
        std::os::unix::fs::symlink(Path::new("usr").join(name), &link).doing(link.display())?;
    }
    let mut download = Command::new("apt-get");
    download.arg("download").args(missing(package)?).current_dir(&debs);
    said(download)?;
    let mut versions = String::new();
    for entry in std::fs::read_dir(&debs).doing(debs.display())? {
        let deb = entry.doing(debs.display())?.path();
        let mut show = Command::new("dpkg-deb");
        show.args(["--show", "--showformat", "${Package} ${Version}\n"]).arg(&deb);
        versions.push_str(&said(show)?);
        // `dpkg-deb --extract` would put a folder in place of a link.
        let mut extract = Command::new("sh");
        extract
            .args(["-c", "dpkg-deb --fsys-tarfile \"$0\" | tar --extract --keep-directory-symlink --directory \"$1\""]);
        extract.arg(&deb).arg(&tree);
        said(extract)?;
    }
    let note = tree.join(VERSIONS);
    std::fs::write(&note, versions).doing(note.display())?;
    if !tree.join(package.program.trim_start_matches('/')).is_file() {
        return Err(Error::new(format!("{} is not in the packages of {}", package.program, package.name)));
    }
    let target = into.join(package.name);
    match std::fs::remove_dir_all(&target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).doing(target.display()),
        _ => {}
    }
    std::fs::rename(&tree, &target).doing(target.display())?;
    Ok(target)
}

/// The packages that would be installed.
fn missing(package: &Package) -> Result<Vec<String>> {
    let mut simulate = Command::new("apt-get");
    simulate.args(["install", "--print-uris", "--yes", "--no-install-recommends", "-o", "Debug::NoLocking=true"]);
    simulate.args(package.debian);
    let text = said(simulate)?;
    let names = names(&text);
    if names.is_empty() {
        return Err(Error::new(format!("{} is installed already", package.debian.join(" "))));
    }
    Ok(names)
}

/// apt-get(8), `--print-uris`: each line is `'URI' FILE SIZE HASH`, the file's name `PACKAGE_VERSION_ARCHITECTURE.deb`.
fn names(uris: &str) -> Vec<String> {
    let files = uris.lines().filter(|line| line.starts_with('\'')).filter_map(|line| line.split(' ').nth(1));
    files.filter(|file| file.ends_with(".deb")).filter_map(|file| Some(file.split_once('_')?.0.to_string())).collect()
}

/// Runs a command to its end and gives what it wrote.
fn said(mut command: Command) -> Result<String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").output().doing(&shown)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::new(format!("{shown}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_of_what_is_missing() {
        let text = "Reading package lists...\nThe following NEW packages will be installed:\n  a b\n\
            'http://deb.debian.org/debian/pool/main/c/courier/courier-imap_5.0.13%2b1-3_amd64.deb' \
            courier-imap_5.0.13+1-3_amd64.deb 228712 SHA256:00\n\
            'http://deb.debian.org/debian/pool/main/libi/libical3/libical3_3.0.16-1_amd64.deb' \
            libical3_3.0.16-1_amd64.deb 1 \n";
        assert_eq!(names(text), ["courier-imap", "libical3"]);
        assert!(names("0 upgraded, 0 newly installed\n").is_empty());
    }
}
