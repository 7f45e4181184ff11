//! The program `mailyard-bench`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    mailyard_bench::run(std::env::args_os())
}
