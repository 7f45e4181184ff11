//! The rules that all others are made of: atoms, strings, numbers, lists (RFC 9051 §9).
//!
//! The input is one whole command or response with its literals in place, without the last line end.
//!
//! What is read more liberally than the grammar says, because clients need it and it cannot be misread:
//! a run of spaces counts as one SP; spaces are ignored after `(` and before `)` and at the end of a line; every name of the
//! grammar is read in any case; octets above 127 are allowed in quoted strings before UTF-8 is enabled.
//! What is not: a backslash in a quoted string escapes `"` and `\` only; a bare CR or a NUL is an error everywhere.

use std::num::NonZeroU32;

use crate::chars::{is_astring_char, is_atom_char, is_list_char, is_quoted_char};
use crate::error::{Parse, SyntaxError};
use crate::limits;

/// A place in the input.
#[derive(Clone)]
pub(crate) struct Scan<'a> {
    rest: &'a [u8],
    total: usize,
    nesting: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(input: &'a [u8]) -> Self {
        Scan { rest: input, total: input.len(), nesting: 0 }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn at(&self) -> usize {
        self.total - self.rest.len()
    }

    /// The error that `expected` does not stand here.
    pub(crate) fn error<T>(&self, expected: &'static str) -> Parse<T> {
        Err(SyntaxError { expected, at: self.at(), limit: None })
    }

    /// The error that a limit is met here.
    pub(crate) fn over_limit<T>(&self, limit: &'static str) -> Parse<T> {
        Err(SyntaxError { expected: "less", at: self.at(), limit: Some(limit) })
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes `byte` if it is next.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Parse<()> {
        if self.eat(byte) { Ok(()) } else { self.error(expected) }
    }

    /// Takes the octets up to the first that is not of `class`.
    pub(crate) fn take_while(&mut self, class: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| !class(*byte)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take_while1(&mut self, class: impl Fn(u8) -> bool, expected: &'static str) -> Parse<&'a [u8]> {
        let before = self.clone();
        match self.take_while(class) {
            [] => before.error(expected),
            taken => Ok(taken),
        }
    }

    /// Takes exactly `count` octets.
    pub(crate) fn take(&mut self, count: usize, expected: &'static str) -> Parse<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => self.error(expected),
        }
    }

    /// SP; more than one is as good.
    pub(crate) fn sp(&mut self) -> Parse<()> {
        self.expect(b' ', "a space")?;
        self.skip_spaces();
        Ok(())
    }

    pub(crate) fn skip_spaces(&mut self) {
        while self.eat(b' ') {}
    }

    /// The end of the command, spaces before it forgiven.
    pub(crate) fn end(&mut self) -> Parse<()> {
        self.skip_spaces();
        if self.rest.is_empty() { Ok(()) } else { self.error("the end of the line") }
    }

    /// `( )`, with `what` between them, forgiving spaces inside. Counts the nesting.
    pub(crate) fn parenthesised<T>(&mut self, what: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.expect(b'(', "(")?;
        self.skip_spaces();
        let value = self.nested(what)?;
        self.skip_spaces();
        self.expect(b')', ")")?;
        Ok(value)
    }

    /// Runs `what` one level deeper.
    pub(crate) fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.nesting >= limits::NESTING_MAX {
            return self.over_limit("nesting_max");
        }
        self.nesting += 1;
        let value = what(self)?;
        self.nesting -= 1;
        Ok(value)
    }

    /// `"(" item *(SP item) ")"`: one or more, at most `max`.
    pub(crate) fn list1<T>(
        &mut self,
        max: usize,
        limit: &'static str,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.parenthesised(|scan| scan.items(max, limit, item))
    }

    /// `"(" [item *(SP item)] ")"`: any number up to `max`.
    pub(crate) fn list0<T>(
        &mut self,
        max: usize,
        limit: &'static str,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.parenthesised(|scan| if scan.peek() == Some(b')') { Ok(Vec::new()) } else { scan.items(max, limit, item) })
    }

    /// `item *(SP item)` up to a `)` or the end.
    pub(crate) fn items<T>(
        &mut self,
        max: usize,
        limit: &'static str,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        let mut all = vec![item(self)?];
        while self.more_items() {
            if all.len() >= max {
                return self.over_limit(limit);
            }
            all.push(item(self)?);
        }
        Ok(all)
    }

    /// Takes the SP before another item; false when only spaces stand before a `)` or the end.
    pub(crate) fn more_items(&mut self) -> bool {
        let had_space = self.peek() == Some(b' ');
        self.skip_spaces();
        had_space && !matches!(self.peek(), None | Some(b')'))
    }

    /// Takes `name` in any case if it is the next atom.
    pub(crate) fn eat_word(&mut self, name: &str) -> bool {
        let mut ahead = self.clone();
        let found = ahead.take_while(is_atom_char).eq_ignore_ascii_case(name.as_bytes());
        if found {
            *self = ahead;
        }
        found
    }

    /// Takes `name` in any case if it is next, whatever follows.
    pub(crate) fn eat_prefix(&mut self, name: &str) -> bool {
        match self.rest.split_at_checked(name.len()) {
            Some((head, rest)) if head.eq_ignore_ascii_case(name.as_bytes()) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// The next atom in upper case, for comparison with names of the grammar.
    pub(crate) fn word(&mut self, expected: &'static str) -> Parse<String> {
        Ok(self.atom(expected)?.to_ascii_uppercase())
    }

    // RFC 9051 §9 atom = 1*ATOM-CHAR
    pub(crate) fn atom(&mut self, expected: &'static str) -> Parse<&'a str> {
        let taken = self.take_while1(is_atom_char, expected)?;
        Ok(ascii(taken))
    }

    // RFC 9051 §9 astring = 1*ASTRING-CHAR / string
    pub(crate) fn astring(&mut self, expected: &'static str) -> Parse<Vec<u8>> {
        match self.peek() {
            Some(b'"' | b'{') => self.string(expected),
            _ => Ok(self.take_while1(is_astring_char, expected)?.to_vec()),
        }
    }

    // RFC 9051 §9 list-mailbox = 1*list-char / string
    pub(crate) fn list_mailbox(&mut self) -> Parse<Vec<u8>> {
        match self.peek() {
            Some(b'"' | b'{') => self.string("a pattern"),
            _ => Ok(self.take_while1(is_list_char, "a pattern")?.to_vec()),
        }
    }

    // RFC 9051 §9 string = quoted / literal
    pub(crate) fn string(&mut self, expected: &'static str) -> Parse<Vec<u8>> {
        match self.peek() {
            Some(b'"') => self.quoted(),
            Some(b'{') => {
                let before = self.clone();
                let octets = self.literal()?;
                // RFC 9051 §9 literal: CHAR8 is any octet but NUL.
                if octets.contains(&0) { before.error("a literal without NUL") } else { Ok(octets.to_vec()) }
            }
            _ => self.error(expected),
        }
    }

    // RFC 9051 §9 nstring = string / nil
    pub(crate) fn nstring(&mut self) -> Parse<Option<Vec<u8>>> {
        if self.eat_word("NIL") { Ok(None) } else { self.string("a string or NIL").map(Some) }
    }

    // RFC 9051 §9 quoted = DQUOTE *QUOTED-CHAR DQUOTE
    pub(crate) fn quoted(&mut self) -> Parse<Vec<u8>> {
        self.expect(b'"', "a quoted string")?;
        let mut text = Vec::new();
        loop {
            text.extend_from_slice(self.take_while(is_quoted_char));
            if self.eat(b'"') {
                return Ok(text);
            }
            self.expect(b'\\', "the end of the quoted string")?;
            match self.peek() {
                Some(escaped @ (b'"' | b'\\')) => {
                    self.eat(escaped);
                    text.push(escaped);
                }
                _ => return self.error("\" or \\ after a backslash"),
            }
        }
    }

    // RFC 9051 §9 literal = "{" number64 ["+"] "}" CRLF *CHAR8
    pub(crate) fn literal(&mut self) -> Parse<&'a [u8]> {
        self.expect(b'{', "a literal")?;
        let size = self.number64()?;
        self.eat(b'+');
        self.expect(b'}', "} after a literal's size")?;
        self.eat(b'\r');
        self.expect(b'\n', "a line end after a literal's size")?;
        match usize::try_from(size) {
            Ok(size) => self.take(size, "the octets of a literal"),
            Err(_) => self.error("a literal's size"),
        }
    }

    // RFC 9051 §9 number = 1*DIGIT, 32 bits
    pub(crate) fn number(&mut self) -> Parse<u32> {
        let before = self.clone();
        u32::try_from(self.digits("a number")?).or_else(|_| before.error("a number of 32 bits"))
    }

    // RFC 9051 §9 nz-number = digit-nz *DIGIT
    pub(crate) fn nz_number(&mut self) -> Parse<NonZeroU32> {
        let before = self.clone();
        NonZeroU32::new(self.number()?).map_or_else(|| before.error("a number above zero"), Ok)
    }

    // RFC 9051 §9 number64 = 1*DIGIT, 63 bits
    pub(crate) fn number64(&mut self) -> Parse<u64> {
        let before = self.clone();
        let number = self.digits("a number")?;
        if number > limits::NUMBER64_MAX { before.error("a number of 63 bits") } else { Ok(number) }
    }

    /// `1*DIGIT`, at most 2⁶⁴-1.
    fn digits(&mut self, expected: &'static str) -> Parse<u64> {
        let before = self.clone();
        let digits = self.take_while1(|byte| byte.is_ascii_digit(), expected)?;
        let value = digits
            .iter()
            .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0'))));
        value.map_or_else(|| before.error("a smaller number"), Ok)
    }

    /// Exactly `count` digits.
    pub(crate) fn fixed_digits(&mut self, count: usize, expected: &'static str) -> Parse<u16> {
        let before = self.clone();
        let digits = self.take(count, expected)?;
        let value = digits.iter().try_fold(0u16, |value, digit| {
            let digit = digit.is_ascii_digit().then(|| u16::from(digit.wrapping_sub(b'0')))?;
            value.checked_mul(10)?.checked_add(digit)
        });
        value.map_or_else(|| before.error(expected), Ok)
    }
}

/// Text of octets that a character class has found to be ASCII.
pub(crate) fn ascii(octets: &[u8]) -> &str {
    std::str::from_utf8(octets).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'a, T>(input: &'a str, rule: impl FnOnce(&mut Scan<'a>) -> Parse<T>) -> Option<T> {
        let mut scan = Scan::new(input.as_bytes());
        let value = rule(&mut scan).ok()?;
        scan.end().ok()?;
        Some(value)
    }

    #[test]
    fn strings() {
        let string = |input| all(input, |scan| scan.astring("")).map(|octets| String::from_utf8(octets).unwrap());
        assert_eq!(string("a]b").as_deref(), Some("a]b"));
        assert_eq!(string(r#""""#).as_deref(), Some(""));
        assert_eq!(string(r#""a\"\\ é""#).as_deref(), Some("a\"\\ é"));
        assert_eq!(string("{3}\r\na\"\n").as_deref(), Some("a\"\n"));
        assert_eq!(string("{2+}\r\nab").as_deref(), Some("ab"));
        assert_eq!(string("{1}\na").as_deref(), Some("a"));
        for bad in
            ["", "(", r#"""#, r#""a"#, r#""\a""#, "\"\r\"", "\"\0\"", "{2}\r\na", "{1}\r\n\0", "{1}a", "{-1}\r\na"]
        {
            assert_eq!(string(bad), None, "{bad:?}");
        }
        assert_eq!(all("nil", Scan::nstring), Some(None));
        assert_eq!(all("\"NIL\"", Scan::nstring), Some(Some(b"NIL".to_vec())));
    }

    #[test]
    fn numbers_end_where_the_grammar_says() {
        assert_eq!(all("4294967295", Scan::number), Some(u32::MAX));
        assert_eq!(all("4294967296", Scan::number), None);
        assert_eq!(all("9223372036854775807", Scan::number64), Some(limits::NUMBER64_MAX));
        for bad in ["9223372036854775808", "18446744073709551616", "-1", "", "x"] {
            assert_eq!(all(bad, Scan::number64), None, "{bad}");
        }
        assert_eq!(all("0", Scan::nz_number), None);
    }

    #[test]
    fn spaces_in_lists_are_forgiven_and_missing_ones_are_not() {
        let list = |input| all(input, |scan| scan.list1(3, "three", |scan| scan.atom("an atom")));
        assert_eq!(list("( a  b )"), Some(vec!["a", "b"]));
        assert_eq!(list("()"), None);
        assert_eq!(list("(a b c)").map(|list| list.len()), Some(3));
        assert_eq!(list("(a b c d)"), None);
        assert_eq!(list("(a\"b\")"), None);
    }
}
