//! Response codes (RFC 9051 §7.1, RFC 5530, and those of the extensions), both directions.

use model::{ModSeq, NumSet, Uid, UidValidity};

use super::UidsIn;
use crate::encode::{line_text, num_set, number};
use crate::error::Parse;
use crate::flag::flag;
use crate::scan::Scan;
use crate::sequence::known_set;
use crate::{FlagName, NameEncoding, encode, limits};

/// A response code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// A code that is nothing but its name.
    Plain(PlainCode),
    /// `BADCHARSET`: the charsets that are known, perhaps none.
    BadCharset(Vec<String>),
    /// `CAPABILITY`
    Capability(Vec<String>),
    /// `PERMANENTFLAGS`
    PermanentFlags {
        /// The flags that can be changed for good.
        flags: Vec<FlagName>,
        /// `\*`: new keywords can be made.
        wildcard: bool,
    },
    /// `UIDNEXT`
    UidNext(Uid),
    /// `UIDVALIDITY`
    UidValidity(UidValidity),
    /// `UNSEEN` (RFC 3501 §7.1): the first message without `\Seen`.
    Unseen(u32),
    /// `APPENDUID` (RFC 4315 §3)
    AppendUid(UidsIn),
    /// `COPYUID` (RFC 4315 §3): what was copied, and what it became.
    CopyUid {
        /// The UIDs in the mailbox copied from.
        source: NumSet,
        /// The UIDs in the mailbox copied to; as many.
        destination: UidsIn,
    },
    /// `HIGHESTMODSEQ` (RFC 7162 §3.1.2.1)
    HighestModSeq(ModSeq),
    /// `MODIFIED` (RFC 7162 §3.1.3): what a conditional STORE left alone.
    Modified(NumSet),
    /// `MAILBOXID` (RFC 8474 §4)
    MailboxId(String),
    /// A code that this grammar does not know, or a known one in a form that it does not know.
    Other {
        /// The name as sent.
        name: String,
        /// What stands behind it and a space.
        text: Option<String>,
    },
}

macro_rules! plain_codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// The codes without data.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PlainCode {
            $($(#[$doc])* #[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl PlainCode {
            /// Every code without data.
            pub const EVERY: &'static [PlainCode] = &[$(PlainCode::$variant,)*];

            /// The code's name.
            pub const fn as_str(self) -> &'static str {
                match self { $(PlainCode::$variant => $name,)* }
            }
        }

        #[allow(non_upper_case_globals, reason = "they read as the variants that they stand for")]
        impl Code {
            $($(#[$doc])* #[doc = concat!("`", $name, "`")] pub const $variant: Code = Code::Plain(PlainCode::$variant);)*
        }
    };
}

