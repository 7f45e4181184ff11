//! The stream of a client as commands: a [`Framer`] with the grammar behind it.

use crate::command::{
    self, AppendKind, AppendMessage, AppendStart, Command, CommandErrorKind, MessageLiteral, Tag, append_end,
    append_next, append_start, tag_of,
};
use crate::error::SyntaxError;
use crate::frame::{Frame, FrameError, FrameLimits, Framer, LiteralMark};

/// What a client's stream says next; octets of messages are borrowed from the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A command, complete.
    Command(Command),
    /// The line that was asked for with [`Reader::expect_line`], without its line end.
    Line(Vec<u8>),
    /// The client waits with a small literal: send a continuation request (`+ OK`) and read on.
    Continue,
    /// An APPEND or REPLACE, up to its first message. If the literal is synchronising, send a continuation request, or call
    /// [`Reader::refuse`] and send the tagged NO. If it is not, its octets come in any case; `refuse` skips them.
    AppendStart(AppendStart),
    /// Another message of the same APPEND: as with the first.
    AppendNext(AppendMessage),
    /// Octets of the message.
    Chunk(&'a [u8]),
    /// The message is complete. Nothing is to be stored before [`Event::AppendEnd`].
    MessageEnd,
    /// The APPEND or REPLACE is complete.
    AppendEnd,
    /// The command cannot be read; the rest of it is skipped. Behind [`Event::AppendStart`] this ends that command: nothing of it
    /// is to be stored.
    Error(ReadError),
}

/// Why a command was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// The tag, when one could be read: without it the answer is an untagged BAD.
    pub tag: Option<Tag>,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

/// What is wrong with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadErrorKind {
    /// There is no such command; its name in upper case.
    UnknownCommand(String),
    /// It does not follow the grammar.
    Syntax(SyntaxError),
    /// It is over a limit of the stream.
    Frame(FrameError),
}

impl ReadError {
    /// The name of the limit that was met, if it was one.
    pub fn limit(&self) -> Option<&'static str> {
        match &self.kind {
            ReadErrorKind::UnknownCommand(_) => None,
            ReadErrorKind::Syntax(error) => error.limit,
            ReadErrorKind::Frame(error) => Some(error.limit()),
        }
    }

    /// Whether the stream cannot be followed any further: the connection must end with BYE.
    pub fn is_fatal(&self) -> bool {
        matches!(self.kind, ReadErrorKind::Frame(FrameError::LiteralSize { fatal: true }))
    }
}

/// Reads a client's stream.
#[derive(Debug)]
pub struct Reader {
    framer: Framer,
    append: Option<OpenAppend>,
}

/// An APPEND or REPLACE whose end has not come.
#[derive(Debug)]
struct OpenAppend {
    tag: Tag,
    kind: AppendKind,
    /// The literal of its last message.
    literal: MessageLiteral,
    /// Whether the stream was read on since: then a continuation request was sent, if one was due.
    began: bool,
}

impl Reader {
    /// A reader at the start of a stream.
    pub fn new(limits: FrameLimits) -> Self {
        Reader { framer: Framer::new(limits), append: None }
    }

    /// Other limits from here on.
    pub fn set_limits(&mut self, limits: FrameLimits) {
        self.framer.set_limits(limits);
    }

    /// The next line is no command but comes as [`Event::Line`]: a response to an AUTHENTICATE challenge, or what ends IDLE.
    pub fn expect_line(&mut self) {
        self.framer.expect_line();
    }

    /// Gives up the APPEND or REPLACE of the last event, from [`Event::AppendStart`] up to [`Event::MessageEnd`]; the session
    /// answers it at once. What the client has already sent or will send of it is skipped.
    ///
    /// Of a synchronising literal nothing comes if its continuation request is never sent: that is what a call right behind
    /// [`Event::AppendStart`] or [`Event::AppendNext`] means. A call of [`Reader::next`] in between, whatever it returns, means
    /// that the request was sent, so the octets are awaited and skipped. Decide first, then read on.
    pub fn refuse(&mut self) {
        if let Some(OpenAppend { literal, began, .. }) = self.append.take() {
            let MessageLiteral { size, synchronising, binary, .. } = literal;
            self.framer.refuse((!began).then_some(LiteralMark { size, synchronising, binary }));
        }
    }

    /// Whether a command has begun and is not complete: a client that is silent now has stopped in the middle of it.
    pub fn is_inside(&self) -> bool {
        self.framer.is_inside()
    }

