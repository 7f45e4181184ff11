//! What goes wrong on the simulated disk and when, and the count of what was done.

/// The kinds of operations that change or sync something: the places where a machine can die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`crate::File::write_at`], [`crate::File::write_vectored_at`], [`crate::File::write_zeros`].
    Write,
    /// [`crate::File::set_len`].
    SetLen,
    /// [`crate::File::allocate`].
    Allocate,
    /// [`crate::File::punch_hole`].
    PunchHole,
    /// [`crate::File::sync_data`], [`crate::File::sync_all`].
    Sync,
    /// [`crate::Disk::open`] or [`crate::Disk::lock`] that creates a file; [`crate::Disk::create_dir_all`] for each
    /// directory that it creates.
    Create,
    /// [`crate::Disk::rename`].
    Rename,
    /// [`crate::Disk::link`].
    Link,
    /// [`crate::Disk::remove`], [`crate::Disk::remove_dir`].
    Remove,
    /// [`crate::Disk::sync_dir`].
    SyncDir,
    /// [`crate::Batch::sync`].
    SyncAll,
}

/// What a scheduled fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The operation fails with EIO, as the module header of `sim` says for each kind.
    Fail,
    /// The power goes while the operation runs.
    Crash,
}

/// What the file system refuses at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Denial {
    /// To open the file, in whatever way (EACCES).
    Opening,
    /// To change the names in the directory (EACCES); the files in it can be written.
    Names,
    /// To change anything there and below (EROFS): a file system that is mounted for reading.
    Writing,
}

/// Failures that happen by chance, each with EIO; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RandomFaults {
    /// One write (also: cut, allocation, hole) in so many fails.
    pub write_fails_one_in: u64,
    /// One sync of a file in so many fails.
    pub sync_fails_one_in: u64,
    /// One change of names or sync of a directory in so many fails.
    pub names_fail_one_in: u64,
}

/// What was done, on the whole disk or to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Operations of every kind in [`Operation`]; what [`super::SimDisk::crash_at`] counts.
    pub operations: u64,
    /// Calls that read.
    pub reads: u64,
    /// Bytes that these gave.
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that these were asked to write.
    pub write_bytes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Syncs of directories; 0 for a file.
    pub dir_syncs: u64,
    /// Syncs of the whole disk; 0 for a file.
    pub batch_syncs: u64,
    /// Directories that were listed; 0 for a file.
    pub lists: u64,
    /// Calls of [`crate::Disk::metadata`]; 0 for a file.
    pub looks: u64,
    /// Calls of [`crate::Disk::open`]; 0 for a file.
    pub opens: u64,
}

#[derive(Debug)]
struct Scheduled {
    only: Option<Operation>,
    /// How many matching operations are left, this one included.
    countdown: u64,
    effect: Effect,
}

/// The faults to come.
#[derive(Debug, Default)]
pub(super) struct Faults {
    scheduled: Vec<Scheduled>,
    pub(super) random: RandomFaults,
}

impl Faults {
    /// The `nth` operation from now on that matches has the effect; 1 is the next, 0 is none.
    pub(super) fn schedule(&mut self, only: Option<Operation>, nth: u64, effect: Effect) {
        if nth > 0 {
            self.scheduled.push(Scheduled { only, countdown: nth, effect });
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn clear_scheduled(&mut self) {
        self.scheduled.clear();
    }

    /// Counts an operation and says what happens to it. A crash wins over a failure.
    pub(super) fn next(&mut self, operation: Operation, prng: &mut crate::random::Prng) -> Option<Effect> {
        let mut effect = None;
        self.scheduled.retain_mut(|fault| {
            if fault.only.is_some_and(|only| only != operation) {
                return true;
            }
            fault.countdown -= 1;
            if fault.countdown == 0 && effect != Some(Effect::Crash) {
                effect = Some(fault.effect);
            }
            fault.countdown > 0
        });
        let one_in = match operation {
            Operation::Write | Operation::SetLen | Operation::Allocate | Operation::PunchHole => {
                self.random.write_fails_one_in
            }
            Operation::Sync | Operation::SyncAll => self.random.sync_fails_one_in,
            Operation::Create | Operation::Rename | Operation::Link | Operation::Remove | Operation::SyncDir => {
                self.random.names_fail_one_in
            }
        };
        if effect.is_none() && one_in > 0 && prng.one_in(one_in) {
            effect = Some(Effect::Fail);
        }
        effect
    }
}
