//! Reading messages: where a message lies, its header, parts of it, and what was derived from it.
//!
//! The bytes of a foreign message come from whoever serves its file ([`Foreign`]), and only their number is verified here.
//!
//! Invariant: every other byte that is given out was verified against a checksum, that of its block (segments) or that of the
//! whole message (tails; a message that was verified once by this reader is not verified again).

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use model::{EmailId, Error, ErrorKind, Result};
use platform::File;

use crate::foreign::{self, Foreign, ForeignMessage};
use crate::layout::Layout;
use crate::log::Log;
use crate::segment::column::{ColumnSpan, corrupt};
use crate::segment::format::{ROW_BYTES, SegmentRow};
use crate::segment::{LatePage, Segment};
use crate::state::State;
use crate::tail::{Tail, TailMessage, is_message_whole};

/// Messages in a tail up to this size are read and verified at once.
const TAIL_BUFFER_BYTES: u32 = 128 << 10;
/// Bytes given to a sink at once, at most.
const PIECE_BYTES: u64 = 128 << 10;
/// Rows read at once.
const ROW_PAGE: u32 = 128;
/// Ids read at once.
const ID_PAGE: u32 = 1024;

/// Reads messages of one account. Keeps the last block of each kind, so that neighbours cost one decompression; make one a
/// session or a thread.
#[derive(Debug)]
pub struct Reader {
    pub(crate) log: Arc<Log>,
    pub(crate) finder: Finder,
    heads: Block<Segment>,
    bodies: Block<Segment>,
    /// A header that lies in two blocks, or in a tail.
    scratch: Vec<u8>,
    /// The small tail message whose bytes are in `tail_bytes`, verified.
    tail_id: Option<EmailId>,
    tail_bytes: Vec<u8>,
    /// A large tail message that was verified.
    verified: Option<EmailId>,
    pub(crate) derived: crate::cache::Derived,
}

/// Finds messages. Apart from what it finds them for, so that a place can be borrowed while its bytes are read: a count of references
/// for every message would be a good part of reading small things.
#[derive(Debug)]
pub(crate) struct Finder {
    log: Arc<Log>,
    /// The layout as of the last look-up, and its version. Files that were replaced meanwhile are let go with the next look-up.
    layout: Arc<Layout>,
    layout_version: u64,
    pages: Pages,
    /// The state as of the last look for a foreign message, in an account that may have such, and how often messages had moved by then.
    state: Option<Arc<State>>,
    moved_version: u64,
}

/// The cells of the id table and the rows that were read last.
#[derive(Debug, Default)]
struct Pages {
    ids: Page,
    rows: Page,
    /// Of the table of late messages of one segment.
    late: (Option<Arc<Segment>>, LatePage),
}

/// A run of fixed-width cells of one segment.
#[derive(Debug, Default)]
struct Page {
    segment: Option<Arc<Segment>>,
    first: u32,
    bytes: Vec<u8>,
}

/// A file with columns.
pub(crate) trait BlockSource {
    /// Reads a block of a column; see [`crate::segment::column::read_block`].
    fn block(&self, span: &ColumnSpan, number: u64, raw: &mut Vec<u8>) -> Result<()>;
}

impl BlockSource for Segment {
    fn block(&self, span: &ColumnSpan, number: u64, raw: &mut Vec<u8>) -> Result<()> {
        self.read_block(span, number, raw)
    }
}

/// The last block that was read of one column.
#[derive(Debug)]
pub(crate) struct Block<F> {
    file: Option<Arc<F>>,
    number: u64,
    bytes: Vec<u8>,
}

impl<F> Default for Block<F> {
    fn default() -> Self {
        Block { file: None, number: 0, bytes: Vec::new() }
    }
}

/// What is known of a message without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInfo {
    /// Octets.
    pub len: u32,
    /// Octets of the header, the empty line included.
    pub header_len: u32,
    /// CRC32C of all its octets.
    pub crc: u32,
}

/// Where a message is.
#[derive(Clone, Debug)]
pub(crate) enum Place<'f> {
    Tail(Arc<Tail>, TailMessage),
    /// The row, and its number.
    Segment(&'f Arc<Segment>, SegmentRow, u32),
    /// Whoever serves its file knows.
    Foreign(ForeignMessage),
}

