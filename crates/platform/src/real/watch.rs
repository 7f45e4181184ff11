//! News of changes by `inotify(7)`, and by looking now and then where that is not to be had.
//!
//! One inotify and one thread, which sleeps in `poll(2)`, serve all watches. What is watched in the kernel are directories: the one that
//! holds the path, so that a file may be replaced by another of its name, or may not be there yet; and the path itself if it is one.
//! Many files of one directory share its watch.
//!
//! Invariants (of [`State`]): every number in `told` has an entry in `listeners`; a directory is in `told` exactly as long as somebody
//! watches in it; a listener is in `polled`, or under at least one directory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::RealDisk;
use crate::disk::{Disk, Metadata, parent_of};
use crate::watch::{NameChange, NameNews, OnChange, OnNames, Watch, WatchGuard};

/// How often paths are looked at that the kernel does not tell of.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The pause after news: who writes a large file in many pieces makes an event of each, which are one when they are read together, and what
/// comes first is told at once anyway.
const BREATH: Duration = Duration::from_millis(5);

/// Room for the events of one read, in bytes; one event takes 272 at most.
const EVENTS_BYTES: usize = 16 << 10;

/// File systems on which others make changes that this kernel does not see (statfs(2)): NFS, SMB, CIFS, 9P, FUSE, Ceph, AFS.
const REMOTE: [u64; 7] = [0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x0102_1997, 0x6573_5546, 0x00C3_6400, 0x5346_414F];

/// Watches paths for this process. The thread begins with the first watch and ends with the value.
#[derive(Debug, Default)]
pub struct RealWatch {
    hub: Mutex<Option<Arc<Hub>>>,
    /// For tests and for machines without inotify: look so often, and never ask the kernel.
    only_look_every: Option<Duration>,
}

impl RealWatch {
    /// One that never uses inotify and looks at each path so often.
    pub fn looking_every(period: Duration) -> Self {
        Self { hub: Mutex::default(), only_look_every: Some(period) }
    }

    fn hub(&self) -> io::Result<Arc<Hub>> {
        let mut hub = lock(&self.hub);
        if let Some(hub) = &*hub {
            return Ok(Arc::clone(hub));
        }
        let new = Arc::new(Hub::new(self.only_look_every)?);
        let of_thread = Arc::clone(&new);
        std::thread::Builder::new().name("watch".to_owned()).spawn(move || of_thread.run())?;
        *hub = Some(Arc::clone(&new));
        Ok(new)
    }
}

impl Watch for RealWatch {
    fn watch(&self, path: &Path, on_change: OnChange) -> io::Result<WatchGuard> {
        let hub = self.hub()?;
        let number = hub.add(path, Call::Path(on_change));
        Ok(WatchGuard::new(Registration { hub, number }))
    }

    fn watch_names(&self, dir: &Path, on_names: OnNames) -> io::Result<WatchGuard> {
        let hub = self.hub()?;
        let number = hub.add(dir, Call::Names(Arc::clone(&on_names)));
        if lock(&hub.state).polled.contains_key(&number) {
            on_names(NameNews::Blind);
        }
        Ok(WatchGuard::new(Registration { hub, number }))
    }

    fn settle(&self) {
        let hub = lock(&self.hub).clone();
        if let Some(hub) = hub {
            hub.deliver(&mut [MaybeUninit::uninit(); EVENTS_BYTES], None);
        }
    }
}

impl Drop for RealWatch {
    fn drop(&mut self) {
        // Guards that live on hear nothing more: nobody watches for them.
        if let Some(hub) = &*lock(&self.hub) {
            lock(&hub.state).has_ended = true;
            hub.wake();
        }
    }
}

/// One call of [`Watch::watch`] or [`Watch::watch_names`].
struct Registration {
    hub: Arc<Hub>,
    number: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.hub.remove(self.number);
    }
}

/// What the thread and the registrations share.
#[derive(Debug)]
struct Hub {
    inotify: Option<OwnedFd>,
    /// An eventfd: wakes the thread when it has other paths to look at, or has to end.
    wake: OwnedFd,
    look_every: Duration,
    /// Held by who reads events, until everyone was called about them: so nobody is told of a later change before an earlier one.
    delivering: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    has_ended: bool,
    next: u64,
    listeners: BTreeMap<u64, Listener>,
    /// By watch descriptor; then by the name in the directory, none for all of them.
    told: HashMap<i32, HashMap<Option<OsString>, BTreeSet<u64>>>,
    /// What was seen last at each path that is looked at.
    polled: BTreeMap<u64, Option<Metadata>>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State({} listeners, {} polled)", self.listeners.len(), self.polled.len())
    }
}