plain_codes! {
    /// RFC 9051 §7.1:
    Alert "ALERT",
    /// RFC 9051 §7.1:
    Parse "PARSE",
    /// RFC 9051 §7.1:
    ReadOnly "READ-ONLY",
    /// RFC 9051 §7.1:
    ReadWrite "READ-WRITE",
    /// RFC 9051 §7.1:
    TryCreate "TRYCREATE",
    /// RFC 4315 §3:
    UidNotSticky "UIDNOTSTICKY",
    /// RFC 5530 §3:
    Unavailable "UNAVAILABLE",
    /// RFC 5530 §3:
    AuthenticationFailed "AUTHENTICATIONFAILED",
    /// RFC 5530 §3:
    AuthorizationFailed "AUTHORIZATIONFAILED",
    /// RFC 5530 §3:
    Expired "EXPIRED",
    /// RFC 5530 §3:
    PrivacyRequired "PRIVACYREQUIRED",
    /// RFC 5530 §3:
    ContactAdmin "CONTACTADMIN",
    /// RFC 5530 §3:
    NoPerm "NOPERM",
    /// RFC 5530 §3:
    InUse "INUSE",
    /// RFC 5530 §3:
    ExpungeIssued "EXPUNGEISSUED",
    /// RFC 5530 §3:
    Corruption "CORRUPTION",
    /// RFC 5530 §3:
    ServerBug "SERVERBUG",
    /// RFC 5530 §3:
    ClientBug "CLIENTBUG",
    /// RFC 5530 §3:
    Cannot "CANNOT",
    /// RFC 5530 §3:
    Limit "LIMIT",
    /// RFC 5530 §3:
    OverQuota "OVERQUOTA",
    /// RFC 5530 §3:
    AlreadyExists "ALREADYEXISTS",
    /// RFC 5530 §3:
    NonExistent "NONEXISTENT",
    /// RFC 5182 §2.1:
    NotSaved "NOTSAVED",
    /// RFC 9051 §7.1:
    HasChildren "HASCHILDREN",
    /// RFC 7162 §3.2.11:
    Closed "CLOSED",
    /// RFC 3516 §4.3:
    UnknownCte "UNKNOWN-CTE",
    /// RFC 7162 §3.1.2.2:
    NoModSeq "NOMODSEQ",
    /// RFC 6154 §6:
    UseAttr "USEATTR",
    /// RFC 4469 §4.2, RFC 7889 §4:
    TooBig "TOOBIG",
    /// RFC 4978 §3:
    CompressionActive "COMPRESSIONACTIVE",
}

impl Code {
    /// Writes the code with its brackets.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        match self {
            Code::Plain(code) => out.extend_from_slice(code.as_str().as_bytes()),
            Code::BadCharset(charsets) => {
                out.extend_from_slice(b"BADCHARSET");
                if !charsets.is_empty() {
                    out.push(b' ');
                    encode::flag_names(out, charsets.iter().map(String::as_str));
                }
            }
            Code::Capability(names) => {
                out.extend_from_slice(b"CAPABILITY");
                for name in names {
                    out.push(b' ');
                    out.extend_from_slice(name.as_bytes());
                }
            }
            Code::PermanentFlags { flags, wildcard } => {
                out.extend_from_slice(b"PERMANENTFLAGS ");
                encode::flag_names(out, flags.iter().map(FlagName::as_str).chain(wildcard.then_some("\\*")));
            }
            Code::UidNext(uid) => with_number(out, b"UIDNEXT ", u64::from(uid.get())),
            Code::UidValidity(value) => with_number(out, b"UIDVALIDITY ", u64::from(value.get())),
            Code::Unseen(sequence) => with_number(out, b"UNSEEN ", u64::from(*sequence)),
            Code::AppendUid(UidsIn { uidvalidity, uids }) => {
                with_number(out, b"APPENDUID ", u64::from(uidvalidity.get()));
                out.push(b' ');
                num_set(out, uids);
            }
            Code::CopyUid { source, destination: UidsIn { uidvalidity, uids } } => {
                with_number(out, b"COPYUID ", u64::from(uidvalidity.get()));
                out.push(b' ');
                num_set(out, source);
                out.push(b' ');
                num_set(out, uids);
            }
            Code::HighestModSeq(modseq) => with_number(out, b"HIGHESTMODSEQ ", modseq.0),
            Code::Modified(set) => {
                out.extend_from_slice(b"MODIFIED ");
                num_set(out, set);
            }
            Code::MailboxId(id) => {
                out.extend_from_slice(b"MAILBOXID (");
                out.extend_from_slice(id.as_bytes());
                out.push(b')');
            }
            Code::Other { name, text } => {
                line_text(out, name, NameEncoding::Utf7);
                if let Some(text) = text {
                    out.push(b' ');
                    line_text(out, text, NameEncoding::Utf7);
                }
            }
        }
        out.push(b']');
    }
}

fn with_number(out: &mut Vec<u8>, name: &[u8], value: u64) {
    out.extend_from_slice(name);
    number(out, value);
}

