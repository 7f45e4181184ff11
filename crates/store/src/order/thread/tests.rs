//! Threading beside a reference that follows RFC 5256 §3 sentence by sentence, with trees that own their children.

use proptest::prelude::*;

use super::*;

/// A message as the reference sees it: ids are small numbers, 0 is none.
#[derive(Clone, Debug)]
struct Mail {
    id: u32,
    references: Vec<u32>,
    subject: u32,
    is_reply: bool,
    date: i64,
    arrival: i64,
}

fn gathered(mails: &[Mail]) -> Gathered {
    let mut gathered = Gathered::new();
    for subject in 1..10u8 {
        gathered.subject(&[subject]).expect("few subjects");
    }
    for (n, mail) in mails.iter().enumerate() {
        let message = Message {
            seq: n as u32 + 1,
            date: mail.date,
            arrival: mail.arrival,
            subject: mail.subject,
            is_reply_or_forward: mail.is_reply,
            node: NONE,
        };
        let own = (mail.id > 0).then_some(Key::from(mail.id));
        gathered.link(message, own, mail.references.iter().copied().map(Key::from));
    }
    gathered
}

fn order(mails: &[Mail]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..mails.len() as u32).collect();
    order.sort_by_key(|n| (mails[*n as usize].date, *n));
    order
}

fn threads(mails: &[Mail], algorithm: Algorithm) -> String {
    let gathered = gathered(mails);
    let (messages, order) = (&gathered.messages, order(mails));
    let subjects = gathered.subjects.len();
    match algorithm {
        Algorithm::OrderedSubject => Arrangement::by_subject(messages, subjects, &order).finish(messages, &order, None),
        Algorithm::References => {
            let mut arrangement = gathered.arranged();
            arrangement.merge_subjects(messages, subjects, &order);
            arrangement.finish(messages, &order, None)
        }
        Algorithm::Refs => {
            let arrangement = gathered.arranged();
            let (tops, mut keys) = arrangement.by_arrival(messages, &order);
            keys.sort();
            let tops = keys.into_iter().map(|(_, place)| tops[place as usize]).collect();
            arrangement.finish(messages, &order, Some(tops))
        }
    }
    .to_string()
}

/// A node of the reference: a message by its number from 0, or a dummy.
#[derive(Clone, Debug, PartialEq)]
struct Tree {
    message: Option<usize>,
    children: Vec<Tree>,
}

/// Step 1, with parents by name and walks up to the root.
fn step_1(mails: &[Mail]) -> Vec<Tree> {
    let mut names: Vec<String> = Vec::new();
    let mut parent: HashMap<String, Option<String>> = HashMap::new();
    let mut message: HashMap<String, usize> = HashMap::new();
    let is_above = |parent: &HashMap<String, Option<String>>, above: &str, below: &str| {
        let mut at = Some(below.to_owned());
        while let Some(name) = at {
            if name == above {
                return true;
            }
            at = parent.get(&name).cloned().flatten();
        }
        false
    };
    for (n, mail) in mails.iter().enumerate() {
        let references: Vec<String> = mail.references.iter().map(u32::to_string).collect();
        for name in &references {
            if !names.contains(name) {
                names.push(name.clone());
                parent.insert(name.clone(), None);
            }
        }
        for pair in references.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            if parent[b].is_none() && !is_above(&parent, b, a) {
                parent.insert(b.clone(), Some(a.clone()));
            }
        }
        let own = if mail.id == 0 || message.contains_key(&mail.id.to_string()) {
            format!("unique {n}")
        } else {
            mail.id.to_string()
        };
        if !names.contains(&own) {
            names.push(own.clone());
        }
        parent.insert(own.clone(), None);
        message.insert(own.clone(), n);
        if let Some(last) = references.last()
            && !is_above(&parent, &own, last)
        {
            parent.insert(own, Some(last.clone()));
        }
    }
    fn tree(
        name: &str,
        names: &[String],
        parent: &HashMap<String, Option<String>>,
        message: &HashMap<String, usize>,
    ) -> Tree {
        let below = names.iter().filter(|child| parent[*child].as_deref() == Some(name));
        let children = below.map(|child| tree(child, names, parent, message)).collect();
        Tree { message: message.get(name).copied(), children }
    }
    let roots = names.iter().filter(|name| parent[*name].is_none());
    roots.map(|name| tree(name, &names, &parent, &message)).collect()
}

/// Step 3: what stands in the place of a tree, at the root or below.
fn prune(tree: Tree, at_root: bool) -> Vec<Tree> {
    let children: Vec<Tree> = tree.children.into_iter().flat_map(|child| prune(child, false)).collect();
    match tree.message {
        Some(_) => vec![Tree { message: tree.message, children }],
        None if at_root && children.len() > 1 => vec![Tree { message: None, children }],
        None => children,
    }
}

