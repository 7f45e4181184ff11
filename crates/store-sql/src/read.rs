//! Rows to news: what was changed in an account since a modseq.
//!
//! The caller sees to it that all is of one moment: a snapshot, or the lock on the account's row.

use index::{ExpungedNews, MailboxNews, News, Row};
use model::{DateTime, EmailId, Flags, Keyword, MailboxId, MailboxName, ModSeq, Uid, UidValidity};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::database::REMOVED;
use crate::failure::{Failure, damaged};
use crate::lease::NO_NODE;

/// What the account's own row says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) modseq: u64,
    pub(crate) email_id_next: u64,
    pub(crate) mailbox_id_next: u64,
    pub(crate) uidvalidity_last: u32,
}

/// The head of an account; `None`: it was removed.
pub(crate) fn head(connection: &mut Conn, account: u64) -> Result<Option<Head>, Failure> {
    head_below(connection, account, NO_NODE)
}

/// The same of an account that nobody is served from.
pub(crate) fn head_of_any(connection: &mut Conn, account: u64) -> Result<Option<Head>, Failure> {
    head_below(connection, account, REMOVED)
}

fn head_below(connection: &mut Conn, account: u64, owner: u64) -> Result<Option<Head>, Failure> {
    let row = connection.exec_first(
        "SELECT modseq, email_id_next, mailbox_id_next, uidvalidity_last FROM account WHERE id = ? AND owner < ?",
        (account, owner),
    )?;
    Ok(row.map(|(modseq, email_id_next, mailbox_id_next, uidvalidity_last)| Head {
        modseq,
        email_id_next,
        mailbox_id_next,
        uidvalidity_last,
    }))
}

/// What was changed after `since`. An account that is older than that was put back: everything.
pub(crate) fn news(connection: &mut Conn, account: u64, since: ModSeq, head: &Head) -> Result<News, Failure> {
    let is_whole = since.0 == 0 || since.0 > head.modseq;
    let after = if is_whole { 0 } else { since.0 };
    Ok(News {
        is_whole,
        modseq: ModSeq(head.modseq),
        email_id_next: head.email_id_next,
        mailbox_id_next: head.mailbox_id_next,
        uidvalidity_last: head.uidvalidity_last,
        mailboxes: mailboxes(connection, account, after)?,
        keywords: keywords(connection, account, after)?,
        annotations: annotations(connection, account, after)?,
        subscriptions: subscriptions(connection, account, after)?,
        entries: entries(connection, account, is_whole, after)?,
        expunged: expunged(connection, account, is_whole, after)?,
    })
}

/// Collects rows, each made by `make`; what it refuses is damage.
fn collect<R: mysql::prelude::FromRow, T>(
    connection: &mut Conn,
    statement: &str,
    params: impl Into<mysql::Params>,
    mut make: impl FnMut(R) -> Option<T>,
) -> Result<Vec<T>, Failure> {
    let mut found = Vec::new();
    for row in connection.exec_iter(statement, params)? {
        let row = mysql::from_row_opt::<R>(row?).map_err(damaged)?;
        found.push(make(row).ok_or_else(|| damaged(statement))?);
    }
    Ok(found)
}

fn mailboxes(connection: &mut Conn, account: u64, after: u64) -> Result<Vec<MailboxNews>, Failure> {
    type Columns = (u64, String, u32, u64, u64, i64, u16, u32, u64, Option<i64>);
    collect(
        connection,
        "SELECT id, name, uidvalidity, uidnext, highest_modseq, created, special_use, recent_floor, vanished_floor, deleted_at \
         FROM mailbox WHERE account = ? AND touched > ? ORDER BY id",
        (account, after),
        |(id, name, uidvalidity, uidnext, highest, created, special_use, recent_floor, floor, deleted_at): Columns| {
            Some(MailboxNews {
                id: MailboxId(id),
                name: MailboxName::stored(&name).ok()?,
                uidvalidity: UidValidity::new(uidvalidity)?,
                uidnext,
                highest_modseq: ModSeq(highest),
                created,
                special_use,
                recent_floor,
                vanished_floor: ModSeq(floor),
                deleted_at,
            })
        },
    )
}

