//! The limits of the grammar. Each has a name, which is what the error shows; each is tested at and one over.

/// Longest tag, octets.
pub const TAG_BYTES_MAX: usize = 128;
/// Octets of one command outside its literals. Long lists of numbers need room: 64 KiB is what the large servers allow.
pub const LINE_BYTES_MAX: usize = 65_536;
/// Octets of all literals of one command that are kept in memory. The messages of APPEND and REPLACE are streamed and do not count.
pub const LITERAL_MEMORY_BYTES_MAX: usize = 65_536;
/// Literals of one command that are kept in memory.
pub const LITERALS_PER_COMMAND_MAX: usize = 1000;
/// Largest non-synchronising literal under LITERAL- (RFC 7888 §5), octets.
pub const LITERAL_MINUS_BYTES_MAX: u64 = 4096;
/// How deep search keys and parentheses may nest.
pub const NESTING_MAX: usize = 100;
/// Search keys in one SEARCH, counted at all depths.
pub const SEARCH_KEYS_MAX: usize = 1000;
/// Criteria in one SORT.
pub const SORT_CRITERIA_MAX: usize = 100;
/// Mailbox specifiers in one ESEARCH, and mailboxes in one of them.
pub const SEARCH_SOURCES_MAX: usize = 1000;
/// Entries in one GETMETADATA or SETMETADATA.
pub const METADATA_ENTRIES_MAX: usize = 1000;
/// Longest name of a metadata entry, octets.
pub const METADATA_ENTRY_BYTES_MAX: usize = 1000;
/// Tags in one CANCELUPDATE.
pub const CANCELLED_TAGS_MAX: usize = 100;
/// Numbers and ranges in one sequence set as it is written.
pub const SET_RANGES_MAX: usize = 20_000;
/// Items in one FETCH.
pub const FETCH_ITEMS_MAX: usize = 500;
/// Header field names in one HEADER.FIELDS.
pub const HEADER_FIELDS_MAX: usize = 500;
/// Numbers in one section-part: the depth of nested parts that can be asked for.
pub const SECTION_PART_DEPTH_MAX: usize = 100;
/// Flags in one flag list.
pub const FLAGS_MAX: usize = 200;
/// Groups of events in one NOTIFY.
pub const EVENT_GROUPS_MAX: usize = 100;
/// Events in one of them.
pub const EVENTS_MAX: usize = 50;
/// Resources in one SETQUOTA.
pub const QUOTA_RESOURCES_MAX: usize = 20;
/// Patterns in one LIST.
pub const LIST_PATTERNS_MAX: usize = 100;
/// Capabilities in one ENABLE.
pub const ENABLE_MAX: usize = 100;
/// Field-value pairs of ID (RFC 2971 §3.3).
pub const ID_PAIRS_MAX: usize = 30;
/// Values in one list of a response; for clients.
pub const RESPONSE_LIST_MAX: usize = 100_000;
/// Items in one FETCH response; for clients.
pub const RESPONSE_ITEMS_MAX: usize = 10_000;
/// Names in one CAPABILITY or ENABLED response; for clients.
pub const CAPABILITIES_MAX: usize = 1000;
/// Numbers in one SEARCH response; for clients: 40 MB of memory.
pub const SEARCH_NUMBERS_MAX: usize = 10_000_000;
/// Largest value of number64, and of a mod-sequence-value: 63 bits (RFC 9051 §9, RFC 7162 §7).
pub const NUMBER64_MAX: u64 = i64::MAX as u64;
