//! Rules for Markdown: a link into the repository leads somewhere.

use super::Text;
use std::path::Path;

/// Complaints about links to files that are not there.
pub fn check(root: &Path, files: &[Text]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in files {
        let folder = root.join(path).parent().map(Path::to_path_buf).unwrap_or_default();
        for (line, target) in links(text) {
            // A link that begins with a slash is meant from the top of the repository.
            let file = target.strip_prefix('/').map_or_else(|| folder.join(target), |inside| root.join(inside));
            if !file.exists() {
                complaints.push(format!("{}:{line}: link to {target}, which is not there", path.display()));
            }
        }
    }
    complaints
}

/// The local targets of `[text](target)`, with their line numbers; fragments are cut off, code blocks left out.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for piece in line.split("](").skip(1) {
            let Some((target, _)) = piece.split_once(')') else {
                continue;
            };
            let target = target.split(['#', ' ']).next().unwrap_or_default();
            if !target.is_empty() && !target.contains(':') {
                found.push((number + 1, target));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn finds_local_links() {
        let text =
            "See [a](docs/a.md#part) and [b](https://example.org/), [c](#here).\n```\n[d](no.md)\n```\n[e](../e.md)\n";
        assert_eq!(links(text), [(1, "docs/a.md"), (5, "../e.md")]);
    }
}
