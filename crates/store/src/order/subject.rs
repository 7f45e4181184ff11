//! The base subject (RFC 5256 §2.1): a subject without the marks of replies, forwards and mailing lists.
//!
//! The rules are followed to the letter, since clients compute the same. The time is linear in the subject, whatever it holds.

/// A base subject, and what had to be removed to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseSubject {
    /// The text; empty when nothing but marks was there.
    pub(super) text: String,
    /// Whether the subject says that the message is a reply or a forward (RFC 5256 §3, THREAD): a `subj-refwd`, a `(fwd)` or a
    /// `[fwd:` ... `]` was removed.
    pub(super) is_reply_or_forward: bool,
}

/// The base subject of a Subject field's raw value.
pub(super) fn base_subject(value: &[u8]) -> BaseSubject {
    let decoded = mime::decode_unstructured(value);
    // (1) "Convert all tabs and continuations to space. Convert all multiple spaces to a single space."
    let mut text = String::with_capacity(decoded.len());
    for character in decoded.chars() {
        let character = if character == '\t' { ' ' } else { character };
        if character != ' ' || !text.ends_with(' ') {
            text.push(character);
        }
    }
    let mut is_reply_or_forward = false;
    let mut rest = text.as_str();
    loop {
        // (2) trailers, (3) leaders, (4) and (5) blobs.
        rest = without_trailers(rest, &mut is_reply_or_forward);
        rest = without_leaders(rest, &mut is_reply_or_forward);
        rest = without_blobs(rest);
        // (6) "If the resulting text begins with the subj-fwd-hdr ABNF and ends with the subj-fwd-trl ABNF"
        let inside = strip_prefix_ignoring_case(rest, "[fwd:").and_then(|rest| rest.strip_suffix(']'));
        match inside {
            Some(inside) => {
                rest = inside;
                is_reply_or_forward = true;
            }
            None => return BaseSubject { text: rest.to_owned(), is_reply_or_forward },
        }
    }
}

/// RFC 5256 §5 subj-trailer = "(fwd)" / WSP
fn without_trailers<'a>(mut text: &'a str, is_forward: &mut bool) -> &'a str {
    const FORWARD: &str = "(fwd)";
    loop {
        text = text.trim_end_matches(' ');
        let before = text.len().checked_sub(FORWARD.len()).and_then(|at| text.split_at_checked(at));
        match before {
            Some((before, mark)) if mark.eq_ignore_ascii_case(FORWARD) => {
                text = before;
                *is_forward = true;
            }
            _ => return text,
        }
    }
}

/// RFC 5256 §5 subj-leader = (*subj-blob subj-refwd) / WSP
fn without_leaders<'a>(mut text: &'a str, is_reply: &mut bool) -> &'a str {
    loop {
        text = text.trim_start_matches(' ');
        let mut after_blobs = text;
        while let Some(rest) = without_blob(after_blobs) {
            after_blobs = rest;
        }
        match without_refwd(after_blobs) {
            Some(rest) => {
                text = rest;
                *is_reply = true;
            }
            None => return text,
        }
    }
}

/// Steps (4) and (5), on text that has no leader: blobs are removed as long as that leaves something.
///
/// A blob takes the white space behind it along, and no `subj-refwd` follows the blobs here, or all of it would be a leader: so that
/// step (3) finds nothing to do between two blobs, and need not be repeated.
fn without_blobs(mut text: &str) -> &str {
    while let Some(rest) = without_blob(text).filter(|rest| !rest.is_empty()) {
        text = rest;
    }
    text
}

/// RFC 5256 §5 subj-refwd = ("re" / ("fw" ["d"])) *WSP [subj-blob] ":"
fn without_refwd(text: &str) -> Option<&str> {
    let rest = strip_prefix_ignoring_case(text, "re")
        .or_else(|| strip_prefix_ignoring_case(text, "fwd"))
        .or_else(|| strip_prefix_ignoring_case(text, "fw"))?;
    let rest = rest.trim_start_matches(' ');
    without_blob(rest).unwrap_or(rest).strip_prefix(':')
}