impl Place<'_> {
    fn info(&self) -> MessageInfo {
        match self {
            Place::Tail(_, message) => {
                MessageInfo { len: message.len, header_len: message.header_len, crc: message.crc }
            }
            Place::Segment(_, row, _) => MessageInfo { len: row.len, header_len: row.header_len, crc: row.crc },
            Place::Foreign(message) => {
                // Nothing else is known of its octets; the low half of the digest differs as well as a checksum would.
                let crc = message.digest as u32;
                MessageInfo { len: message.octets, header_len: message.header_octets, crc }
            }
        }
    }
}

fn is_same(a: &Option<Arc<Segment>>, b: &Arc<Segment>) -> bool {
    a.as_ref().is_some_and(|a| Arc::ptr_eq(a, b))
}

impl<F: BlockSource> Block<F> {
    fn load(&mut self, file: &Arc<F>, span: &ColumnSpan, number: u64) -> Result<&[u8]> {
        if self.number != number || !self.file.as_ref().is_some_and(|old| Arc::ptr_eq(old, file)) {
            self.file = None;
            file.block(span, number, &mut self.bytes)?;
            (self.file, self.number) = (Some(Arc::clone(file)), number);
        }
        Ok(&self.bytes)
    }

    /// Gives a range of the column's stream, which must lie inside it, to the sink.
    pub(crate) fn stream(
        &mut self,
        file: &Arc<F>,
        span: &ColumnSpan,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let block_bytes = u64::from(span.block_bytes.max(1));
        let mut at = range.start;
        while at < range.end {
            let bytes = self.load(file, span, at / block_bytes)?;
            let from = (at % block_bytes) as usize;
            let to = ((range.end - at).min(block_bytes) as usize).saturating_add(from).min(bytes.len());
            let piece = bytes.get(from..to).filter(|piece| !piece.is_empty());
            let piece = piece.ok_or_else(|| Error::new(ErrorKind::Corrupt, "a range reaches behind its column"))?;
            sink(piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }
}

fn beyond(segment: &Segment) -> Error {
    corrupt(&segment.path, segment.trailer.rows_at, "a message row points behind its column")
}

/// Gives the bytes of `range` of a message in a segment to the sink, through the blocks given.
pub(crate) fn stream_message(
    segment: &Arc<Segment>,
    row: &SegmentRow,
    range: Range<u64>,
    heads: &mut Block<Segment>,
    bodies: &mut Block<Segment>,
    sink: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (len, head_len) = (u64::from(row.len), u64::from(row.head_len));
    let (start, end) = (range.start.min(len), range.end.min(len));
    let trailer = &segment.trailer;
    let is_inside = |at: u64, len: u64, span: &ColumnSpan| at.checked_add(len).is_some_and(|end| end <= span.raw_len);
    if row.is_damaged {
        return Err(damaged_message(&segment.path, row.body_at, row.email_id));
    }
    if !is_inside(row.head_at, head_len, &trailer.heads) || !is_inside(row.body_at, len - head_len, &trailer.bodies) {
        return Err(beyond(segment));
    }
    let mut crc = 0;
    let is_whole = start == 0 && end == len;
    let mut check = |bytes: &[u8]| {
        if is_whole {
            crc = crc32c::crc32c_append(crc, bytes);
        }
        sink(bytes)
    };
    if start < head_len {
        let range = row.head_at + start..row.head_at + end.min(head_len);
        heads.stream(segment, &trailer.heads, range, &mut check)?;
    }
    if end > head_len {
        let range = row.body_at + start.max(head_len) - head_len..row.body_at + end - head_len;
        bodies.stream(segment, &trailer.bodies, range, &mut check)?;
    }
    if is_whole && crc != row.crc {
        return Err(damaged_message(&segment.path, row.body_at, row.email_id));
    }
    Ok(())
}

/// The header of a message in a segment, through the blocks given.
fn segment_header<'b>(
    segment: &Arc<Segment>,
    row: &SegmentRow,
    heads: &'b mut Block<Segment>,
    bodies: &mut Block<Segment>,
    scratch: &'b mut Vec<u8>,
) -> Result<&'b [u8]> {
    let span = &segment.trailer.heads;
    let block_bytes = u64::from(span.block_bytes.max(1));
    let end = row.head_at.saturating_add(u64::from(row.head_len));
    if row.is_damaged {
        return Err(damaged_message(&segment.path, row.head_at, row.email_id));
    }
    if end > span.raw_len {
        return Err(beyond(segment));
    }
    // The usual case: the whole header is in one block.
    if row.head_len == row.header_len && row.head_len > 0 && row.head_at / block_bytes == (end - 1) / block_bytes {
        let from = (row.head_at % block_bytes) as usize;
        let block = heads.load(segment, span, row.head_at / block_bytes)?;
        return block.get(from..from + row.head_len as usize).ok_or_else(|| beyond(segment));
    }
    scratch.clear();
    stream_message(segment, row, 0..u64::from(row.header_len), heads, bodies, &mut |bytes| {
        scratch.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(scratch)
}

impl Pages {
    /// The row of a message in a segment. A damaged id table is made up for by looking through the rows.
    fn row(&mut self, segment: &Arc<Segment>, id: EmailId) -> Result<Option<(SegmentRow, u32)>> {
        if segment.trailer.own_rows() == 0 {
            return Ok(None);
        }
        let index = (id.0 - segment.trailer.first_id) as u32;
        let page = &mut self.ids;
        if !is_same(&page.segment, segment)
            || index < page.first
            || (index - page.first) as usize * 4 >= page.bytes.len()
        {
            page.segment = None;
            page.first = index / ID_PAGE * ID_PAGE;
            segment.read_ids(page.first, ID_PAGE.min(segment.trailer.ids - page.first), &mut page.bytes)?;
            page.segment = Some(Arc::clone(segment));
        }
        let at = (index - page.first) as usize * 4;
        let number = page.bytes.get(at..at + 4).and_then(|cell| cell.try_into().ok()).map_or(0, u32::from_le_bytes);
        if let Some(number) = number.checked_sub(1).filter(|number| *number < segment.trailer.rows)
            && let Ok(row) = self.numbered_row(segment, number)
            && row.email_id == id
        {
            return Ok(Some((row, number)));
        }
        Self::scan(segment, id)
    }

    /// The row of a late message; `None` as well when the table is damaged.
    fn late_row(&mut self, segment: &Arc<Segment>, id: EmailId) -> Result<Option<(SegmentRow, u32)>> {
        if !is_same(&self.late.0, segment) {
            self.late = (Some(Arc::clone(segment)), LatePage::default());
        }
        let Some(number) = segment.late_row(id, &mut self.late.1)? else { return Ok(None) };
        let row = self.numbered_row(segment, number).ok().filter(|row| row.email_id == id);
        Ok(row.map(|row| (row, number)))
    }

    /// The row of a message, looked for among all.
    fn scan(segment: &Segment, id: EmailId) -> Result<Option<(SegmentRow, u32)>> {
        let mut damaged = None;
        for (n, row) in segment.rows()?.into_iter().enumerate() {
            match row {
                Ok(row) if row.email_id == id => return Ok(Some((row, n as u32))),
                Ok(_) => {}
                Err(error) => damaged = Some(error),
            }
        }
        damaged.map_or(Ok(None), Err)
    }

    fn numbered_row(&mut self, segment: &Arc<Segment>, number: u32) -> Result<SegmentRow> {
        let page = &mut self.rows;
        let is_in = is_same(&page.segment, segment)
            && number >= page.first
            && (number - page.first) as usize * ROW_BYTES < page.bytes.len();
        if !is_in {
            page.segment = None;
            page.first = number / ROW_PAGE * ROW_PAGE;
            segment.read_rows(page.first, ROW_PAGE.min(segment.trailer.rows - page.first), &mut page.bytes)?;
            page.segment = Some(Arc::clone(segment));
        }
        segment.row_in(&page.bytes, page.first, number)
    }
}

impl Finder {
    fn new(log: Arc<Log>) -> Self {
        let layout_version = log.layout_version.load(Ordering::Acquire);
        Finder { layout: log.layout(), layout_version, log, pages: Pages::default(), state: None, moved_version: 0 }
    }

    /// What is known of a foreign message. One that was expunged since the last look may still be known; that its bytes are gone
    /// is for whoever has the file to say.
    fn foreign(&mut self, id: EmailId) -> Option<ForeignMessage> {
        // The number first: the state that is read after it is not older.
        let moved_version = self.log.moved_version.load(Ordering::Acquire);
        if moved_version != self.moved_version {
            (self.state, self.moved_version) = (None, moved_version);
        }
        self.state.get_or_insert_with(|| self.log.state()).foreign(id)
    }

    /// Where a message is; `Expunged` when it is nowhere.
    pub(crate) fn place(&mut self, id: EmailId) -> Result<Place<'_>> {
        if let Some(journal) = &self.log.journal {
            let gone = || Error::new(ErrorKind::Expunged, format!("the message {id} is no longer there"));
            return journal.message(id)?.map(Place::Foreign).ok_or_else(gone);
        }
        if self.log.foreign.is_some()
            && let Some(message) = self.foreign(id)
        {
            return Ok(Place::Foreign(message));
        }
        // The version first: the layout that is read after it is not older.
        let version = self.log.layout_version.load(Ordering::Acquire);
        if version != self.layout_version {
            (self.layout, self.layout_version) = (self.log.layout(), version);
        }
        let layout = &self.layout;
        // Late messages first: the segment of their ids would be looked through in vain.
        for tail in layout.tails.iter().rev().filter(|tail| tail.may_have_late(id)) {
            if let Some(message) = tail.find(id) {
                return Ok(Place::Tail(Arc::clone(tail), message));
            }
        }
        for segment in layout.segments.iter().rev().filter(|segment| segment.may_have_late(id)) {
            if let Some((row, number)) = self.pages.late_row(segment, id)? {
                return Ok(Place::Segment(segment, row, number));
            }
        }
        // The segments first: most messages are there, and a tail has a lock.
        let at = layout.segments.partition_point(|segment| segment.trailer.first_id <= id.0);
        let candidates = layout.segments.get(..at).unwrap_or_default();
        if let Some(segment) = candidates.iter().rev().find(|segment| segment.may_have(id))
            && let Some((row, number)) = self.pages.row(segment, id)?
        {
            return Ok(Place::Segment(segment, row, number));
        }
        for tail in layout.tails.iter().rev() {
            if let Some(message) = tail.find(id) {
                return Ok(Place::Tail(Arc::clone(tail), message));
            }
        }
        if let Some(message) = self.log.state().foreign(id) {
            return Ok(Place::Foreign(message));
        }
        for segment in layout.segments.iter().rev().filter(|segment| segment.may_have_late(id)) {
            if let Some((row, number)) = Pages::scan(segment, id)? {
                return Ok(Place::Segment(segment, row, number));
            }
        }
        let kind = if self.log.is_damaged { ErrorKind::Corrupt } else { ErrorKind::Expunged };
        Err(Error::new(kind, format!("the message {id} is no longer there")))
    }
}

impl Reader {
    pub(crate) fn new(log: Arc<Log>) -> Self {
        Reader {
            finder: Finder::new(Arc::clone(&log)),
            log,
            heads: Block::default(),
            bodies: Block::default(),
            scratch: Vec::new(),
            tail_id: None,
            tail_bytes: Vec::new(),
            verified: None,
            derived: crate::cache::Derived::default(),
        }
    }

