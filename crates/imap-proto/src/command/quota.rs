//! GETQUOTA, GETQUOTAROOT, SETQUOTA (RFC 9208 §4.1).

use super::CommandBody;
use super::parse::sp_mailbox;
use super::write::CommandWriter;
use crate::error::Parse;
use crate::limits;
use crate::scan::Scan;

/// SETQUOTA (RFC 9208 §7 setquota).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetQuota {
    /// The quota root.
    pub root: Vec<u8>,
    /// Resource names in upper case, and their limits; those that are not named have none afterwards.
    pub limits: Vec<(String, u64)>,
}

// RFC 9208 §7 getquota = "GETQUOTA" SP quota-root-name
pub(super) fn get_quota(scan: &mut Scan) -> Parse<CommandBody> {
    quota_root_name(scan).map(CommandBody::GetQuota)
}

// RFC 9208 §7 getquotaroot = "GETQUOTAROOT" SP mailbox
pub(super) fn get_quota_root(scan: &mut Scan) -> Parse<CommandBody> {
    sp_mailbox(scan).map(CommandBody::GetQuotaRoot)
}

// RFC 9208 §7 setquota = "SETQUOTA" SP quota-root-name SP setquota-list
pub(super) fn set_quota(scan: &mut Scan) -> Parse<CommandBody> {
    let root = quota_root_name(scan)?;
    scan.sp()?;
    let limits = scan.list0(limits::QUOTA_RESOURCES_MAX, "quota_resources_max", setquota_resource)?;
    Ok(CommandBody::SetQuota(SetQuota { root, limits }))
}

// quota-root-name = astring
fn quota_root_name(scan: &mut Scan) -> Parse<Vec<u8>> {
    scan.sp()?;
    scan.astring("a quota root")
}

// setquota-resource = resource-name SP resource-limit
fn setquota_resource(scan: &mut Scan) -> Parse<(String, u64)> {
    let name = scan.atom("a resource")?.to_ascii_uppercase();
    scan.sp()?;
    Ok((name, scan.number64()?))
}

impl SetQuota {
    pub(super) fn write(&self, writer: &mut CommandWriter) {
        writer.raw("SETQUOTA ");
        writer.astring(&self.root);
        writer.raw(" ");
        writer.list(&self.limits, |writer, (name, limit)| {
            writer.raw(name);
            writer.raw(" ");
            writer.number(*limit);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MailboxArg;
    use crate::command::command;

    fn body(line: &str) -> Option<CommandBody> {
        command(line.as_bytes()).ok().map(|command| command.body)
    }

    #[test]
    fn commands() {
        let mailbox = MailboxArg(b"INBOX".to_vec());
        assert_eq!(body("a getquota \"#user/alice\""), Some(CommandBody::GetQuota(b"#user/alice".to_vec())));
        assert_eq!(body("a GETQUOTA \"\""), Some(CommandBody::GetQuota(Vec::new())));
        assert_eq!(body("a GETQUOTAROOT INBOX"), Some(CommandBody::GetQuotaRoot(mailbox)));
        let limits = vec![("STORAGE".to_owned(), 512), ("X-FOO".to_owned(), 0)];
        let set = |limits| Some(CommandBody::SetQuota(SetQuota { root: b"ann".to_vec(), limits }));
        assert_eq!(body("a SETQUOTA ann (storage 512 x-foo 0)"), set(limits));
        assert_eq!(body("a SETQUOTA ann ()"), set(Vec::new()));
        for bad in [
            "a GETQUOTA",
            "a SETQUOTA ann",
            "a SETQUOTA ann STORAGE 1",
            "a SETQUOTA ann (STORAGE)",
            "a SETQUOTA ann (STORAGE -1)",
        ] {
            assert_eq!(body(bad), None, "{bad}");
        }
    }
}
