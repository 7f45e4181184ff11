//! Where a peer's programs are: installed in the system, or unpacked in a folder of their own.
//!
//! Debian's IMAP servers conflict with each other, so at most one can be installed. The others are unpacked, each with what it depends on
//! and the system does not have, and laid over the system's folders for the server alone (see [`crate::server::tree::Mount`]): every
//! program then finds its files at the paths that were compiled into it.

use crate::error::{Doing, Error, Result};
use crate::server::tree::Mount;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a product comes as.
#[derive(Debug)]
pub struct Package {
    /// Its name in `--unpack` and of the folder that it is unpacked to.
    pub name: &'static str,
    /// The Debian packages that have to be named; the first one's version is the product's.
    pub debian: &'static [&'static str],
    /// A program that is there when the product is: an absolute path, or a name on the PATH for what Debian does not package.
    pub program: &'static str,
}

/// A product that can be started.
#[derive(Clone, Debug)]
pub struct Installed {
    /// The unpacked tree; `None` when the system has it.
    pub tree: Option<PathBuf>,
    /// Package and version.
    pub version: String,
    /// [`Package::program`], as the server sees it.
    pub program: PathBuf,
}

/// In the text of UW-IMAP's programs: other products have an `imapd` as well.
const UW: &[u8] = b"University of Washington";

/// In an unpacked tree: one line a package, its name and version.
pub const VERSIONS: &str = "VERSIONS";

/// The folders of a package that are laid over the system's.
const LAID_OVER: [&str; 2] = ["usr", "etc"];

impl Package {
    /// Looks in the system, then among the unpacked ones.
    pub fn find(&self, unpacked: &Path) -> Result<Installed> {
        let program = PathBuf::from(self.program);
        if program.is_relative() {
            return self.on_path();
        }
        if Path::new(self.program).is_file() {
            return Ok(Installed { tree: None, version: self.version_of_system(), program });
        }
        let tree = unpacked.join(self.name);
        let relative = self.program.trim_start_matches('/');
        let (true, Some(version)) = (tree.join(relative).is_file(), self.version_of_tree(&tree)) else {
            return Err(Error::new(format!("not installed: {}", self.install())));
        };
        let tree = tree.canonicalize().doing(tree.display())?;
        Ok(Installed { tree: Some(tree), version, program })
    }

    fn on_path(&self) -> Result<Installed> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path)
            .map(|folder| folder.join(self.program))
            .find(|program| std::fs::read(program).is_ok_and(|bytes| memchr::memmem::find(&bytes, UW).is_some()));
        let program = found.ok_or_else(|| Error::new(format!("not installed: {}", self.install())))?;
        Ok(Installed { tree: None, version: format!("{} {}", self.name, program.display()), program })
    }

    /// How one gets it.
    pub fn install(&self) -> String {
        if self.debian.is_empty() {
            return format!(
                "Debian has no package of {}; its program {} has to be on the PATH",
                self.name, self.program
            );
        }
        format!("apt-get install {}, or mailyard bench peers --unpack {}", self.debian.join(" "), self.name)
    }

    fn version_of_system(&self) -> String {
        let Some(package) = self.debian.first() else { return String::new() };
        let output = Command::new("dpkg-query").args(["-W", "-f", "${Package} ${Version}", package]).output();
        match output {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            _ => format!("{} (not installed as a package)", self.program),
        }
    }

    fn version_of_tree(&self, tree: &Path) -> Option<String> {
        let first = self.debian.first()?;
        let text = std::fs::read_to_string(tree.join(VERSIONS)).ok()?;
        text.lines().find(|line| line.split(' ').next() == Some(*first)).map(str::to_string)
    }
}

impl Installed {
    /// What a server needs to see its own programs.
    pub fn mounts(&self) -> Vec<Mount> {
        let Some(tree) = &self.tree else { return Vec::new() };
        let folders = LAID_OVER.iter().filter(|folder| tree.join(folder).is_dir());
        folders.map(|folder| Mount::Overlay { from: tree.join(folder), over: Path::new("/").join(folder) }).collect()
    }
}
