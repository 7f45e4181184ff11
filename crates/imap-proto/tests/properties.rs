//! Properties of commands: what is written is read again; junk is read or refused, never a panic; limits hold at and one over.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::num::NonZeroU32;

use mailyard_imap_proto::command::*;
use mailyard_imap_proto::{
    Event, FlagName, FrameLimits, ListPattern, MailboxArg, PartialRange, Reader, SeqNumber, SeqRange, SequenceSet,
    limits,
};
use model::{CivilDate, DateTime, Keyword, ModSeq, NumSet, SYSTEM_FLAGS, SpecialUse, UidValidity};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn octets() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(1u8.., 0..12),
        "[ -~]{0,12}".prop_map(String::into_bytes),
        Just(b"NIL".to_vec()),
        Just(b"{3}".to_vec())
    ]
}

fn mailbox() -> impl Strategy<Value = MailboxArg> {
    octets().prop_map(MailboxArg)
}

fn nonzero() -> impl Strategy<Value = NonZeroU32> {
    (1u32..).prop_map(|n| NonZeroU32::new(n).unwrap())
}

fn seq_number() -> impl Strategy<Value = SeqNumber> {
    prop_oneof![nonzero().prop_map(SeqNumber::Number), Just(SeqNumber::Largest)]
}

fn set() -> impl Strategy<Value = SequenceSet> {
    let ranges = vec((seq_number(), seq_number()).prop_map(|(first, last)| SeqRange { first, last }), 1..5);
    prop_oneof![
        (ranges, any::<bool>()).prop_map(|(ranges, saved)| SequenceSet { ranges, saved }),
        Just(SequenceSet { ranges: vec![], saved: true })
    ]
}

fn num_set() -> impl Strategy<Value = NumSet> {
    vec(1u32.., 1..6).prop_map(|numbers| numbers.into_iter().collect())
}

fn number64() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10, Just(limits::NUMBER64_MAX)]
}

fn modseq() -> impl Strategy<Value = ModSeq> {
    number64().prop_map(ModSeq)
}

fn keyword() -> impl Strategy<Value = Keyword> {
    "[$A-Za-z0-9._-]{1,8}".prop_map(|name| Keyword::new(&name).unwrap())
}

fn flag() -> impl Strategy<Value = FlagName> {
    prop_oneof![
        proptest::sample::select(&SYSTEM_FLAGS[..]).prop_map(FlagName::System),
        keyword().prop_map(FlagName::Keyword),
        Just(FlagName::Recent),
        "x[a-z]{1,5}".prop_map(|name| FlagName::Extension(format!("\\{name}"))),
    ]
}

fn partial_range() -> impl Strategy<Value = PartialRange> {
    prop_oneof![
        (nonzero(), nonzero()).prop_map(|(a, b)| PartialRange::FromFirst(a, b)),
        (nonzero(), nonzero()).prop_map(|(a, b)| PartialRange::FromLast(a, b)),
    ]
}

fn date() -> impl Strategy<Value = CivilDate> {
    (0i64..2_000_000).prop_map(CivilDate::from_days)
}

fn status_atts() -> impl Strategy<Value = Vec<StatusAtt>> {
    proptest::sample::subsequence(StatusAtt::EVERY.to_vec(), 1..=StatusAtt::EVERY.len())
}

fn part(least: usize) -> impl Strategy<Value = SectionPart> {
    vec(nonzero(), least..4).prop_map(SectionPart)
}

fn section() -> impl Strategy<Value = Section> {
    let field = prop_oneof!["[A-Za-z-]{1,8}".prop_map(String::into_bytes), "[ -~]{0,5}".prop_map(String::into_bytes)];
    let text = prop_oneof![
        Just(SectionText::Full),
        Just(SectionText::Header),
        vec(field.clone(), 1..4).prop_map(SectionText::HeaderFields),
        vec(field, 1..4).prop_map(SectionText::HeaderFieldsNot),
        Just(SectionText::Text),
    ];
    prop_oneof![
        (part(0), text).prop_map(|(part, text)| Section { part, text }),
        part(1).prop_map(|part| Section { part, text: SectionText::Mime })
    ]
}