// RFC 9051 §9 resp-text-code, with its brackets. A known code in an unknown form is an Other: a client reads on.
pub(super) fn resp_text_code(scan: &mut Scan) -> Parse<Code> {
    scan.expect(b'[', "[")?;
    let mut ahead = scan.clone();
    if let Ok(Some(code)) = known_code(&mut ahead) {
        ahead.skip_spaces();
        if ahead.eat(b']') {
            *scan = ahead;
            return Ok(code);
        }
    }
    let name = scan.atom("a response code")?.to_owned();
    let text = if scan.eat(b' ') {
        let octets = scan.take_while(|byte| !matches!(byte, b']' | 0 | b'\r' | b'\n'));
        Some(String::from_utf8_lossy(octets).into_owned())
    } else {
        None
    };
    scan.expect(b']', "] after a response code")?;
    Ok(Code::Other { name, text })
}

fn known_code(scan: &mut Scan) -> Parse<Option<Code>> {
    let name = scan.word("a response code")?;
    if let Some(code) = PlainCode::EVERY.iter().find(|code| code.as_str() == name) {
        return Ok(Some(Code::Plain(*code)));
    }
    let text = |scan: &mut Scan| scan.astring("a charset").map(|octets| String::from_utf8_lossy(&octets).into_owned());
    Ok(Some(match name.as_str() {
        "BADCHARSET" => Code::BadCharset(if scan.more_items() {
            scan.list0(limits::FLAGS_MAX, "flags_max", text)?
        } else {
            Vec::new()
        }),
        "CAPABILITY" => Code::Capability(super::parse::capabilities(scan)?),
        "PERMANENTFLAGS" => {
            scan.sp()?;
            permanent_flags(scan)?
        }
        "UIDNEXT" => Code::UidNext(sp_nonzero(scan, Uid::new)?),
        "UIDVALIDITY" => Code::UidValidity(sp_nonzero(scan, UidValidity::new)?),
        "UNSEEN" => {
            scan.sp()?;
            Code::Unseen(scan.nz_number()?.get())
        }
        "APPENDUID" => {
            Code::AppendUid(UidsIn { uidvalidity: sp_nonzero(scan, UidValidity::new)?, uids: sp_set(scan)? })
        }
        "COPYUID" => {
            let uidvalidity = sp_nonzero(scan, UidValidity::new)?;
            let source = sp_set(scan)?;
            Code::CopyUid { source, destination: UidsIn { uidvalidity, uids: sp_set(scan)? } }
        }
        "HIGHESTMODSEQ" => {
            scan.sp()?;
            Code::HighestModSeq(ModSeq(scan.number64()?))
        }
        "MODIFIED" => Code::Modified(sp_set(scan)?),
        "MAILBOXID" => {
            scan.sp()?;
            Code::MailboxId(scan.parenthesised(crate::command::objectid)?)
        }
        _ => return Ok(None),
    }))
}

fn sp_nonzero<T>(scan: &mut Scan, new: fn(u32) -> Option<T>) -> Parse<T> {
    scan.sp()?;
    new(scan.nz_number()?.get()).map_or_else(|| scan.error("a number above zero"), Ok)
}

fn sp_set(scan: &mut Scan) -> Parse<NumSet> {
    scan.sp()?;
    known_set(scan)
}

// RFC 9051 §9: "PERMANENTFLAGS" SP "(" [flag-perm *(SP flag-perm)] ")"; flag-perm = flag / "\*"
fn permanent_flags(scan: &mut Scan) -> Parse<Code> {
    let flag_perm = |scan: &mut Scan| if scan.eat_prefix("\\*") { Ok(None) } else { flag(scan).map(Some) };
    let all = scan.list0(limits::FLAGS_MAX, "flags_max", flag_perm)?;
    let wildcard = all.contains(&None);
    Ok(Code::PermanentFlags { flags: all.into_iter().flatten().collect(), wildcard })
}
