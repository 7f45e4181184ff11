//! Making an image from texts. Memory: the distinct tokens and eight bytes for each pair of token and document; the caller ends a batch
//! when [`Builder::memory_bytes`] says so.

use model::{Error, ErrorKind, Result};

use crate::dictionary::{Dictionary, NONE};
use crate::find::SECTIONS;
use crate::format::{FIELDS_MAX, NO_NUMBER};
use crate::frequent::{FREQUENT_BYTES_MAX, Frequent};
use crate::token::{Class, Cut, Kind, Tokens};
use crate::write::{Output, Writer};

/// Gathers the tokens of documents; one text at a time.
#[derive(Debug)]
pub struct Builder {
    base: u64,
    frequent: Frequent,
    fields: Vec<Field>,
    tokens: Tokens,
    /// A number of each document that has one.
    numbers: Vec<(u32, i32)>,
    /// Which field the open text belongs to.
    field: usize,
    /// The open document, counted from `base`.
    doc: u32,
    /// The documents, in the order in which they came.
    docs: Vec<u32>,
    memory_bytes: usize,
    /// Lengths of the fields' pairs when the open document began.
    marks: Vec<[usize; SECTIONS]>,
}

/// One field.
#[derive(Debug)]
struct Field {
    cut: Cut,
    tokens: Dictionary,
    contexts: Dictionary,
    joints: Dictionary,
}

impl Field {
    #[inline]
    fn note(&mut self, kind: Kind, token: &[u8], doc: u32) -> usize {
        match kind {
            Kind::Token(sides) if self.cut == Cut::Joints => self.tokens.note(token, doc, sides.bits()),
            Kind::Token(_) => self.tokens.note(token, doc, 0),
            Kind::Context => self.contexts.note(token, doc, 0),
            Kind::Joint => self.joints.note(token, doc, 0),
        }
    }
}

impl Field {
    /// How many pairs each section has.
    fn lens(&self) -> [usize; SECTIONS] {
        [self.tokens.len(), self.contexts.len(), self.joints.len()]
    }
}

impl Builder {
    /// A builder for documents from `base` on with these fields, at most [`FIELDS_MAX`]. Any `frequent` will do: one that fits makes
    /// searches fast.
    pub fn new(base: u64, cuts: &[Cut], frequent: &Frequent) -> Self {
        let nothing = Dictionary::default;
        let field = |cut: &Cut| Field { cut: *cut, tokens: nothing(), contexts: nothing(), joints: nothing() };
        let fields = cuts.iter().take(FIELDS_MAX).map(field).collect();
        Builder {
            base,
            frequent: frequent.clone(),
            fields,
            tokens: Tokens::default(),
            numbers: Vec::new(),
            field: 0,
            doc: NONE,
            docs: Vec::new(),
            memory_bytes: 0,
            marks: Vec::new(),
        }
    }

    /// What is frequent in the documents that follow; the open one ends.
    pub fn set_frequent(&mut self, frequent: Frequent) {
        self.boundary();
        self.frequent = frequent;
    }

    /// Begins a document, each only once; in any order, but a rising one is quicker. `Invalid` when it is below the base or more than
    /// 2³² − 2 above.
    pub fn document(&mut self, document: u64) -> Result<()> {
        self.boundary();
        let doc = document.checked_sub(self.base).and_then(|doc| u32::try_from(doc).ok()).filter(|doc| *doc != NONE);
        self.doc = doc.ok_or_else(|| Error::new(ErrorKind::Invalid, "a document out of the builder's range"))?;
        self.docs.push(self.doc);
        self.marks.clear();
        self.marks.extend(self.fields.iter().map(Field::lens));
        Ok(())
    }

    /// The next texts belong to this field. Ends the text before.
    pub fn field(&mut self, field: usize) {
        self.boundary();
        self.field = field;
    }

    /// The next chunk of the text, folded.
    pub fn text(&mut self, folded: &str) {
        let Some(field) = self.fields.get_mut(self.field) else { return };
        let (doc, memory) = (self.doc, &mut self.memory_bytes);
        let frequent = self.frequent.field(self.field);
        self.tokens.push(folded, field.cut, frequent, |kind, token| *memory += field.note(kind, token, doc));
    }

