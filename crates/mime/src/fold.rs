//! Case folding and substring search (RFC 5051's equivalences).

/// `text` folded for comparison.
pub fn fold(_text: &str) -> String {
    todo!()
}

/// A search string, folded once.
#[derive(Clone, Debug)]
pub struct Needle {}

impl Needle {
    /// The needle for `text`.
    pub fn new(_text: &str) -> Self {
        todo!()
    }
    /// The folded needle.
    pub fn folded(&self) -> &str {
        todo!()
    }
    /// Whether `text` (not folded) contains the needle.
    pub fn is_in(&self, _text: &str) -> bool {
        todo!()
    }
    /// Where the needle begins in text that is already folded, in octets.
    pub fn find(&self, _folded: &str) -> Option<usize> {
        todo!()
    }
}

/// Finds a needle in text that comes in chunks, also over their borders. Memory: a few times the needle.
#[derive(Debug)]
pub struct Matcher<'n> {
    _needle: &'n Needle,
}

impl<'n> Matcher<'n> {
    /// A matcher that has seen nothing.
    pub fn new(_needle: &'n Needle) -> Self {
        todo!()
    }
    /// Takes the next chunk (not folded); true as soon as the needle was found, and from then on.
    pub fn push(&mut self, _chunk: &str) -> bool {
        todo!()
    }
    /// The text ends here; what follows is another text. Returns like [`Matcher::push`].
    pub fn boundary(&mut self) -> bool {
        todo!()
    }
}