/// RFC 5256 §5 subj-blob = "[" *BLOBCHAR "]" *WSP, where BLOBCHAR is anything but NUL and brackets.
fn without_blob(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('[')?;
    let end = inside.find(['[', ']', '\0'])?;
    inside.get(end..)?.strip_prefix(']').map(|rest| rest.trim_start_matches(' '))
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_answers() {
        for (subject, base, is_reply) in [
            ("hello", "hello", false),
            ("  a \t b\r\n  c ", "a b c", false),
            ("Re: hello", "hello", true),
            ("RE :hello", "hello", true),
            ("re[2]: hello", "hello", true),
            ("Re [2] : hello", "hello", true),
            ("fw: hello", "hello", true),
            ("Fwd: hello", "hello", true),
            ("fwdd: hello", "fwdd: hello", false),
            ("Re hello", "Re hello", false),
            ("AW: hello", "AW: hello", false),
            ("[list] hello", "hello", false),
            ("[list] Re: [list] Fwd: hello", "hello", true),
            ("[a][b] hello", "hello", false),
            ("[list]", "[list]", false),
            ("[a] [b]", "[b]", false),
            ("Re: [a] [b]", "[b]", true),
            ("[unclosed hello", "[unclosed hello", false),
            ("[[x]] hello", "[[x]] hello", false),
            ("hello (fwd)", "hello", true),
            ("hello (FWD)  (fwd) ", "hello", true),
            ("hello (fwd) x", "hello (fwd) x", false),
            ("[Fwd: hello]", "hello", true),
            ("[fwd: [fwd: Re: hello (fwd)] (fwd)]", "hello", true),
            ("Re: [Fwd: [list] hello]", "hello", true),
            ("[fwd: hello", "[fwd: hello", false),
            ("[fwd:]", "", true),
            ("Re:", "", true),
            ("Re: Re:Re: ", "", true),
            ("(fwd)", "", true),
            ("", "", false),
            ("   ", "", false),
            ("[\0] x", "[\0] x", false),
            ("=?utf-8?q?Re=3A?= =?utf-8?q?_caf=C3=A9?=", "café", true),
            ("é", "é", false),
        ] {
            let expected = BaseSubject { text: base.to_owned(), is_reply_or_forward: is_reply };
            assert_eq!(base_subject(subject.as_bytes()), expected, "{subject:?}");
        }
    }

    /// The six steps as they are written in RFC 5256 §2.1, one removal at a time.
    fn naively(subject: &str) -> BaseSubject {
        let mut text: String = subject.replace('\t', " ");
        while text.contains("  ") {
            text = text.replace("  ", " ");
        }
        let mut reply = false;
        'two: loop {
            loop {
                if text.ends_with(' ') {
                    text.pop();
                } else if text.to_ascii_lowercase().ends_with("(fwd)") {
                    text.truncate(text.len() - 5);
                    reply = true;
                } else {
                    break;
                }
            }
            loop {
                if let Some(rest) = text.strip_prefix(' ') {
                    text = rest.to_owned();
                    continue;
                }
                let mut rest: &str = &text;
                while let Some(after) = without_blob(rest) {
                    rest = after;
                }
                if let Some(after) = without_refwd(rest) {
                    text = after.to_owned();
                    reply = true;
                    continue;
                }
                match without_blob(&text) {
                    Some(after) if !after.is_empty() => text = after.to_owned(),
                    _ => break,
                }
            }
            if text.to_ascii_lowercase().starts_with("[fwd:") && text.ends_with(']') {
                text = text[5..text.len() - 1].to_owned();
                reply = true;
                continue 'two;
            }
            return BaseSubject { text, is_reply_or_forward: reply };
        }
    }

    proptest! {
        #[test]
        fn as_the_steps_are_written(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "re", "Re:", "fw", "fwd", "d", ":", " ", "\t", "[", "]", "[x]", "[fwd:", "(fwd)", "(", "word", "é", "[fwd: ", "\0",
                ]),
                0..12,
            ),
        ) {
            let subject = pieces.concat();
            prop_assert_eq!(base_subject(subject.as_bytes()), naively(&subject));
        }
    }

    #[test]
    fn long_subjects_of_marks_take_linear_time() {
        let n = 100_000;
        for subject in [
            "[a]".repeat(n),
            "[a".repeat(n),
            "Re:".repeat(n),
            "re[".repeat(n),
            "(fwd)".repeat(n),
            "[fwd:".repeat(n),
            format!("{}{}", "[fwd:".repeat(n), "]".repeat(n)),
            format!("{}x", "[fwd: [a]".repeat(n)),
        ] {
            base_subject(subject.as_bytes());
        }
    }
}