    /// The sizes and the checksum of a message. `Expunged`: it is no longer there.
    pub fn info(&mut self, id: EmailId) -> Result<MessageInfo> {
        Ok(self.finder.place(id)?.info())
    }

    /// The header, the empty line included. `Corrupt` when its bytes are damaged.
    pub fn header(&mut self, id: EmailId) -> Result<&[u8]> {
        match self.finder.place(id)? {
            Place::Segment(segment, row, _) => {
                segment_header(segment, &row, &mut self.heads, &mut self.bodies, &mut self.scratch)
            }
            Place::Tail(tail, message) => self.tail_header(&tail, &message, id),
            Place::Foreign(message) => {
                foreign::header(foreign_of(&self.log)?, id, &message, &mut self.scratch)?;
                Ok(&self.scratch)
            }
        }
    }

    fn tail_header(&mut self, tail: &Arc<Tail>, message: &TailMessage, id: EmailId) -> Result<&[u8]> {
        let header_len = message.header_len as usize;
        if message.len <= TAIL_BUFFER_BYTES {
            let bytes = self.tail_message(tail, message, id)?;
            return Ok(bytes.get(..header_len).unwrap_or(bytes));
        }
        self.verify_large(tail, message, id)?;
        self.scratch.resize(header_len, 0);
        read_verified(&*tail.file, &tail.path, &mut self.scratch, message.at)?;
        Ok(&self.scratch)
    }

