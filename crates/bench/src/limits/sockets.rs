//! The same group commit with its messages coming over sockets: what the machine can do when the clients are beside the server.
//!
//! The server here knows no IMAP: a thread for each connection reads a command of a known length, has the group make it durable, and
//! answers one line. What is left of the way of an APPEND is the client, two passes through the network, and the syncs.

use super::sync::Group;
use crate::error::{Doing, Error, Result};
use crate::wire::Connection;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The pieces are sent by `writers` clients, each of which waits for the answer before it sends the next; the time until the last answer.
pub fn group_commit_over_sockets(group: &Group, pieces: &[&[u8]], writers: usize) -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").doing("listening")?;
    let address = listener.local_addr().doing("listening")?;
    let ready = Barrier::new(writers + 1);
    // All of them first: a thread that was begun waits for the others.
    let mut streams = Vec::new();
    for _ in 0..writers {
        let client = Connection::over(TcpStream::connect(address).doing("connecting")?)?;
        streams.push((client, listener.accept().doing("accepting")?.0));
    }
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, (mut client, server)) in streams.into_iter().enumerate() {
            let mine: Vec<&[u8]> = pieces.iter().skip(number).step_by(writers).copied().collect();
            let lengths: Vec<usize> = mine.iter().map(|piece| piece.len()).collect();
            threads.push(scope.spawn(move || serve(server, &lengths, group)));
            let ready = &ready;
            threads.push(scope.spawn(move || {
                ready.wait();
                mine.into_iter().try_for_each(|piece| client.send(piece, 1).map(drop))
            }));
        }
        ready.wait();
        let began = Instant::now();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| Error::new("a thread failed"))?)?;
        Ok(began.elapsed())
    })
}

fn serve(mut stream: TcpStream, lengths: &[usize], group: &Group) -> Result<()> {
    stream.set_nodelay(true).doing("serving")?;
    let mut buffer = vec![0; lengths.iter().copied().max().unwrap_or_default()];
    for length in lengths {
        let piece = buffer.get_mut(..*length).unwrap_or_default();
        stream.read_exact(piece).doing("serving")?;
        group.commit(piece)?;
        stream.write_all(b"B OK Appended\r\n").doing("serving")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::group_commit_over_sockets;
    use crate::limits::{Group, Prefill};

    #[test]
    fn every_piece_is_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let pieces: Vec<Vec<u8>> = (1..=30u8).map(|number| vec![number; usize::from(number) * 100]).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let group = Group::create(&path, &pieces, Prefill::Yes).expect("created");
        group_commit_over_sockets(&group, &pieces, 4).expect("written");
        let mut bytes = std::fs::read(&path).expect("read");
        bytes.sort_unstable();
        assert_eq!(bytes, pieces.concat());
    }
}
