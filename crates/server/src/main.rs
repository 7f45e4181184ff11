//! The `mailyard` program.
//!
//! `cli` says what can be asked; `serve` runs the server, `demo` runs one on sample mail, `admin` does everything else, directly on the
//! store or, over the `control` socket, in the server that holds it.

mod admin;
mod auth;
mod cli;
mod config;
mod control;
mod deliver;
mod demo;
mod logging;
mod metrics;
mod net;
mod pull;
mod serve;
mod server;
mod users;

fn main() -> std::process::ExitCode {
    platform::memory::give_back_large_blocks();
    cli::main()
}
