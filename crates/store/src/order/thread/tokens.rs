//! Threads as they are written: `(3 6 (4 23)(44 7 96))` (RFC 5256 §4), pulled token by token and without recursion.

/// The result of THREAD.
#[derive(Debug)]
pub struct Threads {
    /// The sequence number of each message.
    pub(super) seqs: Vec<u32>,
    /// The first member of each thread; numbers from the length of `seqs` on are dummies.
    pub(super) tops: Vec<u32>,
    /// The children of all members, those of one beside each other.
    pub(super) children: Vec<u32>,
    /// Where the children of each member begin, and where those of the last one end.
    pub(super) starts: Vec<u32>,
}

/// A piece of a THREAD response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `(`
    Open,
    /// A message, by its sequence number in the view.
    Message(u32),
    /// `)`
    Close,
}

/// What comes next.
#[derive(Clone, Copy)]
enum Next {
    /// Another sibling, or the end of what they are in.
    Sibling,
    /// A thread-list for this member.
    List(u32),
    /// This member, in a list that is open.
    Member(u32),
    /// What is below this member.
    Below(u32),
}

/// Iterates over the tokens of [`Threads`].
pub struct Tokens {
    threads: Threads,
    next: Next,
    /// Children that are being written: of whom, and which is the next. The outermost are the tops.
    open: Vec<Siblings>,
}

#[derive(Clone, Copy)]
struct Siblings {
    is_top: bool,
    at: u32,
    end: u32,
}

impl IntoIterator for Threads {
    type Item = Token;
    type IntoIter = Tokens;

    fn into_iter(self) -> Tokens {
        let end = u32::try_from(self.tops.len()).unwrap_or(u32::MAX);
        Tokens { threads: self, next: Next::Sibling, open: vec![Siblings { is_top: true, at: 0, end }] }
    }
}

impl Iterator for Tokens {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            match self.next {
                Next::Sibling => {
                    let siblings = self.open.last_mut()?;
                    let list = if siblings.is_top { &self.threads.tops } else { &self.threads.children };
                    if siblings.at < siblings.end {
                        self.next = Next::List(*list.get(siblings.at as usize)?);
                        siblings.at += 1;
                    } else if self.open.pop().is_some_and(|siblings| !siblings.is_top) {
                        return Some(Token::Close);
                    }
                }
                Next::List(member) => {
                    self.next = Next::Member(member);
                    return Some(Token::Open);
                }
                Next::Member(member) => {
                    self.next = Next::Below(member);
                    if let Some(seq) = self.threads.seqs.get(member as usize) {
                        return Some(Token::Message(*seq));
                    }
                }
                Next::Below(member) => {
                    let starts = self.threads.starts.get(member as usize..)?;
                    let &[at, end, ..] = starts else { return None };
                    match end - at {
                        0 => {
                            self.next = Next::Sibling;
                            return Some(Token::Close);
                        }
                        // thread-members: one child stands behind its parent.
                        1 => self.next = Next::Member(*self.threads.children.get(at as usize)?),
                        // thread-nested: each child of several in a list of its own.
                        _ => {
                            self.next = Next::Sibling;
                            self.open.push(Siblings { is_top: false, at, end });
                        }
                    }
                }
            }
        }
    }
}

impl std::fmt::Display for Threads {
    /// The whole response, for tests and small results.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = Threads {
            seqs: self.seqs.clone(),
            tops: self.tops.clone(),
            children: self.children.clone(),
            starts: self.starts.clone(),
        };
        let mut after_message = false;
        for token in threads {
            match token {
                Token::Open => f.write_str(if after_message { " (" } else { "(" })?,
                Token::Message(seq) if after_message => write!(f, " {seq}")?,
                Token::Message(seq) => write!(f, "{seq}")?,
                Token::Close => f.write_str(")")?,
            }
            after_message = matches!(token, Token::Message(_));
        }
        Ok(())
    }
}