fn fetch_att() -> impl Strategy<Value = FetchAtt> {
    let partial = || option::of((number64(), 1u64..9).prop_map(|(offset, length)| Partial { offset, length }));
    prop_oneof![
        proptest::sample::select(vec![
            FetchAtt::Envelope,
            FetchAtt::Flags,
            FetchAtt::InternalDate,
            FetchAtt::Rfc822Size,
            FetchAtt::Body,
            FetchAtt::BodyStructure,
            FetchAtt::Uid,
            FetchAtt::Rfc822,
            FetchAtt::Rfc822Header,
            FetchAtt::Rfc822Text,
            FetchAtt::ModSeq,
            FetchAtt::SaveDate,
            FetchAtt::Preview { lazy: false },
            FetchAtt::Preview { lazy: true },
            FetchAtt::EmailId,
            FetchAtt::ThreadId,
        ]),
        (section(), any::<bool>(), partial()).prop_map(|(section, peek, partial)| FetchAtt::BodySection {
            section,
            peek,
            partial
        }),
        (part(0), any::<bool>(), partial()).prop_map(|(part, peek, partial)| FetchAtt::Binary { part, peek, partial }),
        part(0).prop_map(|part| FetchAtt::BinarySize { part }),
    ]
}

fn without_duplicates(all: Vec<FetchAtt>) -> Vec<FetchAtt> {
    let mut items: Vec<FetchAtt> = Vec::new();
    for item in all {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

fn fetch() -> impl Strategy<Value = Fetch> {
    let modifiers = (option::of(modseq()), any::<bool>(), option::of(partial_range()));
    (any::<bool>(), set(), vec(fetch_att(), 1..6), modifiers).prop_map(|(uid, set, all, modifiers)| {
        let items = without_duplicates(all);
        let (changed_since, vanished, partial) = modifiers;
        let vanished = vanished && uid && changed_since.is_some();
        let modifiers = FetchModifiers { changed_since, vanished, partial: partial.filter(|_| uid) };
        Fetch { uid, set, items, modifiers }
    })
}

fn search_key() -> impl Strategy<Value = SearchKey> {
    let text = prop_oneof![
        octets().prop_map(SearchKey::Bcc),
        octets().prop_map(SearchKey::Body),
        octets().prop_map(SearchKey::Cc),
        octets().prop_map(SearchKey::From),
        octets().prop_map(SearchKey::Subject),
        octets().prop_map(SearchKey::Text),
        octets().prop_map(SearchKey::To),
        (octets(), octets()).prop_map(|(name, value)| SearchKey::Header { name, value }),
    ];
    let day = (date(), 0usize..9).prop_map(|(date, which)| {
        let keys: [fn(CivilDate) -> SearchKey; 9] = [
            SearchKey::Before,
            SearchKey::On,
            SearchKey::Since,
            SearchKey::SentBefore,
            SearchKey::SentOn,
            SearchKey::SentSince,
            SearchKey::SavedBefore,
            SearchKey::SavedOn,
            SearchKey::SavedSince,
        ];
        keys[which](date)
    });
    let alone = proptest::sample::select(vec![
        SearchKey::All,
        SearchKey::New,
        SearchKey::Old,
        SearchKey::Recent,
        SearchKey::SaveDateSupported,
    ]);
    let flag_name = flag().prop_filter("no entry for it", |flag| *flag != FlagName::Recent);
    let entry_type = proptest::sample::select(vec![EntryType::Private, EntryType::Shared, EntryType::All]);
    let entry = (flag_name, entry_type).prop_map(|(flag, entry_type)| SearchModSeqEntry { flag, entry_type });
    let other = prop_oneof![
        proptest::sample::select(&SYSTEM_FLAGS[..]).prop_map(SearchKey::Flag),
        proptest::sample::select(&SYSTEM_FLAGS[..]).prop_map(SearchKey::Unflag),
        keyword().prop_map(SearchKey::Keyword),
        keyword().prop_map(SearchKey::Unkeyword),
        (1u32..).prop_map(SearchKey::Older),
        (1u32..).prop_map(SearchKey::Younger),
        number64().prop_map(SearchKey::Larger),
        number64().prop_map(SearchKey::Smaller),
        set().prop_map(SearchKey::Sequence),
        set().prop_map(SearchKey::Uid),
        (option::of(entry), modseq()).prop_map(|(entry, least)| SearchKey::ModSeq { entry, least }),
        "[A-Za-z0-9_-]{1,9}".prop_map(SearchKey::EmailId),
        "[A-Za-z0-9_-]{1,9}".prop_map(SearchKey::ThreadId),
    ];
    prop_oneof![text, day, alone, other].prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(SearchKey::And),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| SearchKey::Or(Box::new(a), Box::new(b))),
            inner.prop_map(|key| SearchKey::Not(Box::new(key))),
        ]
    })
}

