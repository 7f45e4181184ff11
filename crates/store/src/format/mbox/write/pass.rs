//! The pass over the messages of a file: what happens to each, and where it comes to stand.
//!
//! While nothing has moved ([`Pass::shift`] is 0) a message that stays costs nothing, and values change in place at once. Everything else is
//! planned as a [`Rewrite`] and happens when the pass is over; octets that stay where they are, are not in its plan.

use std::sync::Arc;

use model::{Error, ErrorKind, Result};
use platform::{File, SECTOR_BYTES};

use super::append::Appender;
use super::fields::{Change, Content, Header, Style};
use super::files::{Files, Unsettled};
use super::head::{NewHead, Situation, is_dated, new_head};
use super::window::Window;
use super::{Fate, Outgoing, Settings, Target, Written, record};
use crate::format::mbox::from_line::PREFIX;
use crate::format::mbox::place::{ImapBase, Place};
use crate::format::mbox::rewrite::Rewrite;

/// When what would have to move is so many times what goes, that becomes filler. It is written twice, with the header behind it (journal and
/// file), and takes space until it is used; 2 to 4 times would break even in octets, the rest pays for the space.
const FILL_RATIO: u64 = 16;
/// No more of a file than one part in so many is filler.
const FILLER_PART: u64 = 8;

/// A longer line at the top of a file is not looked at for what is below it, octets.
const FIRST_LINE_BYTES_MAX: usize = 2048;
/// What the file says of itself is looked for in so much of its first header, octets.
const FIRST_HEADER_BYTES_MAX: u64 = 64 << 10;

/// See the module.
pub(super) struct Pass<'p> {
    target: Target<'p>,
    settings: &'p Settings,
    base: &'p ImapBase,
    placed: &'p mut dyn FnMut(Place) -> Result<()>,
    file: Arc<dyn File>,
    /// Heads, and values that are written over others in them.
    window: Window,
    files: Files,
    file_bytes: u64,
    unsettled: Unsettled,
    is_marked: bool,
    rewrite: Option<Rewrite>,
    /// How far messages move to the front from here on; negative: to the back.
    shift: i64,
    /// Where the messages that go now begin, in the old file.
    gap: Option<u64>,
    /// Where the next message must begin.
    at: u64,
    removed_bytes: u64,
    /// Filler that the file had, as far as is known.
    filler_before: u64,
    /// Filler that came, less that which went.
    filler: i64,
    /// Old filler is taken out everywhere.
    is_sweep: bool,
    /// What is removed becomes filler.
    fills: Option<bool>,
    /// Where the header of the first message of the file begins, as long as nothing was decided about it.
    first_header: Option<u64>,
    /// The places begin with the first message of the file.
    is_all: bool,
    /// The last one so far: not given yet, as its end may change.
    last: Option<Place>,
    /// Something was written to the file that was not synced.
    is_dirty: bool,
    in_place_bytes: u64,
    moved_bytes: u64,
    removed: u64,
    head: Vec<u8>,
}

impl<'p> Pass<'p> {
    pub(super) fn new(
        target: Target<'p>,
        settings: &'p Settings,
        base: &'p ImapBase,
        removed_bytes: u64,
        placed: &'p mut dyn FnMut(Place) -> Result<()>,
    ) -> Result<Self> {
        let file = Arc::clone(target.lock.file());
        let files = Files::new(target.dir, target.mailbox);
        let file_bytes = file.len()?;
        let disk = &target.env.disk;
        let filler_before = record::load_filler(&**disk, &files.filler)?;
        let is_too_much = filler_before.saturating_add(removed_bytes) > file_bytes / FILLER_PART;
        Ok(Pass {
            unsettled: Unsettled::of(disk, target.dir, target.mailbox),
            is_marked: false,
            target,
            settings,
            base,
            placed,
            window: Window::new(Arc::clone(&file), file_bytes),
            file,
            files,
            file_bytes,
            rewrite: None,
            shift: 0,
            gap: None,
            at: 0,
            removed_bytes,
            filler_before,
            filler: 0,
            is_sweep: is_too_much && filler_before > 0 && removed_bytes > 0,
            fills: None,
            first_header: first_header(&**target.lock.file())?,
            is_all: true,
            last: None,
            is_dirty: false,
            in_place_bytes: 0,
            moved_bytes: 0,
            removed: 0,
            head: Vec::new(),
        })
    }

