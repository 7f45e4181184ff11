//! The index beside a naive scan: random documents and needles of many scripts, in images built at once and merged.
#![allow(clippy::unwrap_used)]

extern crate mailyard_search as search;

use std::collections::BTreeMap;

use platform::{Mapped, Prng};
use search::{Builder, Cut, DocSet, Frequent, Index, Needle, merge};

const CUTS: [Cut; 3] = [Cut::Whole, Cut::Tokens, Cut::Joints];
const FIELDS: usize = CUTS.len();

/// What words and gaps are made of: short alphabets, so that needles hit.
const LETTERS: [&str; 8] = [
    "ab",
    "abc1",
    "xyz09",
    "e\u{301}\u{300}o",
    "\u{430}\u{431}\u{432}",
    "\u{65e5}\u{672c}\u{8a9e}\u{3042}",
    "\u{1100}\u{1161}\u{11a8}",
    "\u{627}\u{644}\u{1f600}",
];
const GAPS: [&str; 12] =
    [" ", " ", " ", ", ", ". ", "\r\n", "--", "@", "\u{201c}", "\u{3002}", " \u{2014} ", "===================="];

fn pick<'a>(random: &mut Prng, from: &[&'a str]) -> &'a str {
    from[random.index(from.len())]
}

fn word(random: &mut Prng) -> String {
    let letters: Vec<char> = pick(random, &LETTERS).chars().collect();
    let len = match random.below(40) {
        0 => 60 + random.below(140),
        1 => 400,
        _ => 1 + random.below(6),
    };
    (0..len).map(|_| letters[random.index(letters.len())]).collect()
}

fn text(random: &mut Prng) -> String {
    let mut text = String::new();
    for _ in 0..random.below(8) {
        if random.below(8) == 0 {
            text += &pick(random, &GAPS).repeat(1 + random.index(20));
        }
        text += &word(random);
        text += pick(random, &GAPS);
    }
    text
}

type Document = Vec<(usize, String)>;

fn document(random: &mut Prng) -> Document {
    (0..random.below(4)).map(|_| (random.index(FIELDS), text(random))).collect()
}

/// A piece of some text, or something random.
fn needle(random: &mut Prng, documents: &BTreeMap<u64, Document>) -> String {
    let texts: Vec<&String> = documents.values().flatten().map(|(_, text)| text).collect();
    if random.below(5) == 0 || texts.is_empty() {
        return match random.below(3) {
            0 => word(random),
            1 => word(random) + pick(random, &GAPS) + &word(random),
            _ => pick(random, &GAPS).to_owned(),
        };
    }
    let text = texts[random.index(texts.len())];
    let len = match random.below(10) {
        0 => 80 + random.index(150),
        1 => 10 + random.index(30),
        _ => 1 + random.index(8),
    };
    let start = text.floor_char_boundary(random.index(text.len() + 1));
    let end = text.ceil_char_boundary((start + len).min(text.len()));
    text[start..end].to_owned()
}

/// What a document is numbered with.
fn number_of(id: u64) -> Option<i32> {
    (!id.is_multiple_of(5)).then_some((id % 50) as i32 - 25)
}

/// The words and pairs that are frequent in these documents; of none sometimes, or words alone.
fn frequent(random: &mut Prng, documents: &[(u64, &Document)]) -> Frequent {
    let mut known = Frequent::default();
    for _ in 0..random.below(3) {
        let mut sample = Builder::new(0, &CUTS, &known);
        for (id, document) in documents {
            sample.document(*id).unwrap();
            for (field, text) in *document {
                sample.field(*field);
                sample.text(text);
                sample.boundary();
            }
        }
        known = Frequent::in_sample(&sample, &known);
    }
    known
}

/// The digests of an image made anew with what the old one says was frequent.
fn anew(index: &Index, documents: &BTreeMap<u64, Document>) -> search::Digests {
    let mut frequent = index.frequent(0..u64::MAX).unwrap();
    let mut builder = Builder::new(0, &CUTS, &Frequent::default());
    for id in index.covered().iter().cloned().flatten() {
        builder.set_frequent(frequent.remove(&id).unwrap_or_default());
        builder.document(id).unwrap();
        number_of(id).into_iter().for_each(|number| builder.number(number));
        for (field, text) in &documents[&id] {
            builder.field(*field);
            builder.text(text);
        }
    }
    assert!(frequent.is_empty());
    Index::open(Mapped::from_vec(builder.finish_in_memory().unwrap())).unwrap().digests().unwrap()
}

