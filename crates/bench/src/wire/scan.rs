//! Finding the ends of lines and literals in a stream of responses (RFC 9051 §2.2.2).

use crate::error::{Doing, Error, Result};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

/// The buffer: large enough that system calls cost nothing beside the copying.
const BUFFER_BYTES: usize = 256 << 10;
/// The longest line that is taken; SEARCH on a huge mailbox gives a few megabytes.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Of the untagged lines, so many are kept to be looked at: enough for SELECT and CAPABILITY.
const KEPT_LINES_MAX: usize = 64;

/// What came back for a command, or for a batch of them.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Tagged responses.
    pub tagged: u64,
    /// Untagged FETCH responses.
    pub fetches: u64,
    /// Untagged EXPUNGE responses.
    pub expunges: u64,
    /// Their numbers, in the order they came.
    pub expunged: Vec<u32>,
    /// The numbers in untagged SEARCH, SORT and THREAD responses (RFC 3501 §7.2.5, RFC 5256 §4), in the order they came.
    pub hits: Vec<u32>,
    /// What stands in THREAD responses.
    pub threads: Vec<u8>,
    /// Bytes in literals.
    pub literal_bytes: u64,
    /// All bytes received.
    pub bytes: u64,
    /// The first untagged lines without a literal, without their line ends.
    pub kept: Vec<String>,
    /// From the first byte sent to the last one received.
    pub took: Duration,
}

/// A buffer over a stream.
pub struct Scanner {
    buffer: Vec<u8>,
    /// What is in the buffer and was not looked at yet.
    start: usize,
    end: usize,
}

