//! Commands to bytes, as a client writes them.

use super::{Command, CommandBody, Store, StoreMode};
use crate::MailboxArg;
use crate::chars::{is_astring_char, is_quoted_char};
use crate::encode::{number, quoted};
use crate::flag::write_flag_list;
use crate::sequence::write_sequence_set;

/// How a client announces literals (RFC 7888).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiteralForm {
    /// `{n}`: a continuation request must be awaited.
    Synchronising,
    /// `{n+}`: under LITERAL+, and under LITERAL- up to 4096 octets.
    NonSynchronising,
}

/// A command in the making.
pub(crate) struct CommandWriter {
    pub(crate) out: Vec<u8>,
    form: LiteralForm,
    /// Where the client has to wait.
    waits: Vec<usize>,
}

impl CommandWriter {
    pub(crate) fn new(form: LiteralForm) -> Self {
        CommandWriter { out: Vec::new(), form, waits: Vec::new() }
    }

    pub(crate) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// `" " text`
    pub(crate) fn sp(&mut self, text: &str) {
        self.out.push(b' ');
        self.raw(text);
    }

    pub(crate) fn number(&mut self, value: u64) {
        number(&mut self.out, value);
    }

    /// An astring: an atom when it can be one, else a string.
    pub(crate) fn astring(&mut self, octets: &[u8]) {
        let plain = !octets.is_empty() && octets.iter().all(|byte| is_astring_char(*byte));
        if plain && !octets.eq_ignore_ascii_case(b"NIL") {
            self.out.extend_from_slice(octets);
        } else {
            self.string(octets);
        }
    }

    /// A quoted string when it can be one, else a literal.
    pub(crate) fn string(&mut self, octets: &[u8]) {
        if octets.iter().all(|byte| is_quoted_char(*byte) || matches!(byte, b'"' | b'\\')) && octets.is_ascii() {
            quoted(&mut self.out, octets);
        } else {
            self.literal_mark(octets.len() as u64, false);
            self.out.extend_from_slice(octets);
        }
    }

    pub(crate) fn nstring(&mut self, octets: Option<&[u8]>) {
        match octets {
            Some(octets) => self.string(octets),
            None => self.raw("NIL"),
        }
    }

    /// `{n}` and the line end behind it.
    pub(crate) fn literal_mark(&mut self, size: u64, binary: bool) {
        self.raw(if binary { "~{" } else { "{" });
        self.number(size);
        match self.form {
            LiteralForm::Synchronising => {
                self.raw("}\r\n");
                self.waits.push(self.out.len());
            }
            LiteralForm::NonSynchronising => self.raw("+}\r\n"),
        }
    }

    /// `( )` with `items` between, a space apart.
    pub(crate) fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.out.push(b'(');
        for (n, item) in items.into_iter().enumerate() {
            if n > 0 {
                self.out.push(b' ');
            }
            write(self, item);
        }
        self.out.push(b')');
    }

    /// The pieces of a command that ends with the mark of a literal that the caller sends.
    pub(crate) fn into_pieces_before_message(mut self) -> Vec<Vec<u8>> {
        self.waits.retain(|at| *at < self.out.len());
        self.into_pieces()
    }

    /// The command in pieces: before each but the first, a continuation request is awaited.
    pub(crate) fn into_pieces(mut self) -> Vec<Vec<u8>> {
        let mut pieces: Vec<Vec<u8>> = Vec::with_capacity(self.waits.len().saturating_add(1));
        for at in self.waits.iter().rev() {
            pieces.push(self.out.split_off((*at).min(self.out.len())));
        }
        pieces.push(self.out);
        pieces.reverse();
        pieces
    }
}

impl Command {
    /// The command in pieces, the last ending with CRLF. Before each piece but the first the client awaits a continuation
    /// request; with [`LiteralForm::NonSynchronising`] there is one piece.
    pub fn write(&self, form: LiteralForm) -> Vec<Vec<u8>> {
        let mut writer = CommandWriter::new(form);
        writer.raw(self.tag.as_str());
        writer.raw(" ");
        self.body.write(&mut writer);
        writer.raw("\r\n");
        writer.into_pieces()
    }
}