    /// The next event, taking from `input` what it needs and no more. `None` when all of `input` is taken and more is needed.
    /// The same octets give the same events whatever the cuts, except that chunks are cut as the input is.
    pub fn next<'i>(&mut self, input: &mut &'i [u8]) -> Option<Event<'i>> {
        if let Some(append) = &mut self.append {
            append.began = true;
        }
        // What a frame says is made owned at once: after a syntax error the framer is needed again while the frame is still there.
        let outcome = match self.framer.next(input)? {
            Frame::Chunk(octets) => return Some(Event::Chunk(octets)),
            Frame::MessageEnd => return Some(Event::MessageEnd),
            Frame::Continue => return Some(Event::Continue),
            Frame::Line(line) => return Some(Event::Line(line.to_vec())),
            Frame::Command(octets) => {
                return Some(match command::command(octets) {
                    Ok(command) => Event::Command(command),
                    Err(error) => Event::Error(error.into()),
                });
            }
            Frame::Error { tag, error } => {
                let tag = self.append.take().map(|append| append.tag).or(tag);
                return Some(Event::Error(ReadError { tag, kind: ReadErrorKind::Frame(error) }));
            }
            Frame::CommandEnd(tail) => {
                let Some(append) = self.append.take() else { return Some(Event::AppendEnd) };
                return Some(match append_end(tail, append.literal.utf8) {
                    Ok(()) => Event::AppendEnd,
                    Err(error) => Event::Error(ReadError { tag: Some(append.tag), kind: ReadErrorKind::Syntax(error) }),
                });
            }
            Frame::Message { head, mark } => match self.append.as_mut() {
                None => match append_start(head, mark) {
                    Ok(start) => {
                        let (tag, kind, literal) = (start.tag.clone(), start.kind, start.message.literal);
                        self.append = Some(OpenAppend { tag, kind, literal, began: false });
                        return Some(Event::AppendStart(start));
                    }
                    Err(error) => (tag_of(head), mark, error),
                },
                Some(append) => match append.next(head, mark) {
                    Ok(message) => {
                        append.literal = message.literal;
                        append.began = false;
                        return Some(Event::AppendNext(message));
                    }
                    Err(error) => (Some(append.tag.clone()), mark, error),
                },
            },
        };
        let (tag, mark, error) = outcome;
        self.append = None;
        self.framer.refuse(Some(mark));
        Some(Event::Error(ReadError { tag, kind: ReadErrorKind::Syntax(error) }))
    }
}

impl OpenAppend {
    fn next(&self, head: &[u8], mark: LiteralMark) -> Result<AppendMessage, SyntaxError> {
        match self.kind {
            AppendKind::Append => append_next(head, self.literal.utf8, mark),
            // RFC 8508 §3.1: one message in the place of one.
            AppendKind::Replace { .. } => Err(SyntaxError { expected: "the end of the line", at: 0, limit: None }),
        }
    }
}

impl From<command::CommandError> for ReadError {
    fn from(error: command::CommandError) -> Self {
        let kind = match error.kind {
            CommandErrorKind::UnknownCommand(name) => ReadErrorKind::UnknownCommand(name),
            CommandErrorKind::Syntax(error) => ReadErrorKind::Syntax(error),
        };
        ReadError { tag: error.tag, kind }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits;

    /// The events of a stream as text, chunks put together; `on` may do something with the reader after each.
    fn events(input: &[u8], cuts: &[usize], limits: FrameLimits, on: fn(&mut Reader, &Event)) -> Vec<String> {
        let mut reader = Reader::new(limits);
        let mut seen: Vec<String> = Vec::new();
        let mut octets: Vec<u8> = Vec::new();
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (input.len() + 1)).collect();
        bounds.extend([0, input.len()]);
        bounds.sort_unstable();
        for pair in bounds.windows(2) {
            let mut piece = &input[pair[0]..pair[1]];
            while let Some(event) = reader.next(&mut piece) {
                on(&mut reader, &event);
                match event {
                    Event::Chunk(chunk) => octets.extend_from_slice(chunk),
                    other => {
                        if !octets.is_empty() {
                            seen.push(format!("octets {:?}", String::from_utf8_lossy(&octets)));
                            octets.clear();
                        }
                        seen.push(format!("{other:?}"));
                    }
                }
            }
            assert!(piece.is_empty());
        }
        seen
    }

    fn short(input: &str, on: fn(&mut Reader, &Event)) -> String {
        let name = |event: &String| event.split(['(', ' ', '{']).next().unwrap_or_default().to_owned();
        let all = events(input.as_bytes(), &[], FrameLimits::default(), on);
        let names: Vec<String> =
            all.iter().map(|e| if e.starts_with("octets") { e.clone() } else { name(e) }).collect();
        names.join(" ")
    }

    fn nothing(_: &mut Reader, _: &Event) {}

    fn refuse(reader: &mut Reader, event: &Event) {
        if matches!(event, Event::AppendStart(_) | Event::AppendNext(_)) {
            reader.refuse();
        }
    }

    fn refuse_later(reader: &mut Reader, event: &Event) {
        if matches!(event, Event::Chunk(_) | Event::MessageEnd) {
            reader.refuse();
        }
    }

