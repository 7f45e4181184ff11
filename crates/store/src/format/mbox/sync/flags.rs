//! Flags as a file's fields have them and as the log has them.

use model::{Flags, Keyword, KeywordTable, SystemFlag};

use crate::format::mbox::place::FileFlags;

/// What `Status` and `X-Status` can say, and what IMAP calls it.
const PAIRS: [(FileFlags, SystemFlag); 5] = [
    (FileFlags::SEEN, SystemFlag::Seen),
    (FileFlags::ANSWERED, SystemFlag::Answered),
    (FileFlags::FLAGGED, SystemFlag::Flagged),
    (FileFlags::DRAFT, SystemFlag::Draft),
    (FileFlags::DELETED, SystemFlag::Deleted),
];

/// The system flags that a file's fields say.
pub(in crate::format::mbox) fn system_flags(flags: FileFlags) -> Flags {
    let said = PAIRS.iter().filter(|(file, _)| flags.has(*file));
    said.fold(Flags::NONE, |flags, (_, flag)| flags.with(Flags::system(*flag)))
}

/// What a file's fields should say: the system flags, and that somebody has seen the message in the mailbox.
pub(in crate::format::mbox) fn file_flags(flags: Flags) -> FileFlags {
    let said = PAIRS.iter().filter(|(_, flag)| flags.has(*flag));
    said.fold(FileFlags::OLD, |flags, (file, _)| flags.with(*file))
}

/// The keywords of an entry, by name.
pub(in crate::format::mbox) fn keyword_names(flags: Flags, table: &KeywordTable) -> Vec<Keyword> {
    let mut names: Vec<Keyword> = flags.keyword_indexes().filter_map(|index| table.name(index).cloned()).collect();
    names.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    names
}
