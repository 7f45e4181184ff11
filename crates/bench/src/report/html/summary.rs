//! What somebody reads who reads nothing else.

use super::legend;
use super::text::escaped;
use crate::report::findings::{Findings, Standing};
use crate::report::shown::digits;

/// A sentence for each suite, and a table of everybody's standing.
pub fn section(findings: &Findings) -> String {
    let mut text = String::from("<section id=\"summary\"><h2>Summary</h2>\n");
    let suites = findings.suites();
    for suite in &suites {
        if let Some(sentence) = sentence(suite, &findings.standings(suite), findings.deciding(suite).count()) {
            text.push_str(&format!("<p>{sentence}</p>\n"));
        }
    }
    text.push_str(
        "<p class=\"quiet\">Each figure: how many times as long as the fastest server, over all tests of the suite that it answered rightly \
         (geometric mean of the medians; 1 is the fastest everywhere). In brackets: in how many tests it was the fastest. A wrong or missing \
         answer counts for nobody, and is listed.</p>\n<div class=\"wide\"><table>\n<tr><th>Server</th>",
    );
    for suite in &suites {
        text.push_str(&format!("<th><a href=\"#{0}\">{0}</a></th>", escaped(suite)));
    }
    text.push_str("</tr>\n");
    let standings: Vec<Vec<Standing>> = suites.iter().map(|suite| findings.standings(suite)).collect();
    for name in &findings.names {
        text.push_str(&format!("<tr><th>{}{}</th>", legend::mark(&findings.names, name), escaped(name)));
        for standings in &standings {
            let standing = standings.iter().find(|standing| standing.name == *name);
            text.push_str(&format!("<td class=\"number\">{}</td>", standing.map_or("–".to_string(), cell)));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n</section>\n");
    text
}

fn cell(standing: &Standing) -> String {
    let mut text = match standing.times_best {
        Some(ratio) => {
            format!("{} <span class=\"quiet\">({} of {})</span>", digits(ratio), standing.first, standing.tests)
        }
        None => "–".to_string(),
    };
    if standing.wrong > 0 {
        text.push_str(&format!("<br><span class=\"fault\">{} wrong</span>", standing.wrong));
    }
    if standing.failed > 0 {
        text.push_str(&format!("<br><span class=\"fault\">{} failed</span>", standing.failed));
    }
    text
}

/// Who is ahead, by how much, and in how many tests.
fn sentence(suite: &str, standings: &[Standing], tests: usize) -> Option<String> {
    let best = standings.first()?;
    let own = best.times_best?;
    let mut text = format!(
        "<strong>{}</strong>: {} was the fastest in {} of {tests} tests",
        escaped(suite),
        escaped(&best.name),
        best.first
    );
    if let Some((next, ratio)) = standings.get(1).and_then(|next| Some((next, next.times_best? / own)))
        && ratio.is_finite()
    {
        let name = escaped(&next.name);
        text.push_str(&format!("; the next, {name}, took {} times as long on the whole", digits(ratio)));
    }
    text.push('.');
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{Standing, sentence};

    #[test]
    fn who_is_ahead() {
        let standing = |name: &str, first, times_best| Standing {
            name: name.into(),
            tests: 4,
            first,
            wrong: 0,
            failed: 0,
            times_best,
        };
        let standings = [standing("a<b", 3, Some(1.0)), standing("c", 1, Some(2.5))];
        assert_eq!(
            sentence("s", &standings, 4).as_deref(),
            Some(
                "<strong>s</strong>: a&lt;b was the fastest in 3 of 4 tests; the next, c, took 2.50 times as long on the whole."
            )
        );
        assert_eq!(sentence("s", &[standing("a", 0, None)], 4), None);
        assert_eq!(sentence("s", &[], 0), None);
    }
}
