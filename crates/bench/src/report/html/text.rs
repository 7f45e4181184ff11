//! Text in a page and in a command.

/// Safe between tags and in attribute values in double quotes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// A word that a shell takes as it stands; the password in the address of a server is left out, as the page may be published.
pub fn shell(word: &str) -> String {
    let word = without_password(word);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+*".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn without_password(word: &str) -> String {
    let parts = word.split_once("imap://").and_then(|(before, rest)| {
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{before}imap://{user}:PASSWORD@{place}"))
    });
    parts.unwrap_or_else(|| word.to_string())
}

#[cfg(test)]
mod tests {
    use super::{escaped, shell};

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(escaped("<a b=\"c\">&"), "&lt;a b=&quot;c&quot;&gt;&amp;");
        assert_eq!(shell("a b'c"), "'a b'\\''c'");
        assert_eq!(shell("--out"), "--out");
        assert_eq!(shell(""), "''");
    }

    #[test]
    fn passwords_stay_here() {
        assert_eq!(shell("x=imap://me:secret@host:1143"), "x=imap://me:PASSWORD@host:1143");
    }
}
