//! Hundreds of connections in one thread: epoll(7) says which have something to read, and only those are looked at.
//!
//! One thread, since on a small machine every other would take processor time from the server; how much this one takes is measured and
//! recorded beside the result.

use super::session::Session;
use super::tally::{Counting, Tally};
use crate::error::{Doing, Error, Result};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Read at once from a connection.
const CHUNK_BYTES: usize = 64 << 10;
/// Events taken at once.
const EVENTS: usize = 256;

/// Connections at work.
pub struct Load {
    epoll: OwnedFd,
    sessions: Vec<Slot>,
    chunk: Vec<u8>,
    events: Vec<epoll::Event>,
    /// What it came to so far.
    pub tally: Tally,
}

struct Slot {
    session: Session,
    open: bool,
    /// Whether epoll is asked to say when there is room to send.
    sending: bool,
}

impl Load {
    /// Over connections that are logged in.
    pub fn new(sessions: Vec<Session>, tally: Tally) -> Result<Load> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).doing("epoll")?;
        for (number, session) in sessions.iter().enumerate() {
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, session.stream.socket(), data, epoll::EventFlags::IN).doing("epoll")?;
        }
        let sessions = sessions.into_iter().map(|session| Slot { session, open: true, sending: false }).collect();
        Ok(Load { epoll, sessions, chunk: vec![0; CHUNK_BYTES], events: Vec::with_capacity(EVENTS), tally })
    }

    /// Works for a while.
    pub fn work(&mut self, time: Duration, counting: Counting) -> Result<()> {
        self.tally.counting = counting;
        let until = Instant::now() + time;
        for number in 0..self.sessions.len() {
            self.with(number, |slot, _, _| slot.session.begin())?;
        }
        while Instant::now() < until {
            self.turn(until, true)?;
        }
        Ok(())
    }

    /// Waits until every command is answered and every idling connection was told of everything, or the time is over.
    pub fn finish(&mut self, grace: Duration) -> Result<()> {
        self.tally.counting = Counting::Late;
        let until = Instant::now() + grace;
        while Instant::now() < until && (self.busy() > 0 || self.tally.unseen() > 0) {
            self.turn(until, false)?;
        }
        Ok(())
    }

    /// Connections whose command is not answered.
    pub fn busy(&self) -> usize {
        self.sessions.iter().filter(|slot| slot.open && slot.session.is_busy()).count()
    }

    /// Waits for events and handles them.
    fn turn(&mut self, until: Instant, go_on: bool) -> Result<()> {
        self.events.clear();
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).doing("epoll")?;
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other.doing("epoll").map(drop)?,
        }
        for at in 0..self.events.len() {
            let Some((flags, data)) = self.events.get(at).map(|event| (event.flags, event.data)) else { break };
            let number = usize::try_from(data.u64()).unwrap_or(usize::MAX);
            self.with(number, |slot, chunk, tally| {
                if flags.contains(epoll::EventFlags::OUT) {
                    slot.session.stream.flush()?;
                }
                if flags.intersects(epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
                    slot.session.stream.receive(chunk)?;
                }
                slot.session.look(Instant::now(), go_on, tally)
            })?;
        }
        Ok(())
    }

    /// Does something with a connection; when that fails, the connection is closed and counted. An error when none is left that works.
    fn with(
        &mut self,
        number: usize,
        action: impl FnOnce(&mut Slot, &mut [u8], &mut Tally) -> Result<()>,
    ) -> Result<()> {
        let Load { epoll, sessions, chunk, tally, .. } = self;
        let Some(slot) = sessions.get_mut(number).filter(|slot| slot.open) else { return Ok(()) };
        if let Err(error) = action(slot, chunk, tally) {
            slot.open = false;
            tally.closed(&error.to_string());
            epoll::delete(&*epoll, slot.session.stream.socket()).doing("epoll")?;
            if !sessions.iter().any(|slot| slot.open && slot.session.is_worker()) {
                return Err(Error::new(format!("every connection was closed; the last one: {error}")));
            }
            return Ok(());
        }
        let waits = slot.session.stream.waits_to_send();
        if waits != slot.sending {
            slot.sending = waits;
            let out = if waits { epoll::EventFlags::OUT } else { epoll::EventFlags::empty() };
            let data = epoll::EventData::new_u64(number as u64);
            epoll::modify(&*epoll, slot.session.stream.socket(), data, epoll::EventFlags::IN | out).doing("epoll")?;
        }
        Ok(())
    }
}
