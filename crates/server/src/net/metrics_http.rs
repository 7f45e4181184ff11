//! `GET /metrics`: as much of HTTP/1.1 (RFC 9112) as a scraper needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Longest request with its header, octets.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Longest time for a request and its answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);
/// Requests at the same time.
const REQUESTS_MAX: usize = 16;

/// Answers requests until it is dropped.
pub async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>) {
    let slots = Arc::new(Semaphore::new(REQUESTS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let metrics = Arc::clone(&metrics);
                tokio::spawn(async move {
                    // A scraper that is too slow or gone gets nothing; it will come back.
                    let _ = tokio::time::timeout(REQUEST_TIME_MAX, answer(stream, &metrics)).await;
                    drop(slot);
                });
            }
            Err(error) => super::after_accept_error(&error).await,
        }
    }
}

async fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut limited = (&mut stream).take(REQUEST_BYTES_MAX as u64);
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        if limited.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(respond(&request, metrics).as_bytes()).await?;
    stream.shutdown().await
}

fn respond(request: &[u8], metrics: &Metrics) -> String {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let (status, body) = match line {
        b"GET /metrics HTTP/1.1" | b"GET /metrics HTTP/1.0" => ("200 OK", metrics.text()),
        _ if line.starts_with(b"GET ") => ("404 Not Found", "only /metrics is here\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET is understood\n".to_owned()),
    };
    let kind = if status.starts_with("200") {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_answers() {
        let metrics = Metrics::new();
        let status =
            |request: &str| respond(request.as_bytes(), &metrics).split("\r\n").next().unwrap_or_default().to_owned();
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
    }
}