    /// The next message of the file.
    pub(super) fn place(
        &mut self,
        number: usize,
        place: Place,
        fate: &mut dyn FnMut(usize, &Place, bool) -> Result<Fate>,
    ) -> Result<()> {
        let Place { start, header, body, end, next, .. } = place;
        let is_in_order = start <= header && header <= body && body <= end && end <= next && next <= self.file_bytes;
        if !is_in_order || (number > 0 && start != self.at) {
            return Err(self.wrong_places());
        }
        if number == 0 {
            self.is_all = self.first_header.is_none_or(|first| first >= header);
        }
        self.at = next;
        let is_written = self.shift != 0 || self.gap.is_some() || self.is_sweep;
        let kept = match fate(number, &place, is_written)? {
            Fate::Remove => return self.remove(&place),
            Fate::Keep if !is_written => place,
            Fate::Keep => self.write_head(place, Content::Kept)?,
            Fate::Update(wanted) => {
                let (flags, keywords) = wanted.placed();
                let kept = self.write_head(place, Content::Wanted(&wanted))?;
                Place { flags, keywords, ..kept }
            }
        };
        match self.last.replace(kept) {
            Some(before) => (self.placed)(before),
            None => Ok(()),
        }
    }

    fn remove(&mut self, place: &Place) -> Result<()> {
        self.mark()?;
        if self.gap.is_none() {
            let mut begin = [0; PREFIX.len()];
            self.file.read_exact_at(&mut begin, place.start)?;
            if begin != PREFIX {
                return Err(self.wrong_places());
            }
            self.gap = Some(place.start);
        }
        self.forget_first(place);
        self.shift += signed(place.next - place.start);
        self.removed += 1;
        Ok(())
    }

    /// Decides and plans what becomes of a message's head, and says where the message comes to stand.
    fn write_head(&mut self, place: Place, content: Content<'_>) -> Result<Place> {
        let mut head = std::mem::take(&mut self.head);
        self.window.read(place.start..place.body, &mut head)?;
        let from_line = (place.header - place.start) as usize;
        let (from_line, bytes) = head.split_at_checked(from_line).unwrap_or((&head, &[]));
        if !from_line.starts_with(PREFIX) {
            return Err(self.wrong_places());
        }
        let header = Header::new(bytes);
        let style = self.style(&place, &header, content);
        self.forget_first(&place);
        let new = match content {
            Content::Wanted(wanted) if self.may_stay(&header, &style) => match header.in_place(wanted, &style) {
                Some(Change::None) => None,
                Some(Change::Values(values)) => {
                    self.mark()?;
                    self.patch_values(place.header, &values)?;
                    None
                }
                // Lines that move about could be torn: they go through the journal.
                Some(Change::Lines(header)) if is_dated(from_line) => Some(NewHead::new(from_line, &header)),
                _ => self.new_head(&place, from_line, &header, content, &style),
            },
            _ => self.new_head(&place, from_line, &header, content, &style),
        };
        let kept = match new {
            None => self.pass_on(place)?,
            Some(new) => {
                let new_header = new.bytes.get(new.from_line..).unwrap_or_default();
                self.filler += signed(Header::new(new_header).filler() as u64) - signed(header.filler() as u64);
                self.mark()?;
                self.replace(&place, &head, &new)?
            }
        };
        self.head = head;
        Ok(kept)
    }

    /// What is to become of the first message is decided by what becomes of this one.
    fn forget_first(&mut self, place: &Place) {
        if self.first_header.is_some_and(|first| first >= place.header) {
            self.first_header = None;
        }
    }