/// Feeds texts cut into chunks at random.
fn build(random: &mut Prng, base: u64, documents: &[(u64, &Document)]) -> Index {
    let frequent = frequent(random, documents);
    let mut builder = Builder::new(base, &CUTS, &frequent);
    for (id, document) in documents {
        if random.below(10) == 0 {
            // One that is begun and given up leaves nothing.
            builder.document(id + 1_000_000).unwrap();
            builder.text("abc unfinished");
            builder.number(5);
            builder.abandon();
        }
        builder.document(*id).unwrap();
        if let Some(number) = number_of(*id) {
            builder.number(number);
        }
        for (field, text) in *document {
            builder.field(*field);
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.ceil_char_boundary(1 + random.index(rest.len())));
                builder.text(now);
                rest = later;
            }
            builder.boundary();
        }
    }
    Index::open(Mapped::from_vec(builder.finish_in_memory().unwrap())).unwrap()
}

fn merged(indexes: &[&Index], is_live: &dyn Fn(u64) -> bool) -> Index {
    let mut image = Vec::new();
    let len = merge(indexes, is_live, &mut |bytes| {
        image.extend_from_slice(bytes);
        Ok(())
    });
    assert_eq!(len.unwrap(), image.len() as u64);
    Index::open(Mapped::from_vec(image)).unwrap()
}

fn scan(documents: &BTreeMap<u64, Document>, fields: &[usize], needle: &str) -> Vec<u64> {
    let has = |document: &Document| {
        needle.is_empty() || document.iter().any(|(field, text)| fields.contains(field) && text.contains(needle))
    };
    documents.iter().filter(|(_, document)| has(document)).map(|(id, _)| *id).collect()
}

/// What the images say of a needle: the documents that surely have it, and those that may.
fn ask(indexes: &[&Index], fields: &[usize], text: &str) -> (DocSet, DocSet) {
    let (mut surely, mut maybe) = (DocSet::new(0..3000), DocSet::new(0..3000));
    for index in indexes {
        index.find(fields, &Needle::new(text), &mut surely, &mut maybe).unwrap();
    }
    maybe.union_with(&surely);
    (surely, maybe)
}

/// Whether that is true; and whether it says it all.
fn is_right((surely, maybe): &(DocSet, DocSet), expected: &[u64], text: &str) -> bool {
    assert!(surely.iter().all(|id| expected.contains(&id)), "{text:?}");
    assert!(expected.iter().all(|id| maybe.contains(*id)), "{text:?}");
    surely.len() == maybe.len()
}

fn compare(random: &mut Prng, indexes: &[&Index], documents: &BTreeMap<u64, Document>, rounds: usize) -> usize {
    let mut exact = 0;
    for _ in 0..rounds {
        let text = needle(random, documents);
        let fields: Vec<usize> = match random.below(3) {
            0 => vec![0, 1, 2],
            _ => vec![random.index(FIELDS)],
        };
        let found = ask(indexes, &fields, &text);
        assert!(found.1.iter().all(|id| documents.contains_key(&id)), "{text:?}");
        let is_exact = is_right(&found, &scan(documents, &fields, &text), &text);
        assert!(
            is_exact || text.len() != 2 || fields != [2],
            "{text:?}: what is short is known where joints are noted"
        );
        exact += usize::from(is_exact);
    }
    exact
}

#[test]
fn the_index_says_what_a_scan_says() {
    let mut exact = 0;
    for seed in 0..60 {
        let mut random = Prng::new(seed);
        let mut id = 500 + random.below(300);
        let mut documents = BTreeMap::new();
        for _ in 0..random.below(120) {
            id += 1 + if random.below(8) == 0 { random.below(30) } else { 0 };
            documents.insert(id, document(&mut random));
        }
        let listed: Vec<(u64, &Document)> = documents.iter().map(|(id, document)| (*id, document)).collect();
        let base = listed.first().map_or(9, |(id, _)| id - random.below(5));
        let whole = build(&mut random, base, &listed);
        assert_eq!(whole.documents(), documents.len() as u64);
        assert!(whole.covered().iter().cloned().flatten().eq(documents.keys().copied()));
        exact += compare(&mut random, &[&whole], &documents, 150);

        // The same in parts, in any order, and the parts made one.
        let mut hands: [Vec<(u64, &Document)>; 3] = Default::default();
        for entry in &listed {
            hands[random.index(3)].push(*entry);
        }
        hands[0].reverse();
        let parts = hands.map(|hand| {
            let base = hand.iter().map(|(id, _)| *id).min().unwrap_or(7);
            build(&mut random, base, &hand)
        });
        let parts: Vec<&Index> = parts.iter().collect();
        compare(&mut random, &parts, &documents, 50);
        let parts: Vec<&Index> = parts.into_iter().filter(|part| part.documents() > 0).collect();
        let one = merged(&parts, &|_| true);
        assert_eq!(one.digests().unwrap(), anew(&one, &documents));
        assert_eq!(whole.digests().unwrap(), anew(&whole, &documents));
        compare(&mut random, &[&one], &documents, 50);

        // Without every third document.
        let is_live = |id: u64| !id.is_multiple_of(3);
        let fewer = merged(&parts, &is_live);
        documents.retain(|id, _| is_live(*id));
        assert_eq!(fewer.documents(), documents.len() as u64);
        compare(&mut random, &[&fewer], &documents, 50);
        for index in [&one, &whole, &fewer] {
            let mut found = DocSet::new(0..3000);
            index.find_numbers(-3..=9, &mut found).unwrap();
            found.iter().for_each(|id| assert!(number_of(id).is_some_and(|number| (-3..=9).contains(&number))));
            let expected = index.covered().iter().cloned().flatten();
            let expected = expected.filter(|id| number_of(*id).is_some_and(|number| (-3..=9).contains(&number)));
            assert!(found.iter().eq(expected));
        }
        assert_eq!(fewer.digests().unwrap(), anew(&fewer, &documents));
    }
    assert!(exact > 5000, "{exact}");
}