    /// The text ends; no token reaches into the next.
    pub fn boundary(&mut self) {
        let Some(field) = self.fields.get_mut(self.field) else { return };
        let (doc, memory) = (self.doc, &mut self.memory_bytes);
        let frequent = self.frequent.field(self.field);
        self.tokens.end(field.cut, frequent, &mut |kind: Kind, token: &[u8]| *memory += field.note(kind, token, doc));
    }

    /// Gives the open document a number that it can be found by; [`i32::MIN`] is none.
    pub fn number(&mut self, number: i32) {
        self.numbers.push((self.doc, number));
    }

    /// Takes the open document out again, as if it had never been begun; it is not covered.
    pub fn abandon(&mut self) {
        self.boundary();
        if self.docs.pop().is_some() {
            for (field, lens) in self.fields.iter_mut().zip(&self.marks) {
                let sections = [&mut field.tokens, &mut field.contexts, &mut field.joints];
                sections.into_iter().zip(lens).for_each(|(section, len)| section.truncate(*len));
            }
            self.numbers.pop_if(|(doc, _)| *doc == self.doc);
        }
        // Tokens may remember it as their last document: it must not be begun again with the same number.
        self.doc = NONE;
    }

    pub(crate) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Words of a field that at least so many documents have; none of a field without joints.
    pub(crate) fn frequent_words(&self, field: usize, least: usize, most: usize) -> Vec<Box<[u8]>> {
        let is_word = |token: &[u8]| {
            let text = std::str::from_utf8(token).unwrap_or_default();
            token.len() <= FREQUENT_BYTES_MAX
                && text.chars().next().is_some_and(|first| Class::of(first) == Class::Word)
        };
        let field = self.fields.get(field).filter(|field| field.cut == Cut::Joints);
        field.map_or_else(Vec::new, |field| field.tokens.frequent(least, most, is_word))
    }

    /// Joints of two frequent words that at least so many documents have, without marks.
    pub(crate) fn frequent_pairs(&self, field: usize, least: usize, most: usize) -> Vec<Box<[u8]>> {
        let Some(known) = self.frequent.field(field) else { return Vec::new() };
        let is_pair = |token: &[u8]| {
            // Between its words stands what is no word.
            let text = std::str::from_utf8(token).unwrap_or_default();
            let is_word = |character: char| Class::of(character) == Class::Word;
            let words = text.find(|character| !is_word(character)).zip(text.rfind(|character| !is_word(character)));
            words.is_some_and(|(before, gap)| {
                let behind = gap + text.get(gap..).and_then(|gap| gap.chars().next()).map_or(0, char::len_utf8);
                let is_known = |word: Option<&[u8]>| word.is_some_and(|word| known.words.contains(word));
                is_known(token.get(..before)) && is_known(token.get(behind..))
            })
        };
        self.fields.get(field).map_or_else(Vec::new, |field| field.joints.frequent(least, most, is_pair))
    }

    /// Documents so far.
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.docs.is_empty()
    }

    /// Memory held, bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Writes the image in order to `out`. Its length, bytes.
    pub fn finish(mut self, out: &mut Output<'_>) -> Result<u64> {
        self.boundary();
        self.docs.sort_unstable();
        let span = self.docs.last().map_or(0, |last| u64::from(*last) + 1);
        let mut put = |bytes: &[u8]| out(bytes);
        let cuts: Vec<Cut> = self.fields.iter().map(|field| field.cut).collect();
        let mut writer = Writer::new(self.base, span, &cuts, &mut put);
        for field in self.fields {
            field.tokens.write(field.cut == Cut::Joints, &mut writer)?;
            field.contexts.write(false, &mut writer)?;
            field.joints.write(false, &mut writer)?;
        }
        let mut numbers = vec![NO_NUMBER; usize::try_from(span).unwrap_or(0)];
        for (doc, number) in self.numbers {
            if let Some(place) = numbers.get_mut(doc as usize) {
                *place = number;
            }
        }
        writer.numbers(&numbers)?;
        writer.finish(self.docs.into_iter())
    }

    /// The image in memory.
    pub fn finish_in_memory(self) -> Result<Vec<u8>> {
        let mut image = Vec::new();
        self.finish(&mut |bytes| {
            image.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(image)
    }
}