fn key(tree: &Tree, mails: &[Mail]) -> (i64, usize) {
    match tree.message {
        Some(n) => (mails[n].date, n),
        None => tree.children.iter().map(|child| key(child, mails)).min().expect("a dummy has children"),
    }
}

fn sort(trees: &mut [Tree], mails: &[Mail]) {
    for tree in trees.iter_mut() {
        sort(&mut tree.children, mails);
    }
    trees.sort_by_key(|tree| key(tree, mails));
}

/// Step 5, on a root whose children are moved about.
fn step_5(mut root: Vec<Tree>, mails: &[Mail]) -> Vec<Tree> {
    fn speaker(tree: &Tree) -> usize {
        tree.message.unwrap_or_else(|| tree.children[0].message.expect("below a dummy are messages"))
    }
    let subject = |tree: &Tree| mails[speaker(tree)].subject;
    let is_reply = |tree: &Tree| tree.message.is_some_and(|n| mails[n].is_reply);
    for tree in &mut root {
        sort(&mut tree.children, mails);
    }
    sort(&mut root, mails);
    // Trees are known by who speaks for them: dummies by their first child, whom nobody else has.
    let mut table: HashMap<u32, usize> = HashMap::new();
    let find = |root: &[Tree], speaking: usize| root.iter().position(|tree| speaker(tree) == speaking);
    for current in &root {
        if subject(current) == 0 {
            continue;
        }
        let entry = table.get(&subject(current)).and_then(|entry| find(&root, *entry)).map(|at| &root[at]);
        let replace = match entry {
            None => true,
            Some(entry) => {
                entry.message.is_some() && (current.message.is_none() || is_reply(entry) && !is_reply(current))
            }
        };
        if replace {
            table.insert(subject(current), speaker(current));
        }
    }
    let speakers: Vec<usize> = root.iter().map(speaker).collect();
    for speaking in speakers {
        // Who is no child of the root any more, or was made part of a dummy, has been dealt with.
        let Some(at) = find(&root, speaking) else { continue };
        let subject_here = subject(&root[at]);
        if subject_here == 0 || table[&subject_here] == speaking {
            continue;
        }
        let current = root.remove(at);
        let entry_at = find(&root, table[&subject_here]).expect("the table's messages stay at the root");
        if root[entry_at].message.is_none() && current.message.is_none() {
            root[entry_at].children.extend(current.children);
        } else if root[entry_at].message.is_none() || is_reply(&current) && !is_reply(&root[entry_at]) {
            root[entry_at].children.push(current);
        } else {
            let entry = std::mem::replace(&mut root[entry_at], Tree { message: None, children: Vec::new() });
            // In this order the dummy is found by the name that the table has.
            root[entry_at].children = vec![entry, current];
        }
    }
    root
}

fn write(trees: &[Tree]) -> String {
    fn members(tree: &Tree) -> String {
        let own = tree.message.map(|n| (n + 1).to_string()).unwrap_or_default();
        let space = if own.is_empty() { "" } else { " " };
        match tree.children.as_slice() {
            [] => own,
            [child] => format!("{own}{space}{}", members(child)),
            children => format!("{own}{space}{}", write(children)),
        }
    }
    trees.iter().map(|tree| format!("({})", members(tree))).collect()
}

fn naively(mails: &[Mail], algorithm: Algorithm) -> String {
    if algorithm == Algorithm::OrderedSubject {
        let mut by_subject: Vec<Vec<Tree>> = vec![Vec::new(); 10];
        for n in order(mails) {
            let tree = Tree { message: Some(n as usize), children: Vec::new() };
            by_subject[mails[n as usize].subject as usize].push(tree);
        }
        let mut threads: Vec<Tree> = Vec::new();
        for mut thread in by_subject.into_iter().filter(|thread| !thread.is_empty()) {
            let children = thread.split_off(1);
            threads.push(Tree { children, ..thread.remove(0) });
        }
        sort(&mut threads, mails);
        return write(&threads);
    }
    let mut root: Vec<Tree> = step_1(mails).into_iter().flat_map(|tree| prune(tree, true)).collect();
    if algorithm == Algorithm::References {
        root = step_5(root, mails);
        sort(&mut root, mails);
    } else {
        fn latest(tree: &Tree, mails: &[Mail]) -> i64 {
            let own = tree.message.map(|n| mails[n].arrival);
            own.into_iter().chain(tree.children.iter().map(|child| latest(child, mails))).max().expect("messages")
        }
        sort(&mut root, mails);
        root.sort_by_key(|tree| latest(tree, mails));
    }
    write(&root)
}

