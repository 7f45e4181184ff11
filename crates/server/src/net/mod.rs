//! The network: listeners, TLS, and the loop that drives a session over a socket.

mod connection;
mod counts;
mod end_point;
mod listener;
mod metrics_http;
mod steps;
mod stream;
mod tls;
mod writers;

pub use connection::{Door, after_accept_error, serve_mail, serve_socket};
pub use counts::ConnectionCounts;
pub use listener::{Bound, Listeners, Protocol, bind};
pub use metrics_http::serve_metrics;
pub use steps::{Steps, workers};
pub use tls::{Tls, load as load_tls};
pub use writers::start as start_writers;