fn keywords(connection: &mut Conn, account: u64, after: u64) -> Result<Vec<(MailboxId, usize, Keyword)>, Failure> {
    collect(
        connection,
        "SELECT mailbox, number, name FROM keyword WHERE account = ? AND touched > ? ORDER BY mailbox, number",
        (account, after),
        |(mailbox, number, name): (u64, u16, String)| {
            Some((MailboxId(mailbox), usize::from(number), Keyword::new(&name).ok()?))
        },
    )
}

type Annotation = (Option<MailboxId>, String, Option<Vec<u8>>);

fn annotations(connection: &mut Conn, account: u64, after: u64) -> Result<Vec<Annotation>, Failure> {
    collect(
        connection,
        "SELECT mailbox, name, value FROM annotation WHERE account = ? AND touched > ?",
        (account, after),
        |(mailbox, name, value): (u64, Vec<u8>, Option<Vec<u8>>)| {
            Some(((mailbox > 0).then_some(MailboxId(mailbox)), String::from_utf8(name).ok()?, value))
        },
    )
}

fn subscriptions(connection: &mut Conn, account: u64, after: u64) -> Result<Vec<(MailboxName, bool)>, Failure> {
    collect(
        connection,
        "SELECT name, subscribed FROM subscription WHERE account = ? AND touched > ?",
        (account, after),
        |(name, subscribed): (Vec<u8>, bool)| {
            Some((MailboxName::stored(std::str::from_utf8(&name).ok()?).ok()?, subscribed))
        },
    )
}

/// The columns of a row of an entry, in the order of the statements here.
type EntryColumns = (u64, u32, u64, u64, u64, u64, i64, i16, i64, u32);

fn row(columns: EntryColumns) -> Option<(MailboxId, Row)> {
    let (mailbox, uid, email_id, flags, flags_high, modseq, unix_seconds, offset_minutes, save_date, size) = columns;
    let row = Row {
        uid: Uid::new(uid)?,
        flags: flags_of(flags, flags_high),
        modseq: ModSeq(modseq),
        internal_date: DateTime { unix_seconds, offset_minutes },
        save_date,
        size,
        email_id: EmailId(email_id),
    };
    Some((MailboxId(mailbox), row))
}

/// Flags from their two columns.
fn flags_of(low: u64, high: u64) -> Flags {
    Flags(u128::from(low) | u128::from(high) << 64)
}

fn entries(connection: &mut Conn, account: u64, is_whole: bool, after: u64) -> Result<Vec<(MailboxId, Row)>, Failure> {
    const COLUMNS: &str = "SELECT mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, save_date, size \
                           FROM entry WHERE account = ?";
    if is_whole {
        // As they lie.
        return collect(connection, &format!("{COLUMNS} ORDER BY mailbox, uid"), (account,), row);
    }
    let mut found = collect(connection, &format!("{COLUMNS} AND modseq > ?"), (account, after), row)?;
    found.sort_unstable_by_key(|(mailbox, row)| (*mailbox, row.uid));
    Ok(found)
}

fn expunged(connection: &mut Conn, account: u64, is_whole: bool, after: u64) -> Result<Vec<ExpungedNews>, Failure> {
    type Columns = (u64, u32, Option<u64>, u64, u64, u64, i64, i16, i64, u32, u64, i64);
    let touched = if is_whole { "" } else { " AND touched > ?" };
    let statement = format!(
        "SELECT mailbox, uid, email_id, flags, flags_high, modseq, internal_date, zone_minutes, save_date, size, expunged_modseq, \
         expunged_at FROM expunged WHERE account = ?{touched}"
    );
    let params: Vec<mysql::Value> = if is_whole { vec![account.into()] } else { vec![account.into(), after.into()] };
    let make = |(mailbox, uid, email_id, flags, high, modseq, date, zone, save, size, gone, time): Columns| {
        let columns = (mailbox, uid, email_id.unwrap_or(0), flags, high, modseq, date, zone, save, size);
        let (mailbox, row) = row(columns)?;
        Some(ExpungedNews { mailbox, row, modseq: ModSeq(gone), time, is_kept: email_id.is_some() })
    };
    collect(connection, &statement, params, make)
}