fn search_return() -> impl Strategy<Value = SearchReturn> {
    let update = option::of(vec(fetch_att(), 0..4).prop_map(without_duplicates));
    (any::<[bool; 6]>(), option::of(partial_range()), update).prop_map(
        |([min, max, all, count, save, context], partial, update)| {
            let some = min || max || count || save || context || update.is_some() || partial.is_some();
            let all = (all && partial.is_none()) || !some;
            SearchReturn { min, max, all, count, save, partial, context, update }
        },
    )
}

fn search() -> impl Strategy<Value = Search> {
    (any::<bool>(), option::of(search_return()), option::of("[A-Z0-9-]{1,9}"), search_key())
        .prop_map(|(uid, returns, charset, key)| Search { uid, returns, charset, key })
}

fn sort() -> impl Strategy<Value = Sort> {
    let key = proptest::sample::select(vec![
        SortKey::Arrival,
        SortKey::Cc,
        SortKey::Date,
        SortKey::DisplayFrom,
        SortKey::DisplayTo,
        SortKey::From,
        SortKey::Size,
        SortKey::Subject,
        SortKey::To,
    ]);
    let criterion = (any::<bool>(), key).prop_map(|(reverse, key)| SortCriterion { reverse, key });
    (any::<bool>(), option::of(search_return()), vec(criterion, 1..5), "[A-Z0-9-]{1,9}", search_key())
        .prop_map(|(uid, returns, criteria, charset, key)| Sort { uid, returns, criteria, charset, key })
}

fn thread() -> impl Strategy<Value = Thread> {
    let algorithm = proptest::sample::select(vec![
        ThreadAlgorithm::OrderedSubject,
        ThreadAlgorithm::References,
        ThreadAlgorithm::Refs,
    ]);
    (any::<bool>(), algorithm, "[A-Z0-9-]{1,9}", search_key()).prop_map(|(uid, algorithm, charset, key)| Thread {
        uid,
        algorithm,
        charset,
        key,
    })
}

fn source() -> impl Strategy<Value = SearchSource> {
    let named = || vec(mailbox(), 1..3);
    prop_oneof![
        proptest::sample::select(vec![
            SearchSource::Selected,
            SearchSource::Inboxes,
            SearchSource::Personal,
            SearchSource::Subscribed,
        ]),
        named().prop_map(SearchSource::Subtree),
        named().prop_map(SearchSource::SubtreeOne),
        named().prop_map(SearchSource::Mailboxes),
    ]
}

fn multi_search() -> impl Strategy<Value = MultiSearch> {
    (vec(source(), 0..4), search())
        .prop_map(|(sources, search)| MultiSearch { sources, search: Search { uid: true, ..search } })
}

fn list() -> impl Strategy<Value = List> {
    let patterns = vec(octets().prop_map(ListPattern), 1..4);
    (any::<[bool; 7]>(), mailbox(), patterns, option::of(status_atts())).prop_map(
        |(on, reference, patterns, status)| {
            let [subscribed, remote, recursive, special_use, a, b, c] = on;
            let recursive_match = recursive && (subscribed || special_use);
            let select = ListSelect { subscribed, remote, recursive_match, special_use };
            let returns = ListReturn { subscribed: a, children: b, special_use: c, status: status.unwrap_or_default() };
            let extended = select != ListSelect::default() || returns != ListReturn::default() || patterns.len() > 1;
            List { select, reference, patterns, returns, extended }
        },
    )
}

fn select() -> impl Strategy<Value = Select> {
    let seq_match = num_set().prop_map(|numbers| SeqMatchData { sequence: numbers.clone(), uids: numbers });
    let qresync = (nonzero(), 1u64..99, option::of(num_set()), option::of(seq_match)).prop_map(
        |(uidvalidity, modseq, known_uids, seq_match)| QResync {
            uidvalidity: UidValidity::new(uidvalidity.get()).unwrap(),
            modseq: ModSeq(modseq),
            known_uids,
            seq_match,
        },
    );
    (mailbox(), any::<bool>(), option::of(qresync)).prop_map(|(mailbox, condstore, qresync)| Select {
        mailbox,
        condstore,
        qresync,
    })
}

fn store() -> impl Strategy<Value = Store> {
    let mode = proptest::sample::select(vec![StoreMode::Replace, StoreMode::Add, StoreMode::Remove]);
    (any::<bool>(), set(), option::of(modseq()), mode, any::<bool>(), vec(flag(), 0..5)).prop_map(
        |(uid, set, unchanged_since, mode, silent, flags)| Store { uid, set, unchanged_since, mode, silent, flags },
    )
}