    fn style(&self, place: &Place, header: &Header<'_>, content: Content<'_>) -> Style<'p> {
        // What the first one said goes with it; the next says it, if programs that read such fields have seen it.
        let says_base = match content {
            Content::Wanted(_) => true,
            Content::Kept => header.has_base() || (self.gap.is_some() && header.has_any()),
        };
        Style {
            is_crlf: place.is_crlf,
            padding: self.settings.padding_bytes,
            base: (says_base && self.is_all && self.last.is_none()).then_some(self.base),
            drop_length: header
                .content_length()
                .is_some_and(|length| !header.is_ended() || length != Some(place.end - place.body)),
        }
    }

    fn situation(&mut self, place: &Place, header: &Header<'_>) -> Situation {
        let fills = match self.fills {
            None if self.shift > 0 => {
                let removed = self.removed_bytes.max(self.shift.unsigned_abs());
                let is_little = removed.saturating_mul(FILL_RATIO) < self.file_bytes - place.start;
                let fills = is_little && self.filler_before.saturating_add(removed) <= self.file_bytes / FILLER_PART;
                *self.fills.insert(fills)
            }
            fills => fills.unwrap_or(false),
        };
        Situation {
            shift: self.shift,
            fill: fills.then_some(self.settings.filler_bytes_message_max),
            is_sweep: self.is_sweep,
            has_new_neighbour: self.gap.is_some_and(|gap| gap > 0),
            is_bare: header.is_ended() && place.body - place.header <= 2 && place.next == place.body,
        }
    }

    /// Whether a message neither moves nor has anything to be rid of.
    fn may_stay(&self, header: &Header<'_>, style: &Style<'_>) -> bool {
        // A Content-Length that leads nowhere could lead to a separator one day, when what is behind it has moved.
        let is_to_be_cleaned = style.drop_length || (self.is_sweep && header.filler() > 0);
        self.shift == 0 && self.gap.is_none() && !is_to_be_cleaned
    }

    fn new_head(
        &mut self,
        place: &Place,
        from_line: &[u8],
        header: &Header<'_>,
        content: Content<'_>,
        style: &Style<'_>,
    ) -> Option<NewHead> {
        let situation = self.situation(place, header);
        new_head(from_line, header, content, style, &situation)
    }

    fn patch_values(&mut self, header: u64, values: &[(usize, Vec<u8>)]) -> Result<()> {
        values.iter().try_for_each(|(at, value)| {
            self.window.write(header + *at as u64, value)?;
            self.is_dirty = true;
            self.in_place_bytes += value.len() as u64;
            Ok(())
        })
    }

    /// To be called before anything of what stands in the file changes, but for a number that keeps its place: a map from before would
    /// take a message that became filler, with mail added behind it, for one that is still there.
    fn mark(&mut self) -> Result<()> {
        if !self.is_marked {
            self.unsettled.mark()?;
            self.is_marked = true;
        }
        Ok(())
    }

    /// The plan, with what goes right before a message.
    fn plan(&mut self, to: u64) -> Result<&mut Rewrite> {
        if self.rewrite.is_none() {
            let Target { env, path, .. } = self.target;
            let file = Arc::clone(&self.file);
            let rewrite = Rewrite::begin(&env.disk, path, file, &self.files.rewrite, self.settings.rewrite)?;
            self.rewrite = Some(rewrite);
        }
        let gap = self.gap.take().unwrap_or(to);
        let rewrite = self.rewrite.as_mut().ok_or_else(|| Error::new(ErrorKind::Corrupt, "no plan"))?;
        rewrite.keep(gap.saturating_sub(rewrite.position()))?;
        rewrite.skip(to.saturating_sub(gap));
        Ok(rewrite)
    }

    /// A message whose head stays as it is.
    fn pass_on(&mut self, place: Place) -> Result<Place> {
        if self.gap.is_some() {
            self.plan(place.start)?;
        }
        if self.shift != 0 {
            self.moved_bytes += place.next - place.start;
        }
        let to = |at: u64| moved(at, self.shift);
        let place_of = || {
            let (start, header, body) = (to(place.start)?, to(place.header)?, to(place.body)?);
            Some(Place { start, header, body, end: to(place.end)?, next: to(place.next)?, ..place })
        };
        place_of().ok_or_else(|| self.wrong_places())
    }

    /// Plans a message with a new head.
    fn replace(&mut self, place: &Place, old: &[u8], new: &NewHead) -> Result<Place> {
        let before = self.shift;
        let after = before + signed(old.len() as u64) - signed(new.bytes.len() as u64);
        // What is the same on both sides is kept, unless only that would move.
        let prefix = if before != 0 && after == 0 { 0 } else { common_prefix(old, &new.bytes) };
        let (old_rest, new_rest) = (old.get(prefix..).unwrap_or_default(), new.bytes.get(prefix..).unwrap_or_default());
        let suffix = common_suffix(old_rest, new_rest);
        let inserted = new_rest.get(..new_rest.len() - suffix).unwrap_or_default();
        let rewrite = self.plan(place.start)?;
        rewrite.keep(prefix as u64)?;
        rewrite.skip((old_rest.len() - suffix) as u64);
        rewrite.insert(inserted)?;
        match after {
            0 => self.in_place_bytes += inserted.len() as u64,
            _ => self.moved_bytes += new.bytes.len() as u64 + (place.next - place.body),
        }
        self.shift = after;
        let behind = new.behind as u64;
        let place_of = || {
            let start = moved(place.start, before)?;
            // A header without an empty line behind it ends where the message does.
            let (body, end) = (moved(place.body, after)? - behind, moved(place.end, after)? - behind);
            let (header, next) = (start + new.from_line as u64, moved(place.next, after)?);
            let is_crlf = new.bytes.get(..new.from_line)?.ends_with(b"\r\n");
            Some(Place { start, header, body, end, next, is_crlf, ..*place })
        };
        place_of().ok_or_else(|| self.wrong_places())
    }

    /// All messages were given: does the rest, and adds those that come.
    pub(super) fn finish<'m>(mut self, append: &mut dyn Iterator<Item = Outgoing<'m>>) -> Result<Written> {
        match self.carry_out(append) {
            Ok((file_bytes, appended, appended_bytes)) => Ok(Written {
                file_bytes,
                in_place_bytes: self.in_place_bytes,
                moved_bytes: self.moved_bytes,
                appended_bytes,
                removed: self.removed,
                appended,
                unsettled: self.unsettled,
            }),
            Err(error) => Err(self.abandon(error)),
        }
    }

    /// Nothing of what was planned happens.
    pub(super) fn abandon(self, error: Error) -> Error {
        if let Some(rewrite) = self.rewrite {
            // What cannot be removed is found by `recover`.
            let _removed = rewrite.abandon();
        }
        if error.kind() == ErrorKind::Io && self.is_marked {
            // If that fails as well, then because the power is gone, and memory with it; or everything fails, and nothing can be promised.
            let _noted = self.unsettled.doubt();
        }
        error
    }

    fn carry_out<'m>(&mut self, append: &mut dyn Iterator<Item = Outgoing<'m>>) -> Result<(u64, u64, u64)> {
        let has_messages = self.last.is_some() || self.removed > 0;
        if has_messages && self.at != self.file_bytes {
            return Err(self.wrong_places());
        }
        let mut append = append.peekable();
        let is_added_to = append.peek().is_some();
        let was_changed = self.rewrite.is_some() || self.is_dirty || self.removed > 0;
        let is_changed = was_changed || is_added_to;
        if is_changed {
            self.update_base()?;
        }
        let mut file_bytes = self.move_rest()?;
        // The number that the first message has of the last UID becomes durable with what is added.
        if std::mem::take(&mut self.is_dirty) && (was_changed || !is_added_to) {
            self.file.sync_data()?;
        }
        self.save_filler()?;
        let (mut count, mut bytes) = (0, 0);
        if append.peek().is_some() {
            let (target, files) = (self.target, self.files.clone());
            let last = self.last.as_mut();
            let mut appender = Appender::begin(&target, &files, self.settings, self.base, file_bytes, last)?;
            if let Some(last) = self.last.take() {
                (self.placed)(last)?;
            }
            for message in append {
                appender.push(message, self.placed)?;
            }
            file_bytes = appender.finish()?;
            (count, bytes) = (appender.count, appender.bytes);
        }
        if let Some(last) = self.last.take() {
            (self.placed)(last)?;
        }
        Ok((file_bytes, count, bytes))
    }

    /// What the first message says of the file, when nothing else was written there.
    fn update_base(&mut self) -> Result<()> {
        self.window.flush()?;
        let Some(first) = self.first_header else { return Ok(()) };
        let mut bytes = vec![0; (self.file_bytes.saturating_sub(first)).min(FIRST_HEADER_BYTES_MAX) as usize];
        self.file.read_exact_at(&mut bytes, first)?;
        bytes.truncate(mime::header_len(&bytes));
        if let Some((at, value)) = Header::new(&bytes).base_in_place(self.base)
            && !value.is_empty()
        {
            // A number in one sector is the old one or the new one.
            let first_at = first + at as u64;
            if first_at / SECTOR_BYTES != (first_at + value.len() as u64 - 1) / SECTOR_BYTES {
                self.mark()?;
            }
            let written = self.patch_values(first, &[(at, value.clone())]).and_then(|()| self.window.flush());
            if let Err(error) = written {
                // A part of it may be there, and half a number is another number.
                if let Some(before) = bytes.get(at..at + value.len()) {
                    let _restored = self.file.write_at(before, first_at);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Moves what moves, or cuts off what goes at the end. Gives the length of the file.
    fn move_rest(&mut self) -> Result<u64> {
        if self.rewrite.is_some() {
            self.plan(self.file_bytes)?;
        }
        if let Some(rewrite) = self.rewrite.take() {
            // It syncs what it writes, and nothing else.
            if std::mem::take(&mut self.is_dirty) {
                self.file.sync_data()?;
            }
            return rewrite.run();
        }
        let Some(gap) = self.gap.take() else { return Ok(self.file_bytes) };
        // Text before the first message would make it no mbox.
        let len = if self.last.is_none() { 0 } else { gap };
        self.file.set_len(len)?;
        self.is_dirty = true;
        Ok(len)
    }

    fn save_filler(&self) -> Result<()> {
        let before = if self.is_sweep { 0 } else { signed(self.filler_before) };
        let filler = before.saturating_add(self.filler).max(0).unsigned_abs();
        if filler == self.filler_before {
            return Ok(());
        }
        record::save_filler(&*self.target.env.disk, &self.files.filler, filler)
    }

    fn wrong_places(&self) -> Error {
        let path = self.target.path.display();
        Error::new(ErrorKind::Corrupt, format!("{path} is not as it was when it was read last"))
    }
}

/// Where the header of the first message of a file begins, if it begins with one, or with line ends before it.
fn first_header(file: &dyn File) -> Result<Option<u64>> {
    let mut bytes = [0; FIRST_LINE_BYTES_MAX];
    let len = file.read_at(&mut bytes, 0)?;
    let bytes = bytes.get(..len).unwrap_or_default();
    let start = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let line = bytes.get(start..).filter(|line| line.starts_with(PREFIX));
    let end = line.and_then(|line| memchr::memchr(b'\n', line));
    Ok(end.map(|end| (start + end) as u64 + 1))
}

/// Lengths of files are below 2^63.
fn signed(octets: u64) -> i64 {
    i64::try_from(octets).unwrap_or(i64::MAX)
}

fn moved(at: u64, shift: i64) -> Option<u64> {
    at.checked_add_signed(shift.checked_neg()?)
}

/// Octets that both begin with.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    const CELL: usize = 32;
    let cells = one.chunks_exact(CELL).zip(other.chunks_exact(CELL));
    let begin = cells.take_while(|(one, other)| one == other).count() * CELL;
    let rest = one.iter().zip(other).skip(begin);
    begin + rest.take_while(|(one, other)| one == other).count()
}

/// Octets that both end with.
fn common_suffix(one: &[u8], other: &[u8]) -> usize {
    const CELL: usize = 32;
    let cells = one.rchunks_exact(CELL).zip(other.rchunks_exact(CELL));
    let end = cells.take_while(|(one, other)| one == other).count() * CELL;
    let rest = one.iter().rev().zip(other.iter().rev()).skip(end);
    end + rest.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn what_both_have(start in "[ab]{0,100}", one in "[ab]{0,9}", other in "[ab]{0,9}", end in "[ab]{0,100}") {
            let (one, other) = ([&start, one.as_str(), &end].concat(), [&start, other.as_str(), &end].concat());
            let same = |(one, other): &(u8, u8)| one == other;
            let prefix = one.bytes().zip(other.bytes()).take_while(same).count();
            proptest::prop_assert_eq!(common_prefix(one.as_bytes(), other.as_bytes()), prefix);
            let suffix = one.bytes().rev().zip(other.bytes().rev()).take_while(same).count();
            proptest::prop_assert_eq!(common_suffix(one.as_bytes(), other.as_bytes()), suffix);
        }
    }
}
