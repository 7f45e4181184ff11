//! The workspace's own tests.

use crate::step::{Outcome, Report, Result};

/// `cargo test --workspace`, with its summary lines kept for the end.
pub fn steps(report: &mut Report) {
    let mut summary = Vec::new();
    report.step("tests", |tree, log| {
        let mut command = tree.cargo();
        command.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
        let result: Result<String> = log.run(&command, 40);
        let output = result?;
        summary = results(&output);
        let passed: u64 = summary.iter().filter_map(|line| counted(line, "passed")).sum();
        let ignored: u64 = summary.iter().filter_map(|line| counted(line, "ignored")).sum();
        if passed == 0 {
            return Err("cargo test ran no test at all".to_string());
        }
        if ignored > 0 {
            return Err(format!("{ignored} tests are ignored; an ignored test is not a test"));
        }
        Ok(Outcome::PassedWith(format!("{passed} passed")))
    });
    report.last_words(summary);
}

/// Cargo's own result lines, of the test programs that had tests.
fn results(output: &str) -> Vec<String> {
    output
        .lines()
        .filter(|line| line.starts_with("test result:") && counted(line, "passed") != Some(0))
        .map(str::to_string)
        .collect()
}

/// The number before a word in `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
fn counted(line: &str, word: &str) -> Option<u64> {
    let before = line.split(word).next().filter(|before| before.len() < line.len())?;
    before.trim_end().rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{counted, results};

    #[test]
    fn reads_cargo_summary() {
        let line = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        assert_eq!(counted(line, "passed"), Some(12));
        assert_eq!(counted(line, "ignored"), Some(3));
        assert_eq!(counted("nothing here", "passed"), None);
        assert_eq!(results(&format!("running 12 tests\n{line}\n")), [line]);
    }
}