fn quota() -> impl Strategy<Value = CommandBody> {
    let limits = vec(("[A-Z][A-Z-]{0,8}", 0..=i64::MAX as u64), 0..4);
    prop_oneof![
        octets().prop_map(CommandBody::GetQuota),
        mailbox().prop_map(CommandBody::GetQuotaRoot),
        (octets(), limits).prop_map(|(root, limits)| CommandBody::SetQuota(SetQuota { root, limits })),
    ]
}

fn notify() -> impl Strategy<Value = Notify> {
    let event = prop_oneof![
        vec(fetch_att(), 0..3).prop_map(|all| NotifyEvent::MessageNew(without_duplicates(all))),
        proptest::sample::select(vec![
            NotifyEvent::MessageExpunge,
            NotifyEvent::FlagChange,
            NotifyEvent::AnnotationChange,
            NotifyEvent::MailboxName,
            NotifyEvent::SubscriptionChange,
            NotifyEvent::MailboxMetadataChange,
            NotifyEvent::ServerMetadataChange,
            NotifyEvent::Other("X-Event".to_owned()),
        ]),
    ];
    let filter = prop_oneof![Just(MailboxFilter::SelectedDelayed), source().prop_map(MailboxFilter::Source)];
    let group = (filter, vec(event, 0..4)).prop_map(|(filter, events)| EventGroup { filter, events });
    let set = (any::<bool>(), vec(group, 1..4)).prop_map(|(status, groups)| Notify::Set { status, groups });
    prop_oneof![Just(Notify::None), set]
}

fn body() -> impl Strategy<Value = CommandBody> {
    let id = option::of(vec((octets(), option::of(octets())), 0..3));
    let use_attr = prop_oneof![
        proptest::sample::select(&SpecialUse::EVERY[..]).prop_map(UseAttribute::Known),
        Just(UseAttribute::Unknown("\\Foo".to_owned()))
    ];
    let simple = proptest::sample::select(vec![
        CommandBody::Capability,
        CommandBody::Noop,
        CommandBody::Logout,
        CommandBody::StartTls,
        CommandBody::Unauthenticate,
        CommandBody::Compress("DEFLATE".to_owned()),
        CommandBody::Namespace,
        CommandBody::Idle,
        CommandBody::Check,
        CommandBody::Close,
        CommandBody::Unselect,
        CommandBody::Expunge,
        CommandBody::Enable(vec![EnableCapability::QResync, EnableCapability::Other("X".to_owned())]),
    ]);
    let names = prop_oneof![
        mailbox().prop_map(CommandBody::Delete),
        mailbox().prop_map(CommandBody::Subscribe),
        mailbox().prop_map(CommandBody::Unsubscribe),
        (mailbox(), mailbox()).prop_map(|(from, to)| CommandBody::Rename { from, to }),
        (mailbox(), vec(use_attr, 0..3))
            .prop_map(|(mailbox, special_use)| CommandBody::Create { mailbox, special_use }),
        (mailbox(), octets())
            .prop_map(|(reference, pattern)| CommandBody::Lsub { reference, pattern: ListPattern(pattern) }),
        (mailbox(), status_atts()).prop_map(|(mailbox, items)| CommandBody::Status { mailbox, items }),
        (any::<bool>(), set(), mailbox()).prop_map(|(uid, set, mailbox)| CommandBody::Copy { uid, set, mailbox }),
        (any::<bool>(), set(), mailbox()).prop_map(|(uid, set, mailbox)| CommandBody::Move { uid, set, mailbox }),
    ];
    let auth = prop_oneof![
        (octets(), octets()).prop_map(|(user, password)| CommandBody::Login { user, password: Secret(password) }),
        option::of("[A-Za-z0-9+/]{1,8}=?").prop_map(|response| CommandBody::Authenticate {
            mechanism: "PLAIN".to_owned(),
            initial_response: response.map(|text| Secret(text.into_bytes())),
        }),
        id.prop_map(CommandBody::Id),
    ];
    prop_oneof![
        simple,
        names,
        auth,
        select().prop_map(CommandBody::Select),
        select().prop_map(CommandBody::Examine),
        list().prop_map(CommandBody::List),
        set().prop_map(CommandBody::UidExpunge),
        search().prop_map(|search| CommandBody::Search(Box::new(search))),
        sort().prop_map(|sort| CommandBody::Sort(Box::new(sort))),
        thread().prop_map(|thread| CommandBody::Thread(Box::new(thread))),
        quota(),
        notify().prop_map(CommandBody::Notify),
        multi_search().prop_map(|search| CommandBody::MultiSearch(Box::new(search))),
        vec(octets(), 1..4).prop_map(CommandBody::CancelUpdate),
        fetch().prop_map(CommandBody::Fetch),
        store().prop_map(CommandBody::Store),
    ]
}