struct Listener {
    path: PathBuf,
    call: Call,
}

#[derive(Clone)]
enum Call {
    Path(OnChange),
    Names(OnNames),
}

/// Whom events concern.
#[derive(Default)]
struct News {
    changed: BTreeSet<u64>,
    /// In the order of the events.
    names: Vec<(u64, OfNames)>,
}

/// [`NameNews`], owned.
enum OfNames {
    Name(OsString, NameChange),
    Any,
    Blind,
}

impl News {
    fn any(&mut self, number: u64, listener: &Listener) {
        match listener.call {
            Call::Path(_) => drop(self.changed.insert(number)),
            Call::Names(_) => self.names.push((number, OfNames::Any)),
        }
    }
}

impl Hub {
    fn new(only_look_every: Option<Duration>) -> io::Result<Self> {
        // Without an inotify (EMFILE: the user has too many) everything is looked at.
        let inotify = match only_look_every {
            Some(_) => None,
            None => inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).ok(),
        };
        Ok(Self {
            inotify,
            wake: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            look_every: only_look_every.unwrap_or(LOOK_EVERY),
            delivering: Mutex::default(),
            state: Mutex::default(),
        })
    }

    fn wake(&self) {
        // It fails only when the count is at its end: then the thread is awake anyway.
        let _woken = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn add(&self, path: &Path, call: Call) -> u64 {
        let mut state = lock(&self.state);
        state.next += 1;
        let number = state.next;
        let is_names = matches!(call, Call::Names(_));
        state.listeners.insert(number, Listener { path: path.to_owned(), call });
        let is_told = is_names || self.tell(&mut state, parent_of(path), path.file_name(), number);
        let is_dir = is_names || RealDisk.metadata(path).is_ok_and(|metadata| metadata.is_dir);
        let is_told = is_told && (!is_dir || self.tell(&mut state, path, None, number));
        if !is_told {
            state.polled.insert(number, RealDisk.metadata(path).ok());
            self.wake();
        }
        number
    }

    /// Has the kernel tell of a name in a directory, or of all. False: it does not.
    fn tell(&self, state: &mut State, dir: &Path, name: Option<&OsStr>, number: u64) -> bool {
        let Some(inotify) = &self.inotify else { return false };
        if rustix::fs::statfs(dir).map_or(true, |stat| REMOTE.contains(&(stat.f_type as u64))) {
            return false;
        }
        // The same for all: adding a directory a second time gives the first watch and sets its flags anew.
        let flags = WatchFlags::ONLYDIR
            | WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        let Ok(watch) = inotify::add_watch(inotify, dir, flags) else { return false };
        state.told.entry(watch).or_default().entry(name.map(OsStr::to_owned)).or_default().insert(number);
        true
    }

    fn remove(&self, number: u64) {
        let mut state = lock(&self.state);
        state.listeners.remove(&number);
        state.polled.remove(&number);
        let inotify = &self.inotify;
        state.told.retain(|watch, names| {
            names.retain(|_, numbers| {
                numbers.remove(&number);
                !numbers.is_empty()
            });
            if let (true, Some(inotify)) = (names.is_empty(), inotify) {
                // Gone already when the directory is.
                let _removed = inotify::remove_watch(inotify, *watch);
            }
            !names.is_empty()
        });
    }

    /// The thread.
    fn run(&self) {
        let mut events = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut looked = Instant::now();
        loop {
            let wait = {
                let state = lock(&self.state);
                if state.has_ended {
                    return;
                }
                (!state.polled.is_empty()).then(|| self.look_every.saturating_sub(looked.elapsed()))
            };
            if !self.wait(wait) {
                return;
            }
            if self.deliver(&mut events, Some(&mut looked)) {
                std::thread::sleep(BREATH);
            }
        }
    }

    /// Reads what the kernel has to tell, and looks where it does not when it is time to; calls everyone concerned. Whether there was somebody.
    fn deliver(&self, buffer: &mut [MaybeUninit<u8>], looked: Option<&mut Instant>) -> bool {
        let _alone = lock(&self.delivering);
        let mut news = News::default();
        self.read_events(buffer, &mut news);
        if let Some(looked) = looked
            && looked.elapsed() >= self.look_every
        {
            self.look(&mut news);
            *looked = Instant::now();
        }
        // The listeners are free meanwhile: one may drop a guard.
        let call_of = |number: &u64| lock(&self.state).listeners.get(number).map(|listener| listener.call.clone());
        for number in &news.changed {
            if let Some(Call::Path(on_change)) = call_of(number) {
                on_change();
            }
        }
        for (number, change) in &news.names {
            if let Some(Call::Names(on_names)) = call_of(number) {
                on_names(match change {
                    OfNames::Name(name, change) => NameNews::Name(name, *change),
                    OfNames::Any => NameNews::Any,
                    OfNames::Blind => NameNews::Blind,
                });
            }
        }
        !news.changed.is_empty() || !news.names.is_empty()
    }

    /// Sleeps until there is something to do. False: the system does not let us wait, and a thread that spins helps nobody.
    fn wait(&self, time: Option<Duration>) -> bool {
        let timeout = time.map(|time| Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        });
        let mut fds = vec![PollFd::new(&self.wake, PollFlags::IN)];
        fds.extend(self.inotify.as_ref().map(|inotify| PollFd::new(inotify, PollFlags::IN)));
        let polled = rustix::event::poll(&mut fds, timeout.as_ref());
        // Only that it is empty again counts.
        let _woken = rustix::io::read(&self.wake, &mut [0u8; 8]);
        matches!(polled, Ok(_) | Err(Errno::INTR))
    }

    /// Collects whom the events of the kernel concern.
    fn read_events(&self, buffer: &mut [MaybeUninit<u8>], news: &mut News) {
        let Some(inotify) = &self.inotify else { return };
        let mut reader = inotify::Reader::new(inotify.as_fd(), buffer);
        while let Ok(event) = reader.next() {
            let mut state = lock(&self.state);
            let state = &mut *state;
            let flags = event.events();
            if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                state.listeners.iter().for_each(|(number, listener)| news.any(*number, listener));
                continue;
            }
            if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED) {
                // The path may lead to another directory from now on, or will some day: looking finds it. One that was only moved would be
                // told of for ever.
                let _removed = inotify::remove_watch(inotify, event.wd());
                for number in state.told.remove(&event.wd()).into_iter().flatten().flat_map(|(_, numbers)| numbers) {
                    if let Some(listener) = state.listeners.get(&number) {
                        state.polled.insert(number, RealDisk.metadata(&listener.path).ok());
                        match listener.call {
                            Call::Path(_) => drop(news.changed.insert(number)),
                            Call::Names(_) => news.names.push((number, OfNames::Blind)),
                        }
                    }
                }
                continue;
            }
            let Some(names) = state.told.get(&event.wd()) else { continue };
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
            news.changed.extend(names.get(&name).into_iter().flatten());
            // That a file's bytes changed is no news of its directory.
            let change = match flags {
                _ if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) => NameChange::Came,
                _ if flags.contains(ReadFlags::MOVED_FROM) => NameChange::Left,
                _ if flags.contains(ReadFlags::DELETE) => NameChange::Removed,
                _ => continue,
            };
            for number in names.get(&None).into_iter().flatten() {
                match state.listeners.get(number).map(|listener| &listener.call) {
                    Some(Call::Names(_)) => {
                        let change = name.clone().map_or(OfNames::Any, |name| OfNames::Name(name, change));
                        news.names.push((*number, change));
                    }
                    _ => drop(news.changed.insert(*number)),
                }
            }
        }
    }

    /// Looks at the paths that the kernel does not tell of.
    fn look(&self, news: &mut News) {
        let mut state = lock(&self.state);
        let State { polled, listeners, .. } = &mut *state;
        for (number, seen) in polled {
            let Some(listener) = listeners.get(number) else { continue };
            let now = RealDisk.metadata(&listener.path).ok();
            if *seen != now {
                *seen = now;
                news.any(*number, listener);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
