//! Rules for Rust files: a header that says what the file is for, a length that one can still read, no `unsafe` outside `platform`.

use super::Text;
use std::path::Path;

/// STYLE: files of 100-400 lines; think at 800.
const LINES_MAX: usize = 800;

/// Every rule on every file.
pub fn check(files: &[Text]) -> Vec<String> {
    files.iter().flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut complaints = Vec::new();
    if !has_header(text) {
        complaints.push(format!("{shown}:1: begins without a `//!` header that says what the file is for"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        complaints.push(format!("{shown}: {lines} lines; the limit is {LINES_MAX}, split it"));
    }
    if !path.starts_with("crates/platform") {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| has_unsafe(line)) {
            complaints.push(format!("{shown}:{}: `unsafe` outside platform: {}", number + 1, line.trim()));
        }
    }
    complaints
}

/// The first line that is neither empty nor an inner attribute is an inner doc comment.
fn has_header(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!["));
    first.is_some_and(|line| line.starts_with("//!"))
}

/// Whether a line of code opens something unsafe, or allows it. The words are put together here so that this file passes its own rule.
fn has_unsafe(line: &str) -> bool {
    let code = line.trim_start();
    if code.starts_with("//") {
        return false;
    }
    let word = concat!("un", "safe");
    let openers = ["{", "fn", "impl", "extern", "trait"].map(|after| format!("{word} {after}"));
    openers.iter().any(|opener| code.contains(opener)) || code.contains(&format!("allow({word}_code)"))
}

#[cfg(test)]
mod tests {
    use super::{check_file, has_unsafe};
    use std::path::Path;

    #[test]
    fn complains() {
        let good = Path::new("crates/index/src/log.rs");
        assert!(check_file(good, "//! The log.\nfn f() {}\n").is_empty());
        assert!(check_file(good, "#![no_main]\n//! A target.\n").is_empty());
        assert_eq!(check_file(good, "fn f() {}\n").len(), 1);
        assert_eq!(check_file(good, &format!("//! Long.\n{}", "\n".repeat(800))).len(), 1);
        let block = concat!("//! x\nfn f() { un", "safe { g() } }\n");
        assert_eq!(check_file(good, block).len(), 1);
        assert!(check_file(Path::new("crates/platform/src/real.rs"), block).is_empty());
    }

    #[test]
    fn comments_are_free() {
        assert!(!has_unsafe(concat!("// un", "safe { } is for platform")));
        assert!(!has_unsafe(concat!("let un", "safely = 1;")));
    }
}
