//! `user quota`: what an account holds and may hold.

use model::Result;
use serde_json::{Value, json};
use store::{OwnLimit, STORAGE_UNIT_BYTES};

use super::{Context, QuotaLimit};

/// Gives an account limits of its own, where some are named, and shows what it holds.
pub fn quota(
    context: &Context,
    user: &str,
    storage: Option<QuotaLimit>,
    messages: Option<QuotaLimit>,
) -> Result<Value> {
    let account = context.account(user)?;
    let mut own = account.own_limits();
    if let Some(limit) = storage {
        own.storage_kib = match own_limit(limit) {
            OwnLimit::Limit(octets) => OwnLimit::Limit(octets.div_ceil(STORAGE_UNIT_BYTES)),
            other => other,
        };
    }
    if let Some(limit) = messages {
        own.messages = own_limit(limit);
    }
    if own != account.own_limits() {
        account.set_own_limits(own)?;
    }
    let quota = account.quota();
    let octets_max = quota.limits.storage_kib.map(|kib| kib.saturating_mul(STORAGE_UNIT_BYTES));
    Ok(json!({
        "user": user,
        "bytes": quota.octets,
        "bytes_max": octets_max,
        "messages": quota.messages,
        "messages_max": quota.limits.messages,
    }))
}

fn own_limit(limit: QuotaLimit) -> OwnLimit {
    match limit {
        QuotaLimit::Default => OwnLimit::Default,
        QuotaLimit::None => OwnLimit::None,
        QuotaLimit::Limit(number) => OwnLimit::Limit(number),
    }
}
