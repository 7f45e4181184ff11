//! Three ways to connect, to be pasted into a shell.

use std::net::SocketAddr;
use std::path::Path;

use store::AccountFormat;

/// What `mailyard demo` prints.
pub fn text(address: SocketAddr, user: &str, password: &str, data: &Path, format: &AccountFormat) -> String {
    let (host, port) = (address.ip(), address.port());
    // An IPv6 address stands in brackets in a URL only.
    let url_host = if address.is_ipv6() { format!("[{host}]") } else { host.to_string() };
    let data = data.display();
    let files = files(format);
    format!(
        r#"Mailyard serves sample mail until you press Ctrl-C.

  host      {host}
  port      {port}   (IMAP, no TLS)
  user      {user}
  password  {password}
  data      {data}   (removed at the end)
{files}
mutt:

mutt -e 'set ssl_force_tls=no ssl_starttls=no' -e 'set imap_pass={password}' -e 'set folder=imap://{user}@{url_host}:{port}/' -f +INBOX

Python:

python3 -c 'import imaplib
c = imaplib.IMAP4("{host}", {port}); c.login("{user}", "{password}"); c.select("INBOX", readonly=True)
for _, header in [m for m in c.fetch("1:*", "BODY.PEEK[HEADER.FIELDS (SUBJECT)]")[1] if isinstance(m, tuple)]:
    print(header.decode().strip())'

mbsync (isync 1.4 or later), into ./demo-mail:

mkdir -p demo-mail && mbsync -a -c /dev/stdin <<END
IMAPStore far
Host {host}
Port {port}
User {user}
Pass {password}
SSLType None
AuthMechs LOGIN

MaildirStore near
Path ./demo-mail/
Inbox ./demo-mail/INBOX
SubFolders Verbatim

Channel demo
Far :far:
Near :near:
Patterns *
Create Near
SyncState *
END
"#
    )
}

/// What can be done with the files meanwhile.
fn files(format: &AccountFormat) -> String {
    let AccountFormat::Mbox { inbox, root } = format else { return String::new() };
    let (inbox, root) = (inbox.display(), root.display());
    format!(
        r"
The mail is in mbox files: INBOX is {inbox}, the others are in {root}. Other programs can read and change them while somebody is connected:

mutt -f {inbox}
"
    )
}
