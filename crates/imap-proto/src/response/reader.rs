//! The stream of a server, cut into responses.

use super::{Response, response};
use crate::error::SyntaxError;
use crate::frame::literal_mark;

/// Reads a server's stream. A response is held whole: the limit is what a client is ready to hold.
#[derive(Debug)]
pub struct ResponseReader {
    bytes_max: usize,
    buffer: Vec<u8>,
    /// Where the current line begins in the buffer.
    line_start: usize,
    /// What is missing of a literal.
    literal_left: usize,
}

/// Why a response cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// It is larger than the reader's limit. The stream cannot be followed any further.
    TooLarge,
    /// It does not follow the grammar; the next one may.
    Syntax(SyntaxError),
}

impl ResponseReader {
    /// A reader at the start of a stream; `bytes_max` is the size of the largest response with its literals.
    pub fn new(bytes_max: usize) -> Self {
        ResponseReader { bytes_max, buffer: Vec::new(), line_start: 0, literal_left: 0 }
    }

    /// The next response, taking from `input` what it needs and no more. `None` when all of `input` is taken and more is needed.
    pub fn next(&mut self, input: &mut &[u8]) -> Option<Result<Response, ResponseError>> {
        loop {
            let end = match self.literal_left {
                0 => input.iter().position(|byte| *byte == b'\n').map(|end| end + 1),
                left => Some(left),
            };
            let (taken, rest) = input.split_at(end.unwrap_or(input.len()).min(input.len()));
            if self.buffer.len().saturating_add(taken.len()) > self.bytes_max {
                return Some(Err(ResponseError::TooLarge));
            }
            self.buffer.extend_from_slice(taken);
            *input = rest;
            if self.literal_left > 0 {
                self.literal_left = self.literal_left.saturating_sub(taken.len());
                self.line_start = self.buffer.len();
                if self.literal_left > 0 {
                    return None;
                }
                continue;
            }
            end?;
            match self.announced() {
                Some(size) => match usize::try_from(size) {
                    Ok(size) if size <= self.bytes_max => {
                        self.literal_left = size;
                        self.line_start = self.buffer.len();
                    }
                    _ => return Some(Err(ResponseError::TooLarge)),
                },
                None => {
                    let whole = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
                    let result = response(whole.strip_suffix(b"\r").unwrap_or(whole)).map_err(ResponseError::Syntax);
                    self.buffer.clear();
                    self.line_start = 0;
                    return Some(result);
                }
            }
        }
    }

    /// The size of the literal that the line leads to. A line that ends in text for people leads to none, whatever it ends with.
    fn announced(&self) -> Option<u64> {
        if self.line_start == 0 && !self.buffer.starts_with(b"* ") {
            return None;
        }
        let head = self.buffer.get(2..).unwrap_or_default();
        let is_text = ["OK ", "NO ", "BAD ", "BYE ", "PREAUTH "]
            .iter()
            .any(|word| head.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())));
        if is_text {
            return None;
        }
        let line = self.buffer.get(self.line_start..).unwrap_or_default();
        // A size that cannot be said is larger than any limit.
        literal_mark(line).map(|(_, mark)| mark.map_or(u64::MAX, |mark| mark.size))
    }
}
