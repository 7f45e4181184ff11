//! `user add`, `passwd`, `remove`, `list`.

use model::{AccountName, Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::{Context, Password};
use crate::users::User;

/// The account comes first: a user without an account could log in and see nothing; an account without a user only waits for the
/// command to be repeated.
pub fn add(context: &Context, name: &str, password: Password) -> Result<Value> {
    let name = AccountName::new(name)?;
    if context.users.current().users.contains_key(&name) {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("the user {name} exists; `user passwd` changes the password"),
        ));
    }
    let had_mail = match context.store.create_account(&name) {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => true,
        Err(error) => return Err(error),
    };
    put(context, &name, password)?;
    Ok(json!({ "user": name.as_str(), "had_mail": had_mail }))
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
    let users: Vec<Value> = current.users.keys().map(|name| json!({ "user": name.as_str() })).collect();
    let unreadable: Vec<&String> = current.odd_lines.iter().map(|(_, wrong)| wrong).collect();
    Ok(json!({ "users": users, "unreadable_lines": unreadable }))
}