impl CommandBody {
    fn write(&self, writer: &mut CommandWriter) {
        match self {
            CommandBody::Capability => writer.raw("CAPABILITY"),
            CommandBody::Noop => writer.raw("NOOP"),
            CommandBody::Logout => writer.raw("LOGOUT"),
            CommandBody::Id(None) => writer.raw("ID NIL"),
            CommandBody::Id(Some(pairs)) => {
                writer.raw("ID ");
                writer.list(pairs, |writer, (field, value)| {
                    writer.string(field);
                    writer.raw(" ");
                    writer.nstring(value.as_deref());
                });
            }
            CommandBody::StartTls => writer.raw("STARTTLS"),
            CommandBody::Authenticate { mechanism, initial_response } => {
                writer.raw("AUTHENTICATE ");
                writer.raw(mechanism);
                if let Some(response) = initial_response {
                    writer.raw(" ");
                    writer.out.extend_from_slice(&response.0);
                }
            }
            CommandBody::Login { user, password } => {
                writer.raw("LOGIN ");
                writer.astring(user);
                writer.raw(" ");
                writer.astring(&password.0);
            }
            CommandBody::Unauthenticate => writer.raw("UNAUTHENTICATE"),
            CommandBody::Compress(algorithm) => {
                writer.raw("COMPRESS ");
                writer.raw(algorithm);
            }
            CommandBody::Enable(capabilities) => {
                writer.raw("ENABLE");
                for capability in capabilities {
                    writer.sp(capability.as_str());
                }
            }
            CommandBody::Select(select) => {
                writer.raw("SELECT");
                select.write(writer);
            }
            CommandBody::Examine(select) => {
                writer.raw("EXAMINE");
                select.write(writer);
            }
            CommandBody::Create { mailbox, special_use } => {
                writer.mailboxes("CREATE", &[mailbox]);
                if !special_use.is_empty() {
                    writer.raw(" (USE ");
                    writer.list(special_use, |writer, attribute| writer.raw(attribute.as_str()));
                    writer.raw(")");
                }
            }
            CommandBody::Delete(mailbox) => writer.mailboxes("DELETE", &[mailbox]),
            CommandBody::Rename { from, to } => writer.mailboxes("RENAME", &[from, to]),
            CommandBody::Subscribe(mailbox) => writer.mailboxes("SUBSCRIBE", &[mailbox]),
            CommandBody::Unsubscribe(mailbox) => writer.mailboxes("UNSUBSCRIBE", &[mailbox]),
            CommandBody::List(list) => {
                writer.raw("LIST");
                list.write(writer);
            }
            CommandBody::Lsub { reference, pattern } => {
                writer.mailboxes("LSUB", &[reference]);
                writer.raw(" ");
                writer.string(&pattern.0);
            }
            CommandBody::Namespace => writer.raw("NAMESPACE"),
            CommandBody::Status { mailbox, items } => {
                writer.mailboxes("STATUS", &[mailbox]);
                writer.raw(" ");
                writer.list(items, |writer, item| writer.raw(item.as_str()));
            }
            CommandBody::GetQuota(root) => {
                writer.raw("GETQUOTA ");
                writer.astring(root);
            }
            CommandBody::GetQuotaRoot(mailbox) => writer.mailboxes("GETQUOTAROOT", &[mailbox]),
            CommandBody::SetQuota(set) => set.write(writer),
            CommandBody::Notify(notify) => notify.write(writer),
            CommandBody::GetMetadata(command) => {
                writer.raw("GETMETADATA");
                command.write(writer);
            }
            CommandBody::SetMetadata(command) => {
                writer.raw("SETMETADATA");
                command.write(writer);
            }
            CommandBody::Idle => writer.raw("IDLE"),
            CommandBody::Check => writer.raw("CHECK"),
            CommandBody::Close => writer.raw("CLOSE"),
            CommandBody::Unselect => writer.raw("UNSELECT"),
            CommandBody::Expunge => writer.raw("EXPUNGE"),
            CommandBody::UidExpunge(set) => {
                writer.raw("UID EXPUNGE ");
                write_sequence_set(&mut writer.out, set);
            }
            CommandBody::Search(search) => {
                writer.raw(if search.uid { "UID SEARCH" } else { "SEARCH" });
                search.write(writer);
            }
            CommandBody::Sort(sort) => {
                writer.raw(if sort.uid { "UID SORT" } else { "SORT" });
                sort.write(writer);
            }
            CommandBody::Thread(thread) => {
                writer.raw(if thread.uid { "UID THREAD" } else { "THREAD" });
                thread.write(writer);
            }
            CommandBody::MultiSearch(search) => {
                writer.raw("ESEARCH");
                search.write(writer);
            }
            CommandBody::CancelUpdate(tags) => {
                writer.raw("CANCELUPDATE");
                for tag in tags {
                    writer.raw(" ");
                    writer.string(tag);
                }
            }
            CommandBody::Fetch(fetch) => {
                writer.raw(if fetch.uid { "UID FETCH" } else { "FETCH" });
                fetch.write(writer);
            }
            CommandBody::Store(store) => store.write(writer),
            CommandBody::Copy { uid, set, mailbox } => {
                writer.raw(if *uid { "UID COPY " } else { "COPY " });
                write_sequence_set(&mut writer.out, set);
                writer.mailboxes("", &[mailbox]);
            }
            CommandBody::Move { uid, set, mailbox } => {
                writer.raw(if *uid { "UID MOVE " } else { "MOVE " });
                write_sequence_set(&mut writer.out, set);
                writer.mailboxes("", &[mailbox]);
            }
        }
    }
}

impl Store {
    fn write(&self, writer: &mut CommandWriter) {
        writer.raw(if self.uid { "UID STORE " } else { "STORE " });
        write_sequence_set(&mut writer.out, &self.set);
        if let Some(modseq) = self.unchanged_since {
            writer.raw(" (UNCHANGEDSINCE ");
            writer.number(modseq.0);
            writer.raw(")");
        }
        writer.raw(match self.mode {
            StoreMode::Replace => " FLAGS",
            StoreMode::Add => " +FLAGS",
            StoreMode::Remove => " -FLAGS",
        });
        writer.raw(if self.silent { ".SILENT " } else { " " });
        write_flag_list(&mut writer.out, &self.flags);
    }
}

impl CommandWriter {
    /// A name and mailboxes behind it.
    fn mailboxes(&mut self, name: &str, mailboxes: &[&MailboxArg]) {
        self.raw(name);
        for mailbox in mailboxes {
            self.raw(" ");
            self.astring(&mailbox.0);
        }
    }
}