#[test]
fn large_dictionaries_have_many_blocks() {
    let mut random = Prng::new(5);
    let mut documents: BTreeMap<u64, Document> = BTreeMap::new();
    for id in 1..400u64 {
        let words: Vec<String> = (0..200).map(|_| format!("w{:x}", random.below(60_000))).collect();
        documents.insert(id, vec![(1, words.join(" "))]);
    }
    let listed: Vec<(u64, &Document)> = documents.iter().map(|(id, document)| (*id, document)).collect();
    let index = build(&mut random, 1, &listed);
    compare(&mut random, &[&index], &documents, 400);
    for text in ["w", "wf", "wff", " w12", "1 w1", "w1 w2", "f w", "w1234", " ", "w1 "] {
        let is_all = is_right(&ask(&[&index], &[1], text), &scan(&documents, &[1], text), text);
        assert!(is_all || text.contains(' '), "{text}");
    }
}

#[test]
fn no_damage_makes_a_wrong_answer() {
    let mut random = Prng::new(77);
    let documents: BTreeMap<u64, Document> = (3..60).map(|id| (id, document(&mut random))).collect();
    let listed: Vec<(u64, &Document)> = documents.iter().map(|(id, document)| (*id, document)).collect();
    let known = frequent(&mut Prng::new(3), &listed);
    let mut builder = Builder::new(3, &CUTS, &known);
    for (id, document) in &listed {
        builder.document(*id).unwrap();
        for (field, text) in *document {
            builder.field(*field);
            builder.text(text);
        }
    }
    let image = builder.finish_in_memory().unwrap();
    let mut noticed = 0;
    for round in 0..image.len() * 2 {
        let mut damaged = image.clone();
        match round % 5 {
            0 => damaged.truncate(random.index(image.len())),
            _ => {
                let at = round % image.len();
                damaged[at] ^= 1 << random.below(8);
            }
        }
        let Ok(index) = Index::open(Mapped::from_vec(damaged)) else {
            noticed += 1;
            continue;
        };
        assert!(index.digests().is_err(), "a check finds everything");
        let index_again = index;
        for _ in 0..3 {
            let text = needle(&mut random, &documents);
            let (mut surely, mut maybe) = (DocSet::new(0..100), DocSet::new(0..100));
            match index_again.find(&[0, 1, 2], &Needle::new(&text), &mut surely, &mut maybe) {
                Err(_) => noticed += 1,
                Ok(()) => {
                    maybe.union_with(&surely);
                    is_right(&(surely, maybe), &scan(&documents, &[0, 1, 2], &text), &text);
                }
            }
        }
    }
    assert!(noticed > image.len() / 4, "{noticed} of {}", image.len());
}

#[test]
fn any_bytes_are_refused() {
    let mut random = Prng::new(1);
    for len in 0..300 {
        let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        assert!(Index::open(Mapped::from_vec(bytes)).is_err());
    }
}

#[test]
fn documents_out_of_range_are_refused() {
    let mut builder = Builder::new(10, &[Cut::Tokens], &Frequent::default());
    assert!(builder.document(9).is_err());
    assert!(builder.document(10 + u64::from(u32::MAX)).is_err());
    builder.document(10).unwrap();
    builder.text("x");
    let index = Index::open(Mapped::from_vec(builder.finish_in_memory().unwrap())).unwrap();
    let (mut surely, mut maybe) = (DocSet::new(0..20), DocSet::new(0..20));
    index.find(&[0, 5], &Needle::new("x"), &mut surely, &mut maybe).unwrap();
    assert_eq!(surely.iter().collect::<Vec<_>>(), [10]);
    index.find(&[5], &Needle::new(""), &mut surely, &mut maybe).unwrap();
    assert_eq!((surely.len(), maybe.len()), (1, 0));
}