fn mail() -> impl Strategy<Value = Mail> {
    let references = prop::collection::vec(1u32..14, 0..5);
    (0u32..14, references, 0u32..5, any::<bool>(), 0i64..12, 0i64..12).prop_map(
        |(id, references, subject, is_reply, date, arrival)| Mail { id, references, subject, is_reply, date, arrival },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// Cycles, missing parents, duplicate ids, self references: ids are few, so that all of them happen all the time.
    #[test]
    fn as_the_rfc_is_written(mails in prop::collection::vec(mail(), 0..14)) {
        for algorithm in [Algorithm::OrderedSubject, Algorithm::References, Algorithm::Refs] {
            prop_assert_eq!(threads(&mails, algorithm), naively(&mails, algorithm), "{:?}", algorithm);
        }
    }
}

fn mails(list: &[(u32, &[u32], u32, bool)]) -> Vec<Mail> {
    let mail = |(n, (id, references, subject, is_reply)): (usize, &(u32, &[u32], u32, bool))| Mail {
        id: *id,
        references: references.to_vec(),
        subject: *subject,
        is_reply: *is_reply,
        date: n as i64,
        arrival: n as i64,
    };
    list.iter().enumerate().map(mail).collect()
}

#[test]
fn known_answers() {
    for (list, references, refs) in [
        // The example of RFC 5256 §4: 2 alone; 3, its reply 6, and two replies to that.
        (
            &[
                (1, &[][..], 0, false),
                (2, &[], 0, false),
                (3, &[2], 0, false),
                (4, &[2, 3], 0, false),
                (5, &[2, 3], 0, false),
            ][..],
            "(1)(2 3 (4)(5))",
            "(1)(2 3 (4)(5))",
        ),
        // "In this example, 3 and 5 are siblings of a parent that does not match the search criteria".
        (&[(1, &[9], 0, false), (2, &[9], 0, false)], "((1)(2))", "((1)(2))"),
        (&[(1, &[9], 0, false)], "(1)", "(1)"),
        // A parent that comes later.
        (&[(1, &[2], 0, false), (2, &[], 0, false)], "(2 1)", "(2 1)"),
        // A loop, and a message that refers to itself.
        (&[(1, &[2], 0, false), (2, &[1], 0, false)], "(2 1)", "(2 1)"),
        (&[(1, &[1], 0, false)], "(1)", "(1)"),
        // The same id twice: the second is nobody's parent.
        (&[(1, &[], 0, false), (1, &[], 0, false), (2, &[1], 0, false)], "(1 3)(2)", "(2)(1 3)"),
        // Equal subjects: a reply goes below, two originals become siblings.
        (&[(1, &[], 1, false), (2, &[], 1, true)], "(1 2)", "(1)(2)"),
        (&[(1, &[], 1, true), (2, &[], 1, false)], "(2 1)", "(1)(2)"),
        (&[(1, &[], 1, false), (2, &[], 1, false)], "((1)(2))", "(1)(2)"),
        (&[(1, &[], 1, true), (2, &[], 1, true)], "((1)(2))", "(1)(2)"),
        (&[(1, &[], 0, false), (2, &[], 0, true)], "(1)(2)", "(1)(2)"),
    ] {
        assert_eq!(threads(&mails(list), Algorithm::References), references, "{list:?}");
        assert_eq!(threads(&mails(list), Algorithm::Refs), refs, "{list:?}");
    }
}

#[test]
fn long_chains_neither_recurse_nor_take_long() {
    const LENGTH: u32 = 100_000;
    let mut chain: Vec<Mail> = (1..=LENGTH)
        .map(|n| Mail {
            id: n,
            references: (n > 1).then_some(n - 1).into_iter().collect(),
            subject: 0,
            is_reply: false,
            date: i64::from(n),
            arrival: 0,
        })
        .collect();
    for _ in 0..2 {
        for algorithm in [Algorithm::References, Algorithm::Refs] {
            let text = threads(&chain, algorithm);
            assert_eq!(text.matches('(').count(), 1);
            assert_eq!(text.split(' ').count(), LENGTH as usize);
        }
        // From the youngest to the oldest.
        chain.reverse();
    }
    // Each message refers to a dummy above the one before, so that every link asks for the root of a deep tree.
    for (n, mail) in chain.iter_mut().enumerate() {
        let n = n as u32;
        mail.references = vec![LENGTH + n + 1, LENGTH + n, LENGTH + n.saturating_sub(1)];
    }
    threads(&chain, Algorithm::References);
}

#[test]
fn the_limit_holds_at_and_one_over() {
    let mut gathered = Gathered::new();
    gathered.message_of = vec![NONE; THREAD_NODES_MAX - 3];
    // The message itself needs a node too.
    assert!(gathered.room_for(2).is_ok());
    assert_eq!(gathered.room_for(3).unwrap_err().limit(), Some("thread_nodes_max"));
}
