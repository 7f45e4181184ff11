//! The octets of messages that are in files, for the readers of the log.
//!
//! A reader goes by the map of the last look. When the file is not as it was then, the reading stops before anything wrong is given; after a
//! sync it goes on at the message's new place. When it is as it was then, as far as the system says, and yet the message is not there, the map
//! is doubted: the file is read whole, once.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use index::{Foreign, ForeignMessage};
use model::{EmailId, Error, ErrorKind, Result};
use platform::OpenMode;

use super::account::{FileBox, MboxAccount, Patience, lock};
use super::map::Map;
use super::place::Place;
use super::serve::{FileReader, Outcome};

/// How often a message is looked for anew in a file that changes.
const CHANGES_MAX: usize = 8;

impl Foreign for MboxAccount {
    fn header(&self, id: EmailId, message: &ForeignMessage, out: &mut Vec<u8>) -> Result<()> {
        self.read(id, &mut |reader, place| reader.header(place, message, out))
    }

    fn range(
        &self,
        id: EmailId,
        message: &ForeignMessage,
        mut range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut was_given = false;
        self.read(id, &mut |reader, place| {
            let mut given = false;
            let outcome = reader.range(place, message, range.clone(), &mut |piece| {
                given = true;
                // What was given cannot be taken back.
                if was_given {
                    Err(Error::new(ErrorKind::Corrupt, "the start of the message was wrong"))
                } else {
                    sink(piece)
                }
            });
            let outcome = outcome.inspect_err(|_| was_given |= given)?;
            if let Outcome::Changed { given } = outcome {
                range.start += given;
            }
            Ok(outcome)
        })
    }
}

/// One reading of a message at its place.
pub(super) type Read<'r> = dyn FnMut(&FileReader, &Place) -> Result<Outcome> + 'r;

impl MboxAccount {
    /// Lets `read` read the message wherever it is, again after each change of the file.
    pub(super) fn read(&self, id: EmailId, read: &mut Read<'_>) -> Result<()> {
        let (mut is_wrong, mut is_looked_for) = (false, false);
        for _ in 0..CHANGES_MAX {
            match self.read_once(id, read)? {
                Looked::Done => return Ok(()),
                Looked::Changed(file_box) => self.refresh(&file_box, Patience::Wait)?,
                Looked::Wrong(_, error) if is_wrong => return Err(error),
                Looked::Wrong(file_box, _) => {
                    is_wrong = true;
                    self.refresh(&file_box, Patience::Wait)?;
                }
                Looked::Nowhere if is_looked_for => {
                    return Err(Error::new(ErrorKind::Expunged, format!("the message {id} has left its file")));
                }
                Looked::Nowhere => {
                    is_looked_for = true;
                    self.look_for(id)?;
                }
            }
        }
        Err(Error::new(ErrorKind::InUse, "the mailbox file changes again and again"))
    }

    /// Looks at the files that may have a message, one that was not looked at since the account was opened, or that has changed.
    fn look_for(&self, id: EmailId) -> Result<()> {
        let state = self.state();
        for mailbox in state.all_mailboxes() {
            if mailbox.all_rows().any(|(_, row)| row.email_id == id)
                && let Ok(file_box) = self.file_box(MboxAccount::file_of(mailbox))
            {
                self.refresh(&file_box, Patience::Wait)?;
            }
        }
        for file_box in self.kept_boxes(&state) {
            self.refresh(&file_box, Patience::Wait)?;
        }
        Ok(())
    }

    /// See [`MboxAccount::read`]; for who has a turn, and cannot wait for another one.
    pub(super) fn read_as_known(&self, id: EmailId, read: &mut Read<'_>) -> Result<()> {
        match self.read_once(id, read)? {
            Looked::Done => Ok(()),
            Looked::Changed(_) => Err(Error::new(ErrorKind::InUse, "the mailbox file has just changed")),
            Looked::Wrong(_, error) => Err(error),
            // Not known to be anywhere is not known to be gone.
            Looked::Nowhere => {
                Err(Error::new(ErrorKind::InUse, format!("the message {id} has to be looked for first")))
            }
        }
    }