impl Scanner {
    /// An empty one.
    pub fn new() -> Scanner {
        Scanner { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    /// What was received and not looked at yet.
    pub fn waiting(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads one line, for greetings and continuation requests.
    pub fn line(&mut self, stream: &mut impl Read) -> Result<String> {
        let length = self.next_line(stream, &mut None)?;
        let line = self.buffer.get(self.start..self.start + length).unwrap_or_default();
        let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
        self.start += length;
        Ok(text)
    }

    /// Reads up to and with the next tagged response, counting into `answer`.
    pub fn answer(&mut self, stream: &mut impl Read, recording: &mut Option<File>, answer: &mut Answer) -> Result<()> {
        let mut begins_response = true;
        loop {
            let length = self.next_line(stream, recording)?;
            let line = self.buffer.get(self.start..self.start + length).unwrap_or_default();
            answer.bytes += length as u64;
            let literal = literal_at_end(line);
            if begins_response {
                if let Some(status) = line.strip_prefix(super::TAG.as_bytes()).and_then(|rest| rest.strip_prefix(b" "))
                {
                    answer.tagged += 1;
                    let failed = !status.starts_with(b"OK");
                    let text = String::from_utf8_lossy(status.trim_ascii_end()).into_owned();
                    self.start += length;
                    return if failed { Err(Error::new(text)) } else { Ok(()) };
                }
                match kind(line) {
                    b'F' => answer.fetches += 1,
                    b'E' if line.ends_with(b"EXPUNGE\r\n") => {
                        answer.expunges += 1;
                        answer.expunged.extend(numbers(line).next());
                    }
                    0 if line.starts_with(THREAD) => {
                        let threads = line.get(THREAD.len()..).unwrap_or_default();
                        answer.hits.extend(all_numbers(threads));
                        answer.threads.extend_from_slice(threads.trim_ascii());
                    }
                    0 if LISTS.iter().any(|name| line.starts_with(name)) => answer.hits.extend(numbers(line)),
                    _ if literal.is_none() && answer.kept.len() < KEPT_LINES_MAX => {
                        answer.kept.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
                    }
                    _ => {}
                }
            }
            self.start += length;
            begins_response = literal.is_none();
            if let Some(bytes) = literal {
                self.skip(bytes, stream, recording)?;
                answer.bytes += bytes;
                answer.literal_bytes += bytes;
            }
        }
    }

    /// The length of the next line, its LF included; the line then stands at `start`.
    fn next_line(&mut self, stream: &mut impl Read, recording: &mut Option<File>) -> Result<usize> {
        let mut looked_at = 0;
        loop {
            let waiting = self.buffer.get(self.start..self.end).unwrap_or_default();
            let unseen = waiting.get(looked_at..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', unseen) {
                return Ok(looked_at + at + 1);
            }
            looked_at = waiting.len();
            if looked_at > LINE_BYTES_MAX {
                return Err(Error::new(format!("a line of more than {LINE_BYTES_MAX} bytes")));
            }
            self.fill(stream, recording)?;
        }
    }

    fn skip(&mut self, bytes: u64, stream: &mut impl Read, recording: &mut Option<File>) -> Result<()> {
        let mut left = bytes;
        loop {
            let here = left.min((self.end - self.start) as u64);
            self.start += here as usize;
            left -= here;
            if left == 0 {
                return Ok(());
            }
            self.fill(stream, recording)?;
        }
    }

    /// Reads once; what was not looked at moves to the front, and the buffer grows when that fills it.
    fn fill(&mut self, stream: &mut impl Read, recording: &mut Option<File>) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        let count = stream.read(free).doing("reading")?;
        if count == 0 {
            return Err(Error::new("the server closed the connection"));
        }
        if let Some(file) = recording {
            file.write_all(free.get(..count).unwrap_or_default()).doing("recording")?;
        }
        self.end += count;
        Ok(())
    }
}

/// The first letter after `* NUMBER `, 0 for other responses.
pub fn kind(line: &[u8]) -> u8 {
    let Some(rest) = line.strip_prefix(b"* ") else { return 0 };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits..) {
        Some([b' ', letter, ..]) if digits > 0 => *letter,
        _ => 0,
    }
}

const LISTS: [&[u8]; 2] = [b"* SEARCH", b"* SORT"];
const THREAD: &[u8] = b"* THREAD";

/// The numbers in a line, up to a parenthesis.
pub fn numbers(line: &[u8]) -> impl Iterator<Item = u32> {
    // RFC 7162 §3.1.5: a modification sequence in parentheses may follow.
    all_numbers(line.split(|byte| *byte == b'(').next().unwrap_or_default())
}

/// The numbers in a text, digit by digit: lines of SEARCH have as many as a mailbox has messages.
pub fn all_numbers(line: &[u8]) -> impl Iterator<Item = u32> {
    let words = line.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
    words.filter_map(|digits| {
        let add = |sum: u32, digit: &u8| sum.checked_mul(10)?.checked_add(u32::from(digit - b'0'));
        digits.iter().try_fold(0, add)
    })
}

/// RFC 9051 §9 literal and literal8: the number in `{n}` at a line's end.
pub fn literal_at_end(line: &[u8]) -> Option<u64> {
    let digits = line.strip_suffix(b"}\r\n")?;
    let open = digits.iter().rposition(|byte| !byte.is_ascii_digit())?;
    if digits.get(open) != Some(&b'{') {
        return None;
    }
    std::str::from_utf8(digits.get(open + 1..)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Answer, Scanner};
    use std::io::Read;

    const STREAM: &[u8] =
        b"* FLAGS (\\Seen)\r\n* 2 EXISTS\r\n* SEARCH\r\n* SEARCH 2 4294967295 99999999999 13 (MODSEQ 9)\r\n\
        * SORT 7 6\r\n* THREAD (8)(9 (10)(11 12))\r\n\
        * 1 FETCH (BODY[] {7}\r\nB OK \r\n UID 1)\r\n\
        * 2 FETCH (UID 2 BODY[] {0}\r\n)\r\n* 1 EXPUNGE\r\nB OK done\r\nrest\r\n";

    /// Gives a stream out in pieces.
    struct Pieces<'s>(&'s [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn the_same_however_it_is_cut() {
        for size in 1..STREAM.len() {
            let mut scanner = Scanner::new();
            let mut answer = Answer::default();
            let mut pieces = Pieces(STREAM, size);
            scanner.answer(&mut pieces, &mut None, &mut answer).expect("a good answer");
            assert_eq!((answer.fetches, answer.expunges, answer.literal_bytes, answer.tagged), (2, 1, 7, 1));
            assert_eq!(answer.bytes as usize, STREAM.len() - "rest\r\n".len());
            assert_eq!(
                (answer.hits.as_slice(), answer.expunged.as_slice()),
                (&[2, u32::MAX, 13, 7, 6, 8, 9, 10, 11, 12][..], &[1][..])
            );
            assert_eq!(answer.threads, b"(8)(9 (10)(11 12))");
            assert_eq!(answer.kept, ["* FLAGS (\\Seen)", "* 2 EXISTS"]);
            assert_eq!(scanner.line(&mut pieces).expect("a line"), "rest");
        }
    }

    #[test]
    fn failures() {
        let mut answer = Answer::default();
        let refused = Scanner::new().answer(&mut Pieces(b"B NO not now\r\n", 100), &mut None, &mut answer);
        assert_eq!(refused.expect_err("refused").to_string(), "NO not now");
        assert!(Scanner::new().answer(&mut Pieces(b"* OK half", 100), &mut None, &mut answer).is_err());
    }
}
