//! The checkout that the tasks work on: where it is, which files are in it, which programs the machine has.

use crate::step::Result;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that hold nothing of ours: build output, fetched mail, the version control's own files.
const FOREIGN: [&str; 5] = ["target", "mail", ".git", "node_modules", "__pycache__"];

/// The checkout.
pub struct Tree {
    /// Its top folder.
    pub root: PathBuf,
}

impl Tree {
    /// Finds the checkout: the parent of this package.
    pub fn find() -> Result<Tree> {
        // `cargo run` sets the variable at run time, so a moved checkout is found too.
        let package = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package.parent().ok_or("the checkout has no parent folder")?;
        Ok(Tree { root: root.to_path_buf() })
    }

    /// A path inside the checkout.
    pub fn path(&self, inside: &str) -> PathBuf {
        self.root.join(inside)
    }

    /// Where cargo builds; `CARGO_TARGET_DIR` is honoured.
    pub fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), |dir| self.root.join(dir))
    }

    /// A cargo command in the checkout, with the cargo that runs us.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// Every file of ours whose name ends in `.extension`, sorted, as paths relative to the root.
    pub fn files(&self, extension: &str) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let listing = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            for entry in listing {
                let entry = entry.map_err(|e| format!("{}: {e}", folder.display()))?;
                let kind = entry.file_type().map_err(|e| format!("{}: {e}", folder.display()))?;
                let path = entry.path();
                if kind.is_dir() {
                    if !FOREIGN.iter().any(|name| entry.file_name() == *name) {
                        folders.push(path);
                    }
                } else if path.extension().is_some_and(|found| found == extension) {
                    found.push(path.strip_prefix(&self.root).unwrap_or(&path).to_path_buf());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// `cargo metadata`, parsed; with `no_deps` only the workspace's own packages.
    pub fn metadata(&self, no_deps: bool) -> Result<Value> {
        let mut command = self.cargo();
        command.args(["metadata", "--format-version", "1", "--locked"]);
        if no_deps {
            command.arg("--no-deps");
        }
        let output = command.output().map_err(|e| format!("cargo metadata: {e}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr)));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
    }
}

/// The program's path if it is installed.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Whether a command runs and exits with 0; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Whether we run as root.
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Reads a text file of the checkout.
pub fn read(root: &Path, file: &Path) -> Result<String> {
    let path = root.join(file);
    let bytes = std::fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
