//! The runner of dialogues; see `README.md` beside this for their language.

mod matching;
mod parse;
mod server;

use matching::Captures;
pub use parse::Scenario;
use parse::{Action, Item};
pub use server::Cuts;
use server::Server;

use crate::formats::Format;

/// Plays a scenario; the error is a report for people. With `write`, what the server says replaces what the scenario expects.
pub fn play(scenario: &mut Scenario, cuts: Cuts, format: Format, write: bool) -> Result<(), String> {
    let mut server = Server::new(cuts, format);
    let mut captures = Captures::default();
    let mut report = String::new();
    for item in &mut scenario.items {
        let Item::Exchange { action, expected } = item else { continue };
        run(&mut server, action, &captures)?;
        let said = server.said();
        let connections = said.iter().map(|line| line.0).chain(expected.iter().map(|line| line.0));
        let mut connections: Vec<usize> = connections.collect();
        connections.sort_unstable();
        connections.dedup();
        for number in connections {
            let of = |lines: &[(usize, String)]| -> Vec<String> {
                lines.iter().filter(|line| line.0 == number).map(|line| line.1.clone()).collect()
            };
            if let Err(difference) = captures.compare(&of(expected), &of(&said), &server.fixtures) {
                report.push_str(&format!("after {action}\n{difference}"));
            }
        }
        if report.is_empty() {
            continue;
        }
        if !write {
            return Err(report);
        }
        // What is right already stays as somebody wrote it.
        report.clear();
        *expected = said.iter().map(|(number, line)| (*number, captures.generalise(line))).collect();
    }
    Ok(())
}

fn run(server: &mut Server, action: &Action, captures: &Captures) -> Result<(), String> {
    match action {
        Action::Client(number, text) => {
            let octets = captures.expand(text, &server.fixtures)?;
            server.send(*number, &octets)
        }
        Action::Time(by) => server.pass(*by),
        Action::Given(words) => server.given(words),
        Action::Setting(name, value) => server.set(name, value),
        Action::Connect(number, words) => server.connect(*number, words),
        Action::As(number, user, mailbox) => server.log_in(*number, user, mailbox.as_deref()),
        Action::Event(number, name) => server.event(*number, name),
        Action::Disk(what) => server.disk(what),
        Action::Check(a, relation, b) => captures.check(a, relation, b),
    }
}
