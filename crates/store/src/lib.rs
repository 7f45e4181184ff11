//! Accounts, mailboxes, views and changes: the one door to the mail.
//!
//! Every protocol and every tool goes through here, and every format stands behind here. What a function has returned `Ok` for is
//! durable (invariant 2); what is read has been checked (invariant 3); a [`View`] moves only when its holder asks (see
//! [`View::advance`]).
//!
//! Calls block for as long as a disk does. None of them keeps a lock while the caller is busy with something else.

mod account;
mod again;
mod aside;
pub mod backup;
mod changes;
mod check;
mod cluster;
pub mod convert;
mod deliveries;
mod derived;
mod edit;
pub mod export;
pub mod format;
pub mod import;
mod listeners;
mod mailboxes;
mod message;
mod metadata;
pub mod order;
mod pending;
mod quota;
mod reader;
mod recent;
mod restore;
pub mod search;
mod snapshot;
mod stats;
mod store;
mod view;
mod writes;

pub use account::{
    Account, Appended, Copied, Expunged, FlagNames, MailboxInfo, NewMessage, Status, StoreFlags, StoreMode, Stored,
};
pub use aside::Aside;
pub use changes::Changes;
pub use check::CheckReport;
pub use cluster::{Cluster, ClusterCopy};
pub use deliveries::{DELIVERIES_MAX, DeliveryId};
pub use edit::Edit;
pub use format::files::Moment;
pub use format::maildir::account::MaildirOptions;
pub use format::maildir::shared_uids::UidLists;
pub use format::mbox::account::{MboxOptions, WriteBack};
pub use format::{AccountFormat, MaildirLayout};
pub use index::{Finding, HandOver, Job};
pub use listeners::{Listener, ListenerGuard};
pub use message::{MessageWriter, PendingMessage};
pub use metadata::{METADATA_BYTES_MAX, METADATA_ENTRIES_MAX, METADATA_VALUE_BYTES_MAX, Metadata};
pub use pending::Pending;
pub use quota::{OwnLimit, OwnLimits, Quota, QuotaLimits, STORAGE_UNIT_BYTES};
pub use reader::Reader;
pub use restore::Restored;
pub use snapshot::{EntryNews, Naming, News, Snapshot};
pub use stats::Stats;
pub use store::{Options, Store};
pub use view::{Entry, EntryFlags, Rows, View};
pub use writes::WriteCounts;
