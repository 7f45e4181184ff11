//! `user add`, `passwd`, `remove`, `list`.

use model::{AccountName, Error, ErrorKind, Result};
use serde_json::{Value, json};
use store::AccountFormat;

use super::{Context, NewMail, Password};
use crate::users::User;

/// The account comes first: a user without an account could log in and see nothing; an account without a user only waits for the
/// command to be repeated.
pub fn add(context: &Context, name: &str, password: Password, mail: NewMail) -> Result<Value> {
    let name = AccountName::new(name)?;
    if context.users.current().users.contains_key(&name) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("the user {name} exists; `user passwd` changes the password"),
        ));
    }
    let (format, had_mail) = match existing_format(context, &name)? {
        Some(format) => {
            if mail != NewMail::default()
                && context.new_mail.resolve(&name, mail, &*context.store.env().disk)? != format
            {
                let there = described(&format);
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("there is mail of {name} already, and it lives elsewhere: {there}"),
                ));
            }
            (format, true)
        }
        None => {
            let format = context.new_mail.resolve(&name, mail, &*context.store.env().disk)?;
            context.store.create_account_as(&name, &format)?;
            (format, false)
        }
    };
    put(context, &name, password)?;
    let mut result = json!({ "user": name.as_str(), "had_mail": had_mail });
    add_format(&mut result, Some(&format));
    Ok(result)
}

/// The format of an account that is there, perhaps from a user that was removed.
fn existing_format(context: &Context, name: &AccountName) -> Result<Option<AccountFormat>> {
    match context.store.account_format(name) {
        Ok(format) => Ok(Some(format)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn described(format: &AccountFormat) -> String {
    match format {
        AccountFormat::Native => "native".to_owned(),
        AccountFormat::Mbox { inbox, root } => format!("mbox, {}, {}", inbox.display(), root.display()),
        AccountFormat::Maildir { root, layout } => format!("maildir, {}, {}", root.display(), layout.as_str()),
        AccountFormat::Sql => "sql".to_owned(),
    }
}

fn add_format(row: &mut Value, format: Option<&AccountFormat>) {
    let (name, inbox, root) = match format {
        None => ("unknown", None, None),
        Some(AccountFormat::Native) => ("native", None, None),
        Some(AccountFormat::Mbox { inbox, root }) => ("mbox", Some(inbox), Some(root)),
        Some(AccountFormat::Maildir { root, .. }) => ("maildir", None, Some(root)),
        Some(AccountFormat::Sql) => ("sql", None, None),
    };
    let layout = match format {
        Some(AccountFormat::Maildir { layout, .. }) => Some(layout.as_str()),
        _ => None,
    };
    if let Some(row) = row.as_object_mut() {
        row.insert("format".to_owned(), json!(name));
        row.insert("inbox".to_owned(), json!(inbox));
        row.insert("mail_root".to_owned(), json!(root));
        row.insert("layout".to_owned(), json!(layout));
    }
}

pub fn set_password(context: &Context, name: &str, password: Password) -> Result<Value> {
    let name = AccountName::new(name)?;
    if !context.users.current().users.contains_key(&name) {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no user {name}")));
    }
    put(context, &name, password)?;
    Ok(json!({ "user": name.as_str() }))
}

fn put(context: &Context, name: &AccountName, password: Password) -> Result<()> {
    let credentials = password.into_credentials().map_err(|wrong| Error::new(ErrorKind::Invalid, wrong))?;
    context.users.put(User { name: name.clone(), credentials })
}

pub fn remove(context: &Context, name: &str, delete_mail: bool) -> Result<Value> {
    let name = AccountName::new(name)?;
    match context.users.remove(&name) {
        // What was begun can be finished: the user may be gone already when only its mail is left to delete.
        Err(error) if error.kind() == ErrorKind::NotFound && delete_mail => {}
        result => result?,
    }
    if delete_mail {
        context.store.delete_account(&name)?;
    }
    Ok(json!({ "user": name.as_str(), "mail_deleted": delete_mail }))
}

pub fn list(context: &Context) -> Result<Value> {
    let current = context.users.current();
    let mut users = Vec::new();
    for name in current.users.keys() {
        let mut row = json!({ "user": name.as_str() });
        // One account that cannot be opened does not hide the others; `check` says what is wrong with it.
        add_format(&mut row, context.store.account_format(name).ok().as_ref());
        users.push(row);
    }
    let unreadable: Vec<&String> = current.odd_lines.iter().map(|(_, wrong)| wrong).collect();
    Ok(json!({ "users": users, "unreadable_lines": unreadable }))
}
