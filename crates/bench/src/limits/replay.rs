//! A recorded answer, sent by a server that does nothing else: a read of a file and a write to a socket.

use crate::error::{Doing, Error, Result};
use crate::wire::{Answer, Connection};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

/// A server for one recorded answer, and a client on it. Every command is answered with the whole recording.
pub struct Replay {
    client: Connection,
    server: JoinHandle<Result<()>>,
}

impl Replay {
    /// Starts the server, on a loopback port of its own.
    pub fn start(recording: &Path) -> Result<Replay> {
        let file = File::open(recording).doing(recording.display())?;
        let listener = TcpListener::bind("127.0.0.1:0").doing("listening")?;
        let address = listener.local_addr().doing("listening")?;
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().doing("accepting")?;
            serve(stream, file)
        });
        let stream = TcpStream::connect(address).doing("connecting")?;
        Ok(Replay { client: Connection::over(stream)?, server })
    }

    /// Has the recording sent once. It must hold `commands` tagged responses.
    pub fn run(&mut self, commands: u64) -> Result<Answer> {
        self.client.send(b"again\r\n", commands)
    }

    /// Ends client and server.
    pub fn stop(self) -> Result<()> {
        drop(self.client);
        self.server.join().map_err(|_| Error::new("the replaying thread failed"))?
    }
}

fn serve(mut stream: TcpStream, mut file: File) -> Result<()> {
    stream.set_nodelay(true).doing("replaying")?;
    let mut requests = BufReader::new(stream.try_clone().doing("replaying")?);
    let mut chunk = vec![0; super::CHUNK_BYTES];
    let mut line = String::new();
    while requests.read_line(&mut line).doing("replaying")? > 0 {
        line.clear();
        file.seek(SeekFrom::Start(0)).doing("replaying")?;
        loop {
            let count = file.read(&mut chunk).doing("replaying")?;
            let Some(piece) = chunk.get(..count).filter(|piece| !piece.is_empty()) else { break };
            stream.write_all(piece).doing("replaying")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Replay;

    #[test]
    fn sends_what_was_recorded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("recording");
        std::fs::write(&path, "* 1 FETCH (BODY[] {3}\r\nabc)\r\nB OK done\r\n").expect("written");
        let mut replay = Replay::start(&path).expect("started");
        for _ in 0..3 {
            let answer = replay.run(1).expect("an answer");
            assert_eq!((answer.fetches, answer.literal_bytes), (1, 3));
        }
        replay.stop().expect("ended well");
    }
}
