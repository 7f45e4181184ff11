//! A connection's octets, in the clear or over TLS.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use sessions::ChannelBinding;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::tls::{self, Tls};

/// How much is read at once in the clear. The buffer exists only once there is something to read.
const READ_BYTES: usize = 64 * 1024;
/// The same over TLS, where the buffer has to be there before: small, since idle connections keep it.
const TLS_READ_BYTES: usize = 2 * 1024;

/// The kinds of connection.
pub enum Stream {
    /// In the clear.
    Plain(TcpStream),
    /// Within the machine.
    Unix(UnixStream),
    /// Over TLS. Boxed: it is large, and most of a task's life it is only moved.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Appends what comes next to `buffer`; 0 at the end. Can be cancelled without loss.
    pub async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        self.acknowledge();
        match self {
            Stream::Plain(tcp) => loop {
                tcp.readable().await?;
                buffer.reserve(READ_BYTES);
                // Unlike `try_read_buf` this notes that nothing is left when less came than there was room for: the next wait then
                // begins without another look at the socket.
                let mut read = pin!(tcp.read_buf(buffer));
                if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await {
                    return result;
                }
            },
            Stream::Unix(unix) => {
                unix.readable().await?;
                buffer.reserve(READ_BYTES);
                unix.read_buf(buffer).await
            }
            Stream::Tls(tls) => {
                // More is there once something was read: the buffer grows with the input, and is given back when it is empty.
                buffer.reserve(TLS_READ_BYTES.max(buffer.capacity().min(READ_BYTES)));
                tls.read_buf(buffer).await
            }
        }
    }

    /// Has the kernel acknowledge at once what was received. A client that writes a literal and its line end one after the other waits
    /// with the second for the acknowledgement of the first (Nagle's algorithm, RFC 1122 §4.2.3.4), and Linux would delay that by 40 ms.
    fn acknowledge(&self) {
        let tcp = match self {
            Stream::Plain(tcp) => tcp,
            Stream::Unix(_) => return,
            Stream::Tls(tls) => tls.get_ref().0,
        };
        // Only speed depends on it.
        let _ = rustix::net::sockopt::set_tcp_quickack(tcp, true);
    }

    /// Sends some of `bytes`; how many.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => tcp.write(bytes).await,
            Stream::Unix(unix) => unix.write(bytes).await,
            Stream::Tls(tls) => tls.write(bytes).await,
        }
    }

    /// Sends a few words on a connection that is to be dropped. The socket's buffer is empty, so this never waits; whether they arrive is
    /// no matter.
    pub fn say_at_once(&self, words: &[u8]) {
        let _ = match self {
            Stream::Plain(tcp) => tcp.try_write(words),
            Stream::Unix(unix) => unix.try_write(words),
            Stream::Tls(_) => Ok(0),
        };
    }

    /// Hands everything written to the kernel.
    pub async fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(tls) => tls.flush().await,
        }
    }

    /// The error that the connection has met meanwhile, such as a reset by the other side. Asks the kernel, and waits for nothing.
    pub fn check(&self) -> io::Result<()> {
        let error = match self {
            Stream::Plain(tcp) => tcp.take_error(),
            Stream::Unix(unix) => unix.take_error(),
            Stream::Tls(tls) => tls.get_ref().0.take_error(),
        };
        error?.map_or(Ok(()), Err)
    }

    /// Tells the other side that nothing more comes.
    pub async fn shut_down(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(tcp) => tcp.shutdown().await,
            Stream::Unix(unix) => unix.shutdown().await,
            Stream::Tls(tls) => tls.shutdown().await,
        }
    }

    /// Negotiates TLS as the server. Only a connection in the clear can.
    pub async fn start_tls(self, tls: &Tls) -> io::Result<(Stream, ChannelBinding)> {
        match self {
            Stream::Plain(tcp) => {
                let stream = TlsAcceptor::from(Arc::clone(&tls.config)).accept(tcp).await?;
                let binding = tls::channel_binding(tls, stream.get_ref().1);
                Ok((Stream::Tls(Box::new(stream)), binding))
            }
            Stream::Unix(_) => Err(io::Error::other("a Unix socket has no TLS")),
            Stream::Tls(_) => Err(io::Error::other("the connection has TLS already")),
        }
    }
}
