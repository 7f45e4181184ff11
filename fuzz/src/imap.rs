//! The grammar of IMAP: reading does not depend on how the stream was cut, and what was read can be written and read again.

use imap_proto::command::{Command, LiteralForm};
use imap_proto::response::{Response, ResponseReader};
use imap_proto::{Event, FrameLimits, NameEncoding, Reader};

/// Far above what any sample has: a response that a client would hold.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A client's stream, after the first byte, which says how it is cut.
pub fn command(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = events(&[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(*cut).max(1)).collect();
    assert_eq!(events(&pieces), whole, "the same octets in other cuts are other commands");
    for event in whole {
        if let Seen::Command(command) = event {
            comes_back(&command);
        }
    }
}

/// What a reader says, with the chunks of a message joined, since they follow the cuts.
#[derive(Debug, PartialEq)]
enum Seen {
    Command(Command),
    Message(Vec<u8>),
    Other(String),
}

fn events(pieces: &[&[u8]]) -> Vec<Seen> {
    let mut reader = Reader::new(FrameLimits::default());
    let mut seen = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(event) = reader.next(&mut input) {
            match (event, seen.last_mut()) {
                (Event::Command(command), _) => seen.push(Seen::Command(command)),
                (Event::Chunk(octets), Some(Seen::Message(message))) => message.extend_from_slice(octets),
                (Event::Chunk(octets), _) => seen.push(Seen::Message(octets.to_vec())),
                (event, _) => seen.push(Seen::Other(format!("{event:?}"))),
            }
        }
        assert!(input.is_empty(), "octets were left lying");
    }
    seen
}

fn comes_back(command: &Command) {
    for form in [LiteralForm::Synchronising, LiteralForm::NonSynchronising] {
        let written = command.write(form).concat();
        let mut input = written.as_slice();
        let mut reader = Reader::new(FrameLimits::default());
        let again = loop {
            match reader.next(&mut input) {
                Some(Event::Continue) => {}
                other => break other,
            }
        };
        match again {
            Some(Event::Command(again)) => assert_eq!(again, *command, "written as {}", written.escape_ascii()),
            // The canonical form of a command near a limit may be longer than the form it came in.
            Some(Event::Error(error)) if error.limit().is_some() => {}
            other => panic!("{command:?} was written as {} and read as {other:?}", written.escape_ascii()),
        }
    }
}

/// A server's stream, after the first byte, which says how it is cut.
pub fn response(data: &[u8]) {
    let Some((cut, stream)) = data.split_first() else { return };
    let whole = responses(&[stream]);
    let pieces: Vec<&[u8]> = stream.chunks(usize::from(*cut).max(1)).collect();
    assert_eq!(responses(&pieces), whole, "the same octets in other cuts are other responses");
    for response in whole.into_iter().flatten() {
        let written = written(&response);
        let again = responses(&[&written]);
        let [Ok(again)] = again.as_slice() else {
            panic!("{response:?} was written as {} and read as {again:?}", written.escape_ascii());
        };
        // Text for people loses what would break a line, so the values need not be equal; what they are written as must be.
        assert_eq!(self::written(again), written, "{response:?} is written in two ways");
    }
}

fn written(response: &Response) -> Vec<u8> {
    let mut out = Vec::new();
    response.write(&mut out, NameEncoding::Utf8);
    out
}

fn responses(pieces: &[&[u8]]) -> Vec<Result<Response, String>> {
    let mut reader = ResponseReader::new(RESPONSE_BYTES_MAX);
    let mut seen = Vec::new();
    for piece in pieces {
        let mut input = *piece;
        while let Some(result) = reader.next(&mut input) {
            let result = result.map_err(|error| format!("{error:?}"));
            let lost = matches!(&result, Err(error) if error == "TooLarge");
            seen.push(result);
            if lost {
                return seen;
            }
        }
    }
    seen
}