    /// All bytes of a small message of a tail.
    fn tail_message(&mut self, tail: &Tail, message: &TailMessage, id: EmailId) -> Result<&[u8]> {
        if self.tail_id != Some(id) {
            self.tail_id = None;
            self.tail_bytes.resize(message.len as usize, 0);
            read_verified(&*tail.file, &tail.path, &mut self.tail_bytes, message.at)?;
            if crc32c::crc32c(&self.tail_bytes) != message.crc {
                return Err(damaged_message(&tail.path, message.at, id));
            }
            self.tail_id = Some(id);
        }
        Ok(&self.tail_bytes)
    }

    fn verify_large(&mut self, tail: &Tail, message: &TailMessage, id: EmailId) -> Result<()> {
        if self.verified != Some(id) {
            if !is_message_whole(&*tail.file, message)? {
                return Err(damaged_message(&tail.path, message.at, id));
            }
            self.verified = Some(id);
        }
        Ok(())
    }

    /// Gives the bytes of `range` (offsets in the whole message, header included; cut at its end) to `sink`, in pieces of at
    /// most 128 KiB. When the range is the whole message, the message's own checksum is verified as well: then what was
    /// given before an error must not be believed.
    pub fn range(&mut self, id: EmailId, range: Range<u64>, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.finder.place(id)? {
            Place::Segment(segment, row, _) => {
                stream_message(segment, &row, range, &mut self.heads, &mut self.bodies, sink)
            }
            Place::Tail(tail, message) => self.tail_range(&tail, &message, id, range, sink),
            Place::Foreign(message) => foreign::stream(foreign_of(&self.log)?, id, &message, range, sink),
        }
    }

