//! How fast one TCP stream runs over the loopback interface.

use super::{CHUNK_BYTES, drain};
use crate::error::{Doing, Error, Result};
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

/// Sends so many bytes from one thread to another; the time until the last one has arrived.
pub fn one_stream(bytes: u64) -> Result<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").doing("listening")?;
    let mut sender = TcpStream::connect(listener.local_addr().doing("listening")?).doing("connecting over loopback")?;
    let (receiver, _) = listener.accept().doing("accepting")?;
    std::thread::scope(|scope| {
        let received = scope.spawn(move || drain(receiver));
        let chunk = vec![1; CHUNK_BYTES];
        let mut left = bytes;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            sender.write_all(chunk.get(..count).unwrap_or_default()).doing("sending over loopback")?;
            left -= count as u64;
        }
        sender.shutdown(Shutdown::Write).doing("sending over loopback")?;
        let (arrived, took) = received.join().map_err(|_| Error::new("the receiving thread failed"))??;
        if arrived == bytes { Ok(took) } else { Err(Error::new(format!("{arrived} of {bytes} bytes arrived"))) }
    })
}
