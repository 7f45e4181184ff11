//! What tests of random histories share: flags, faults, and sessions that know what they were told.

use std::collections::BTreeSet;

use model::{ErrorKind, SystemFlag};
use platform::Prng;
use platform::sim::SimEnv;
use store::{Account, FlagNames, View};

/// Some of the flags that histories use.
pub fn random_flags(random: &mut Prng) -> BTreeSet<String> {
    let all = ["\\Seen", "\\Deleted", "\\Flagged", "work", "$Junk"];
    all.into_iter().filter(|_| random.below(3) == 0).map(str::to_owned).collect()
}

/// As the store wants them.
pub fn flag_names(flags: &BTreeSet<String>) -> FlagNames {
    let mut names = FlagNames::default();
    for flag in flags {
        match SystemFlag::parse(flag) {
            Some(flag) => names.system.push(flag),
            None => names.keywords.push(model::Keyword::new(flag).unwrap()),
        }
    }
    names
}

/// A view, and what its client knows from what it was told: UIDs and flags by sequence number.
pub struct Session {
    view: View,
    known: Vec<(u32, model::Flags)>,
}

impl Session {
    fn new(view: View) -> Self {
        let known = view.all_rows().map(|entry| (entry.uid.get(), entry.flags)).collect();
        Session { view, known }
    }

    fn check(&self) {
        assert!(self.view.all_rows().map(|entry| (entry.uid.get(), entry.flags)).eq(self.known.iter().copied()));
    }

    fn advance(&mut self, expunges: bool) {
        let changes = self.view.advance(expunges);
        for seq in changes.expunged_seqs.iter().rev() {
            assert!(changes.expunged_uids.contains(self.known.remove(seq as usize - 1).0));
        }
        for (uid, flags) in &mut self.known {
            if changes.flags_changed.contains(*uid) {
                *flags = self.view.entry_of(model::Uid::new(*uid).unwrap()).unwrap().flags;
            }
        }
        let new = self.view.rows(self.known.len() as u32 + 1..=u32::MAX);
        assert_eq!(new.len() as u32, changes.added);
        self.known.extend(new.map(|entry| (entry.uid.get(), entry.flags)));
        self.check();
    }
}

/// Chooses what will go wrong next.
pub fn schedule(sim: &SimEnv, random: &mut Prng) {
    match random.below(8) {
        0..=3 => sim.disk.crash_at(1 + random.below(40)),
        4..=5 => sim.disk.fail_at(1 + random.below(40)),
        6 => sim.disk.set_capacity(Some(sim.disk.used_bytes() + random.below(20_000))),
        _ => {}
    }
}

/// Whether it is the disk's fault, and not the request's.
pub fn is_machine_error(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Io | ErrorKind::ReadOnlyAfterFailure | ErrorKind::DiskFull)
}

/// What sessions do between the changes.
pub fn look(account: &Account, sessions: &mut Vec<Session>, random: &mut Prng) {
    for session in sessions.iter_mut() {
        session.check();
        if random.below(3) == 0 {
            session.advance(random.below(2) == 0);
        }
    }
    if random.below(4) == 0 {
        let mailboxes = account.mailboxes();
        if let Some(id) = mailboxes.get(random.index(mailboxes.len())).and_then(|info| info.id) {
            sessions.push(Session::new(account.view(id, random.below(2) == 0).unwrap()));
        }
    }
    if sessions.len() > 4 {
        sessions.remove(0);
    }
}
