//! One mailbox as a Maildir (Maildir++ names, `:2,` flags, keyword letters by `dovecot-keywords`).

use std::path::Path;
use std::sync::Arc;

use model::{Flags, KeywordTable, Result, SystemFlag};
use platform::{Disk, File, OpenMode, Timestamp};

use super::{Job, Source, to_lf};
use crate::View;

/// Letters for keywords: `a` to `z`.
const LETTERS_MAX: usize = 26;
/// Octets that are written at a time.
const WRITE_BYTES: usize = 1 << 20;
const FORWARDED: &str = "$Forwarded";

/// Writes all messages of `view` to a new Maildir, which is durable then: every file is synced, and the names behind them.
pub(super) fn write(job: &mut Job<'_>, view: &View, path: &Path) -> Result<()> {
    let disk = Arc::clone(&job.account.inner.env().disk);
    for name in ["cur", "new", "tmp"] {
        disk.create_dir_all_durable(&path.join(name))?;
    }
    let letters = Letters::new(view.keywords());
    for keyword in &letters.left_out {
        job.report.notes.push(format!("{}: a Maildir has no letter left for the keyword {keyword}", path.display()));
    }
    write_keywords(&*disk, path, &letters.by_letter)?;
    let now = job.account.inner.env().clock.now().seconds;
    let mut number = 0u32;
    job.messages(view, &mut |mut source| {
        number += 1;
        write_message(&*disk, path, &mut source, &letters, &format!("{now}.M{number:010}.mailyard"))
    })?;
    disk.sync_dir(&path.join("cur"))?;
    Ok(disk.sync_dir(path)?)
}

fn write_message(
    disk: &dyn Disk,
    dir: &Path,
    source: &mut Source<'_>,
    letters: &Letters<'_>,
    name: &str,
) -> Result<()> {
    let shape = source.shape()?;
    let entry = source.entry;
    let size = u64::from(entry.size);
    let file_size = if shape.is_raw { size } else { size - shape.line_ends };
    let mut name = format!("{name},S={file_size},W={size}");
    if entry.internal_date.offset_minutes != 0 {
        name.push_str(&format!(",Z={}", entry.internal_date.offset_minutes));
    }
    name.push_str(":2,");
    name.push_str(&letters.of(entry.flags));
    let path = dir.join("cur").join(name);
    let file = disk.open(&path, OpenMode::CreateNew)?;
    let result = write_bytes(source, shape.is_raw, &*file);
    if result.is_err() {
        disk.remove(&path)?;
        return result;
    }
    file.set_modified(Timestamp::from_seconds(entry.internal_date.unix_seconds))?;
    // The time is the internal date for those who read the Maildir, so it has to last as well.
    Ok(file.sync_all()?)
}

fn write_bytes(source: &mut Source<'_>, is_raw: bool, file: &dyn File) -> Result<()> {
    let (mut out, mut at, mut held) = (Vec::new(), 0, false);
    source.for_pieces(&mut |piece| {
        if is_raw {
            out.extend_from_slice(piece);
        } else {
            to_lf(piece, &mut held, &mut out);
        }
        if out.len() >= WRITE_BYTES {
            file.write_at(&out, at)?;
            at += out.len() as u64;
            out.clear();
        }
        Ok(())
    })?;
    if held {
        out.push(b'\r');
    }
    Ok(file.write_at(&out, at)?)
}

/// `0 NAME` for the letter `a` and so on.
fn write_keywords(disk: &dyn Disk, dir: &Path, by_letter: &[&str]) -> Result<()> {
    if by_letter.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = by_letter.iter().enumerate().map(|(n, name)| format!("{n} {name}\n")).collect();
    let file = disk.open(&dir.join("dovecot-keywords"), OpenMode::CreateNew)?;
    file.write_at(lines.concat().as_bytes(), 0)?;
    Ok(file.sync_all()?)
}

/// The letters of a mailbox's flags.
struct Letters<'a> {
    table: &'a KeywordTable,
    by_letter: Vec<&'a str>,
    left_out: Vec<&'a str>,
}

impl<'a> Letters<'a> {
    fn new(table: &'a KeywordTable) -> Self {
        let names = table.iter().map(|keyword| keyword.as_str()).filter(|name| !name.eq_ignore_ascii_case(FORWARDED));
        let mut by_letter: Vec<&str> = names.collect();
        let left_out = by_letter.split_off(by_letter.len().min(LETTERS_MAX));
        Letters { table, by_letter, left_out }
    }

    /// In the order of the alphabet, as the Maildir specification asks.
    fn of(&self, flags: Flags) -> String {
        let system = [
            (SystemFlag::Draft, 'D'),
            (SystemFlag::Flagged, 'F'),
            (SystemFlag::Answered, 'R'),
            (SystemFlag::Seen, 'S'),
            (SystemFlag::Deleted, 'T'),
        ];
        let mut letters: Vec<char> = system.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, c)| *c).collect();
        for name in self.table.names(flags) {
            if name.eq_ignore_ascii_case(FORWARDED) {
                letters.push('P');
            } else if let Some(at) = self.by_letter.iter().position(|other| *other == name) {
                letters.extend(char::from_u32('a' as u32 + at as u32));
            }
        }
        letters.sort_unstable();
        letters.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use model::Keyword;

    use super::*;

    #[test]
    fn so_many_keywords_have_letters_and_no_more() {
        let mut table = KeywordTable::default();
        let mut add = |name: String| Flags::keyword(table.insert(Keyword::new(&name).unwrap()).unwrap());
        add(FORWARDED.to_owned());
        let all = (0..=LETTERS_MAX).map(|n| add(format!("k{n}"))).fold(Flags::NONE, Flags::with);
        let letters = Letters::new(&table);
        assert_eq!(letters.of(all), "abcdefghijklmnopqrstuvwxyz");
        assert_eq!((letters.by_letter.len(), letters.left_out), (LETTERS_MAX, vec!["k26"]));
    }
}