    #[test]
    fn commands_and_small_literals() {
        assert_eq!(short("a NOOP\r\nb noop\n", nothing), "Command Command");
        assert_eq!(short("a LOGIN {3}\r\nann {2+}\r\npw\r\nb NOOP\r\n", nothing), "Continue Command Command");
        // In a quoted string there is no literal; the line is an error, and the next one is read.
        assert_eq!(short("a LOGIN \"x {3+}\r\nb NOOP\r\n", nothing), "Error Command");
        assert_eq!(short("\r\na NOOP\r\n", nothing), "Error Command");
    }

    #[test]
    fn messages_are_streamed() {
        assert_eq!(
            short("a APPEND {5}\r\nINBOX (\\Seen) {5}\r\nhello\r\nb NOOP\r\n", nothing),
            "Continue AppendStart octets \"hello\" MessageEnd AppendEnd Command"
        );
        assert_eq!(
            short("a APPEND x {1+}\r\nA (\\Draft) {1+}\r\nB {0}\r\n\r\n", nothing),
            "AppendStart octets \"A\" MessageEnd AppendNext octets \"B\" MessageEnd AppendNext MessageEnd AppendEnd"
        );
        assert_eq!(
            short("a UID REPLACE 7 x UTF8 (~{1+}\r\nA)\r\nb REPLACE * x ~{1}\r\nC\r\n", nothing),
            "AppendStart octets \"A\" MessageEnd AppendEnd AppendStart octets \"C\" MessageEnd AppendEnd"
        );
        // A second message for REPLACE, a missing parenthesis, junk behind a message.
        assert_eq!(
            short("a REPLACE 1 x {1+}\r\nA {1+}\r\nB\r\nb NOOP\r\n", nothing),
            "AppendStart octets \"A\" MessageEnd Error Command"
        );
        assert_eq!(
            short("a APPEND x UTF8 (~{1+}\r\nA\r\nb NOOP\r\n", nothing),
            "AppendStart octets \"A\" MessageEnd Error Command"
        );
        assert_eq!(
            short("a APPEND x {1+}\r\nA junk\r\nb NOOP\r\n", nothing),
            "AppendStart octets \"A\" MessageEnd Error Command"
        );
        // Errors in what stands before a message.
        assert_eq!(short("a APPEND x (\\Seen {1}\r\nb NOOP\r\n", nothing), "Error Command");
        assert_eq!(short("a APPEND x (\\Seen {1+}\r\nA {1}\r\nb NOOP\r\n", nothing), "Error Command");
        assert_eq!(short("a APPEND x\r\nb NOOP\r\n", nothing), "Error Command");
        assert_eq!(short("a APPEND x UTF8 ({1+}\r\nA)\r\nb NOOP\r\n", nothing), "Error Command");
    }

    #[test]
    fn a_refused_message_is_skipped_or_never_comes() {
        assert_eq!(short("a APPEND x {5}\r\nb NOOP\r\n", refuse), "AppendStart Command");
        assert_eq!(short("a APPEND x {5+}\r\nhello (\\Seen) {3+}\r\nabc\r\nb NOOP\r\n", refuse), "AppendStart Command");
        assert_eq!(short("a APPEND x {5+}\r\nhello {3}\r\nb NOOP\r\n", refuse), "AppendStart Command");
        assert_eq!(short("a APPEND x {0+}\r\n\r\nb NOOP\r\n", refuse), "AppendStart Command");
        // In the middle of a message and behind one: what was sent of it is skipped, synchronising or not.
        assert_eq!(
            short("a APPEND x {5}\r\nhello\r\nb NOOP\r\n", refuse_later),
            "AppendStart octets \"hello\" Command"
        );
        assert_eq!(
            short("a APPEND x {0}\r\n {2+}\r\nxy\r\nb NOOP\r\n", refuse_later),
            "AppendStart MessageEnd Command"
        );
    }

    #[test]
    fn lines_that_are_no_commands() {
        fn on(reader: &mut Reader, event: &Event) {
            if let Event::Command(Command { body: command::CommandBody::Idle, .. }) = event {
                reader.expect_line();
            }
        }
        let seen = events(b"a IDLE\r\nDONE {3+}\r\nb NOOP\r\n", &[], FrameLimits::default(), on);
        assert_eq!(seen[1], format!("{:?}", Event::Line(b"DONE {3+}".to_vec())));
        assert!(seen[2].starts_with("Command"));
    }

    fn tight() -> FrameLimits {
        FrameLimits {
            line_bytes_max: 40,
            literal_memory_bytes_max: 10,
            literals_per_command_max: 2,
            non_synchronising_bytes_max: Some(limits::LITERAL_MINUS_BYTES_MAX),
        }
    }