fn append_message() -> impl Strategy<Value = AppendMessage> {
    let date = (0i64..4_000_000_000, -1439i16..1440)
        .prop_map(|(unix_seconds, offset_minutes)| DateTime { unix_seconds, offset_minutes });
    (vec(flag(), 0..3), option::of(date), number64(), any::<[bool; 3]>()).prop_map(
        |(flags, date, size, [synchronising, binary, utf8])| AppendMessage {
            flags,
            date,
            literal: MessageLiteral { size, synchronising, binary: binary || utf8, utf8 },
        },
    )
}

fn append() -> impl Strategy<Value = AppendStart> {
    let kind = prop_oneof![
        Just(AppendKind::Append),
        (any::<bool>(), seq_number()).prop_map(|(uid, target)| AppendKind::Replace { uid, target })
    ];
    (kind, mailbox(), append_message()).prop_map(|(kind, mailbox, message)| AppendStart {
        tag: tag(),
        kind,
        mailbox,
        message,
    })
}

fn tag() -> Tag {
    Tag::new("A]1").unwrap()
}

fn form(synchronising: bool) -> LiteralForm {
    if synchronising { LiteralForm::Synchronising } else { LiteralForm::NonSynchronising }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn commands_come_back(body in body(), synchronising in any::<bool>()) {
        let sent = Command { tag: tag(), body };
        let pieces = sent.write(form(synchronising));
        // A continuation request for each piece but the first, and then the command.
        let mut reader = Reader::new(FrameLimits::default());
        for (n, piece) in pieces.iter().enumerate() {
            let mut input = piece.as_slice();
            if n + 1 < pieces.len() {
                prop_assert_eq!(reader.next(&mut input), Some(Event::Continue));
            } else {
                prop_assert_eq!(reader.next(&mut input), Some(Event::Command(sent.clone())));
            }
            prop_assert!(input.is_empty());
        }
        prop_assert!(!reader.is_inside());
    }

    #[test]
    fn appends_come_back(sent in append()) {
        let mut reader = Reader::new(FrameLimits::default());
        let all = sent.write(form(sent.message.literal.synchronising)).concat();
        let mut input = all.as_slice();
        let mut last = reader.next(&mut input);
        while last == Some(Event::Continue) {
            last = reader.next(&mut input);
        }
        prop_assert_eq!(last, Some(Event::AppendStart(sent)));
        prop_assert!(input.is_empty());
    }

    #[test]
    fn junk_is_read_or_refused(pieces in vec(prop_oneof![
        Just("a "), Just("UID "), Just("FETCH "), Just("SEARCH "), Just("SORT (DATE) "), Just("THREAD REFS "), Just("ESEARCH IN ("), Just("STORE "), Just("LIST "), Just("1:*,$ "), Just("("), Just(")"),
        Just(" "), Just("BODY[1.2.HEADER.FIELDS (\""), Just("]<0.1>"), Just("{2}\r\nab"), Just("{2+}\r\nab"), Just("{9"), Just("\\Seen "),
        Just("NOT "), Just("OR "), Just("1-Jan-2000 "), Just("\"1-Jan-2000 "), Just("RETURN ("), Just("PARTIAL -1:"), Just("MODSEQ \"/flags/"),
        Just("SELECT x (QRESYNC (1 2 "), Just("APPEND x "), Just("REPLACE 1 x UTF8 (~"), Just("CREATE x (USE ("), Just("\r\n"), Just("é\0"),
        Just("ID ("), Just("STATUS x ("), Just("CHARSET "), Just("+FLAGS.SILENT "), Just("ENABLE "), Just("999999999999999999999 "),
    ], 0..40)) {
        let input = pieces.concat();
        let _ = command(input.as_bytes());
        let mut reader = Reader::new(FrameLimits::default());
        let mut rest = input.as_bytes();
        while reader.next(&mut rest).is_some() {}
        prop_assert!(rest.is_empty());
    }
}

