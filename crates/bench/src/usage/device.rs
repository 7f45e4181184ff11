//! What the disk below a folder has been given.

use rustix::fs::{major, minor, stat};
use std::path::Path;

/// Bytes written to the block device that has the folder, by whomever, since the machine started; what is in the page cache is not among them
/// yet. `None` where a folder is on no device of its own (a file system of several disks, or of another machine).
///
/// The kernel's `Documentation/block/stat.rst`: the seventh number is of sectors of 512 bytes.
pub fn written(folder: &Path) -> Option<u64> {
    let device = stat(folder).ok()?.st_dev;
    let text = std::fs::read_to_string(format!("/sys/dev/block/{}:{}/stat", major(device), minor(device))).ok()?;
    sectors_written(&text)?.checked_mul(512)
}

fn sectors_written(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::sectors_written;

    #[test]
    fn the_seventh_number() {
        assert_eq!(sectors_written("   1 2 3 4 5 6 700 8 9 10 11\n"), Some(700));
        assert_eq!(sectors_written("1 2 3"), None);
    }
}