    fn limit_of(input: &str) -> Option<String> {
        let mut reader = Reader::new(tight());
        let mut rest = input.as_bytes();
        let mut limit = None;
        let mut commands = 0;
        while let Some(event) = reader.next(&mut rest) {
            match event {
                Event::Error(error) => {
                    assert_eq!(error.tag.as_ref().map(Tag::as_str), Some("a"), "{input}");
                    limit = error.limit().map(str::to_owned);
                }
                Event::Command(_) => commands += 1,
                _ => {}
            }
        }
        assert!(commands >= 1, "not resynchronised: {input}");
        limit
    }

    #[test]
    fn limits_at_and_one_over() {
        // A line of 40 octets with its line end, and of 41.
        let line = |pad: usize| format!("a DELETE {}\r\nb NOOP\r\n", "x".repeat(pad));
        assert_eq!(limit_of(&line(29)), None);
        assert_eq!(limit_of(&line(30)).as_deref(), Some("line_bytes_max"));
        let literals = |sizes: &[usize]| {
            let all: String = sizes.iter().map(|size| format!(" {{{size}+}}\r\n{}", "x".repeat(*size))).collect();
            format!("a LOGIN{all}\r\nb NOOP\r\n")
        };
        assert_eq!(limit_of(&literals(&[5, 5])), None);
        assert_eq!(limit_of(&literals(&[5, 6])).as_deref(), Some("literal_memory_bytes_max"));
        assert_eq!(limit_of(&literals(&[1, 1, 1])).as_deref(), Some("literals_per_command_max"));
        assert_eq!(limit_of("a LOGIN {11}\r\nb NOOP\r\n").as_deref(), Some("literal_memory_bytes_max"));
        let append = |size: usize| format!("a APPEND x {{{size}+}}\r\n{}\r\nb NOOP\r\n", "x".repeat(size));
        assert_eq!(limit_of(&append(4096)), None);
        assert_eq!(limit_of(&append(4097)).as_deref(), Some("literal_minus_bytes_max"));
        assert_eq!(limit_of("a APPEND x {9223372036854775808}\r\nb NOOP\r\n").as_deref(), Some("number64_max"));
    }

    #[test]
    fn a_literal_that_cannot_be_skipped_ends_the_stream() {
        let mut reader = Reader::new(FrameLimits::default());
        let mut rest: &[u8] = b"a APPEND x {9223372036854775808+}\r\nb NOOP\r\n";
        let Some(Event::Error(error)) = reader.next(&mut rest) else { panic!() };
        assert!(error.is_fatal());
        assert_eq!(reader.next(&mut rest), None);
        assert!(rest.is_empty());
    }

    #[test]
    fn nothing_is_read_ahead() {
        let mut reader = Reader::new(FrameLimits::default());
        let mut rest: &[u8] = b"a STARTTLS\r\nplain text behind it";
        assert!(matches!(reader.next(&mut rest), Some(Event::Command(_))));
        assert_eq!(rest, b"plain text behind it");
        assert!(!reader.is_inside());
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("a NOOP\r\n"),
            Just("b LOGIN {3}\r\nann pw\r\n"),
            Just("c LOGIN {3+}\r\nann {2+}\r\npw\r\n"),
            Just("d APPEND x {5}\r\nhello\r\n"),
            Just("e APPEND {1+}\r\nx (\\Seen) {5+}\r\nhello {1+}\r\nX\r\n"),
            Just("f APPEND x UTF8 (~{3+}\r\nabc)\r\n"),
            Just("g SEARCH BODY {20+}\r\naaaaaaaaaaaaaaaaaaaa SEEN\r\n"),
            Just("h DELETE xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx {3+}\r\nabc\r\n"),
            Just("{3+}\r\n"),
            Just("\r\n"),
            Just("\n"),
            Just("\""),
            Just("i X"),
            Just(" {1}\r\n"),
            Just("\0\r"),
            Just("~{2+}\r\n(")
        ]
        .prop_map(str::to_owned)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn cuts_change_nothing(
            pieces in proptest::collection::vec(piece(), 0..12),
            cuts in proptest::collection::vec(0usize..1000, 0..20),
            choice in 0usize..3,
        ) {
            let input = pieces.concat();
            let on = [nothing, refuse, refuse_later][choice];
            // A refusal in the middle of a message depends on where the middle is, so it is cut nowhere else.
            let cuts = if choice == 2 { Vec::new() } else { cuts };
            let every: Vec<usize> = if choice == 2 { Vec::new() } else { (0..input.len()).collect() };
            let whole = events(input.as_bytes(), &[], tight(), on);
            prop_assert_eq!(&whole, &events(input.as_bytes(), &cuts, tight(), on));
            prop_assert_eq!(&whole, &events(input.as_bytes(), &every, tight(), on));
        }

        #[test]
        fn any_octets_are_read_to_their_end(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            events(&input, &[], tight(), nothing);
        }
    }
}
