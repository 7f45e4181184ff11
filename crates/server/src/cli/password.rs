//! A password, from a terminal or from standard input.

use std::io::{BufRead, IsTerminal};

use model::{Error, ErrorKind, Result};

use crate::users::Credentials;

/// Asks for a new password and hashes it. From standard input it is one line, without its end.
pub fn ask(from_stdin: bool) -> Result<Credentials> {
    let password = if from_stdin { read_line()? } else { prompt()? };
    Credentials::new(&password, &platform::real::RealRandom)
}

/// Asks for the password of an account on another server.
pub fn of_another_server(from_stdin: bool, server: &impl std::fmt::Display) -> Result<String> {
    if from_stdin {
        return read_line();
    }
    if !std::io::stdin().is_terminal() {
        return Err(no_terminal());
    }
    Ok(rpassword::prompt_password(format!("Password of {server}: "))?)
}

fn no_terminal() -> Error {
    Error::new(ErrorKind::Invalid, "standard input is no terminal: give --password-stdin")
}

fn read_line() -> Result<String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let line = line.strip_suffix('\n').unwrap_or(&line);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

fn prompt() -> Result<String> {
    if !std::io::stdin().is_terminal() {
        return Err(no_terminal());
    }
    let first = rpassword::prompt_password("Password: ")?;
    if first != rpassword::prompt_password("Once more: ")? {
        return Err(Error::new(ErrorKind::Invalid, "the two are different"));
    }
    Ok(first)
}