    /// See [`crate::format::files::Files::read_back`].
    pub(super) fn read_copy(
        &self,
        file_box: &FileBox,
        id: EmailId,
        known: &ForeignMessage,
        header: &mut Vec<u8>,
        octets: &mut Vec<u8>,
    ) -> Result<bool> {
        for _ in 0..CHANGES_MAX {
            self.refresh(file_box, Patience::Wait)?;
            let Some(map) = file_box.map() else { return Ok(false) };
            let Some(place) = map.find(id).next().and_then(|n| map.place(n)) else { return Ok(false) };
            let _still = file_box.moving.read().unwrap_or_else(PoisonError::into_inner);
            let Some(reader) = self.reader(file_box, &map)? else { continue };
            header.clear();
            octets.clear();
            let done = reader.header(&place, known, header).and_then(|outcome| match outcome {
                Outcome::Done => reader.range(&place, known, 0..u64::from(known.octets), &mut |piece| {
                    octets.extend_from_slice(piece);
                    Ok(())
                }),
                changed => Ok(changed),
            });
            match done {
                Ok(Outcome::Done) => return Ok(true),
                Ok(Outcome::Changed { .. }) => {}
                // The file has it, but not byte for byte.
                Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::InUse, "the mailbox file changes again and again"))
    }

    fn read_once(&self, id: EmailId, read: &mut Read<'_>) -> Result<Looked> {
        let mut changed = None;
        for file_box in self.open_boxes() {
            let Some(map) = file_box.map() else { continue };
            let Some(place) = map.find(id).next().and_then(|n| map.place(n)) else { continue };
            let _still = match file_box.moving.try_read() {
                Ok(still) => still,
                Err(_) => self.options.aside.run(|| file_box.moving.read().unwrap_or_else(PoisonError::into_inner)),
            };
            let outcome = match self.reader(&file_box, &map)? {
                Some(reader) => match read(&reader, &place) {
                    Err(error) if error.kind() == ErrorKind::Corrupt => {
                        file_box.is_doubted.store(true, Ordering::Relaxed);
                        return Ok(Looked::Wrong(Arc::clone(&file_box), error));
                    }
                    outcome => outcome?,
                },
                None => Outcome::Changed { given: 0 },
            };
            match outcome {
                Outcome::Done => return Ok(Looked::Done),
                Outcome::Changed { given: 0 } => changed = changed.or(Some(Arc::clone(&file_box))),
                Outcome::Changed { .. } => return Ok(Looked::Changed(Arc::clone(&file_box))),
            }
        }
        Ok(changed.map_or(Looked::Nowhere, Looked::Changed))
    }

    /// A reader of the file as `map` knows it; `None`: it is not that any more.
    fn reader(&self, file_box: &FileBox, map: &Map) -> Result<Option<Arc<FileReader>>> {
        let identity = map.facts().identity;
        let mut kept = lock(&file_box.reader);
        if let Some(reader) = kept.as_ref().filter(|reader| *reader.identity() == identity) {
            return Ok(Some(Arc::clone(reader)));
        }
        let Some(path) = self.path_of(file_box.id) else { return Ok(None) };
        let file = match self.env.disk.open(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::from(error).context(path.display())),
        };
        let reader = Arc::new(FileReader::new(file, identity));
        *kept = Some(Arc::clone(&reader));
        Ok(Some(reader))
    }
}

/// How looking for a message went.
enum Looked {
    Done,
    /// It was there, but the file has changed.
    Changed(Arc<FileBox>),
    /// Something else stands there, though the system says that the file has not changed; the next look will read all of it.
    Wrong(Arc<FileBox>, Error),
    Nowhere,
}
