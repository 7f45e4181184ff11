//! The server's end of the control socket.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;

use super::{Answer, REQUEST_BYTES_MAX, short_path};
use crate::admin::{self, Progress, Request};
use crate::server::Stopping;

/// Opens the socket, replacing one that a dead server left: the caller holds the store's lock, so no living one is there.
pub fn bind(data: &Path) -> io::Result<UnixListener> {
    let directory = File::open(data)?;
    match std::fs::remove_file(super::socket_path(data)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The process's umask lets nobody else in from the first instant.
    UnixListener::bind(short_path(&directory, "control.sock"))
}

/// Answers requests until the server stops.
pub async fn serve_control(listener: UnixListener, context: Arc<admin::Context>, mut stopping: Stopping) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopping.wait() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (context, stopping) = (Arc::clone(&context), stopping.clone());
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, context, stopping).await {
                        tracing::warn!(%error, "a control connection failed");
                    }
                });
            }
            Err(error) => crate::net::after_accept_error(&error).await,
        }
    }
}

async fn answer(stream: UnixStream, context: Arc<admin::Context>, mut stopping: Stopping) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    let mut limited = (&mut read).take(REQUEST_BYTES_MAX as u64);
    tokio::select! {
        read = limited.read_until(b'\n', &mut line) => drop(read?),
        () = stopping.wait() => return Ok(()),
    }
    if line.last() != Some(&b'\n') {
        let text =
            format!("the request is cut, or longer than the {REQUEST_BYTES_MAX} octets that the server takes at once");
        let mut answer = serde_json::to_vec(&Answer::Failed(text.clone()))?;
        answer.push(b'\n');
        write.write_all(&answer).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let (lines, mut answers) = mpsc::channel(64);
    let cancelled = Arc::new(AtomicBool::new(false));
    let sink = Sink { lines: lines.clone(), cancelled: Arc::clone(&cancelled) };
    let work = tokio::task::spawn_blocking(move || lines.blocking_send(execute(&context, &line, sink)));
    loop {
        let mut rest = [0];
        tokio::select! {
            answer = answers.recv() => match answer {
                Some(answer) => {
                    let mut text = serde_json::to_vec(&answer)?;
                    text.push(b'\n');
                    if write.write_all(&text).await.is_err() {
                        break;
                    }
                }
                None => break,
            },
            // The client sends nothing more: what is read is its end.
            _ = read.read(&mut rest), if !cancelled.load(Ordering::Relaxed) => cancelled.store(true, Ordering::Relaxed),
            () = stopping.wait(), if !cancelled.load(Ordering::Relaxed) => {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    }
    cancelled.store(true, Ordering::Relaxed);
    drop(answers);
    let _ = work.await;
    Ok(())
}

fn execute(context: &admin::Context, line: &[u8], mut sink: Sink) -> Answer {
    let request: Request = match serde_json::from_slice(line) {
        Ok(request) => request,
        Err(error) => return Answer::Failed(format!("the server does not understand the request: {error}")),
    };
    tracing::info!(?request, "administration");
    match admin::run(context, request, &mut sink) {
        Ok(result) => Answer::Done(result),
        Err(error) => {
            tracing::warn!(%error, "administration failed");
            Answer::Failed(error.to_string())
        }
    }
}

/// Progress on its way to the client. A client that does not read makes the command wait, and one that is gone cancels it.
struct Sink {
    lines: mpsc::Sender<Answer>,
    cancelled: Arc<AtomicBool>,
}

impl Progress for Sink {
    fn advanced(&mut self, done: u64, total: u64, unit: &'static str) {
        // Progress may be skipped; notices may not.
        let _ = self.lines.try_send(Answer::Progress { done, total, unit: unit.to_owned() });
    }

    fn notice(&mut self, notice: String) {
        let _ = self.lines.blocking_send(Answer::Notice(notice));
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}