/// The limit that a command meets.
fn limit_of(line: &str) -> Option<&'static str> {
    match command(line.as_bytes()) {
        Ok(_) => None,
        Err(CommandError { kind: CommandErrorKind::Syntax(error), .. }) => Some(error.limit.expect(line)),
        Err(error) => panic!("{line}: {error:?}"),
    }
}

/// A command that holds so many of something.
type Line<'a> = &'a dyn Fn(usize) -> String;

#[test]
fn tags_are_what_can_be_read() {
    for bad in ["", "+", "a b", "é", "a{", &"t".repeat(limits::TAG_BYTES_MAX + 1)] {
        assert_eq!(Tag::new(bad), None);
    }
    assert!(Tag::new(&"t".repeat(limits::TAG_BYTES_MAX)).is_some());
}

#[test]
fn limits_hold_at_and_one_over() {
    let many = |what: &str, count: usize| vec![what; count].join(" ");
    let numbered = |count: usize| (1..=count).map(|n| format!("BODY[{n}]")).collect::<Vec<_>>().join(" ");
    let cases: [(&str, usize, Line); 19] = [
        ("tag_bytes_max", limits::TAG_BYTES_MAX, &|n| format!("{} NOOP", "t".repeat(n))),
        ("nesting_max", limits::NESTING_MAX, &|n| format!("a SEARCH {}ALL{}", "(".repeat(n), ")".repeat(n))),
        ("nesting_max", limits::NESTING_MAX, &|n| format!("a SEARCH {}ALL", "NOT ".repeat(n))),
        ("nesting_max", limits::NESTING_MAX, &|n| format!("a SEARCH {}ALL", "OR ALL ".repeat(n))),
        ("search_keys_max", limits::SEARCH_KEYS_MAX, &|n| format!("a SEARCH {}", many("ALL", n))),
        ("sort_criteria_max", limits::SORT_CRITERIA_MAX, &|n| format!("a SORT ({}) UTF-8 ALL", many("DATE", n))),
        ("search_sources_max", limits::SEARCH_SOURCES_MAX, &|n| format!("a ESEARCH IN ({}) ALL", many("selected", n))),
        ("search_sources_max", limits::SEARCH_SOURCES_MAX, &|n| {
            format!("a ESEARCH IN (mailboxes ({})) ALL", many("x", n))
        }),
        ("cancelled_tags_max", limits::CANCELLED_TAGS_MAX, &|n| format!("a CANCELUPDATE {}", many("x", n))),
        ("set_ranges_max", limits::SET_RANGES_MAX, &|n| format!("a UID EXPUNGE {}", vec!["1:2"; n].join(","))),
        ("fetch_items_max", limits::FETCH_ITEMS_MAX, &|n| format!("a FETCH 1 ({})", numbered(n))),
        ("header_fields_max", limits::HEADER_FIELDS_MAX, &|n| {
            format!("a FETCH 1 BODY[HEADER.FIELDS ({})]", many("x", n))
        }),
        ("section_part_depth_max", limits::SECTION_PART_DEPTH_MAX, &|n| {
            format!("a FETCH 1 BODY[{}]", vec!["1"; n].join("."))
        }),
        ("flags_max", limits::FLAGS_MAX, &|n| format!("a STORE 1 FLAGS ({})", many("x", n))),
        ("flags_max", limits::FLAGS_MAX, &|n| format!("a STORE 1 FLAGS {}", many("x", n))),
        ("keyword_bytes_max", model::limits::KEYWORD_BYTES_MAX, &|n| format!("a SEARCH KEYWORD {}", "x".repeat(n))),
        ("list_patterns_max", limits::LIST_PATTERNS_MAX, &|n| format!("a LIST \"\" ({})", many("x", n))),
        ("id_pairs_max", limits::ID_PAIRS_MAX, &|n| format!("a ID ({})", many("\"x\" NIL", n))),
        ("enable_max", limits::ENABLE_MAX, &|n| format!("a ENABLE {}", many("X", n))),
    ];
    for (name, max, line) in cases {
        assert_eq!(limit_of(&line(max)), None, "{name}");
        assert_eq!(limit_of(&line(max + 1)), Some(name), "{name}");
    }
    // Far over: no recursion follows the input.
    assert_eq!(limit_of(&format!("a SEARCH {}", "(".repeat(1_000_000))), Some("nesting_max"));
    assert_eq!(limit_of(&format!("a SEARCH {}", "NOT ".repeat(1_000_000))), Some("nesting_max"));
}