    fn tail_range(
        &mut self,
        tail: &Arc<Tail>,
        message: &TailMessage,
        id: EmailId,
        range: Range<u64>,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let len = u64::from(message.len);
        let (start, end) = (range.start.min(len), range.end.min(len));
        if start >= end {
            return Ok(());
        }
        if message.len <= TAIL_BUFFER_BYTES {
            let bytes = self.tail_message(tail, message, id)?;
            return sink(bytes.get(start as usize..end as usize).unwrap_or_default());
        }
        self.verify_large(tail, message, id)?;
        let mut at = start;
        let mut piece = Vec::new();
        while at < end {
            piece.resize((end - at).min(PIECE_BYTES) as usize, 0);
            read_verified(&*tail.file, &tail.path, &mut piece, message.at + at)?;
            sink(&piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// A whole message. For small ones and for tests: large ones are better streamed by [`Reader::range`].
    pub fn whole(&mut self, id: EmailId) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.range(id, 0..u64::MAX, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }
}

/// Whoever has the bytes of foreign messages.
fn foreign_of(log: &Log) -> Result<&dyn Foreign> {
    let nobody = || Error::new(ErrorKind::Invalid, "the account was opened without the files of its messages");
    log.foreign.as_deref().ok_or_else(nobody)
}

fn damaged_message(path: &Path, at: u64, id: EmailId) -> Error {
    corrupt(path, at, format_args!("the bytes of message {id} do not match their checksum"))
}

fn read_verified(file: &dyn File, path: &Path, buf: &mut [u8], at: u64) -> Result<()> {
    crate::segment::column::read_or_corrupt(file, path, buf, at)
}

/// A message that [`Derive`] is asked about.
#[derive(Debug)]
pub struct MessageBytes<'a> {
    pub(crate) reader: &'a mut Reader,
    pub(crate) info: MessageInfo,
    pub(crate) id: EmailId,
}

impl MessageBytes<'_> {
    /// Its sizes.
    pub fn info(&self) -> MessageInfo {
        self.info
    }

    /// Its header; see [`Reader::header`].
    pub fn header(&mut self) -> Result<&[u8]> {
        self.reader.header(self.id)
    }

    /// Gives the bytes of `range` to `sink`; see [`Reader::range`].
    pub fn range(&mut self, range: Range<u64>, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.reader.range(self.id, range, sink)
    }
}

/// Makes what can be kept beside a message: its structure, its envelope, a preview. Implemented by the store.
pub trait Derive: Send + Sync + std::fmt::Debug {
    /// Changes whenever the blobs change; kept ones of another version are not used.
    fn version(&self) -> u32;

    /// How many blobs there are for a message, at most 16.
    fn columns(&self) -> usize;

    /// The blobs of one message, exactly [`Derive::columns`] of them. An error makes no blobs: the message is asked about
    /// again whenever somebody needs one.
    fn derive(&self, message: &mut MessageBytes<'_>) -> Result<Vec<Vec<u8>>>;

    /// A blob that needs nothing but the header, made from it; `None` for those that need the whole message: which these are depends on the
    /// column alone.
    fn derive_from_header(&self, column: usize, header: &[u8]) -> Option<Vec<u8>> {
        let _ = (column, header);
        None
    }
}
