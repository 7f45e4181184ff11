"""Debian's Courier-IMAP, a session at a time: its server reads commands from standard input, logged in from the start, as from a tunnel."""

import imaplib
import shlex
import subprocess

import debian

PACKAGES = ("courier-base", "courier-imap", "courier-authlib", "libcourier-unicode4", "libgamin0", "libidn12", "libgdbm6")


class Courier:
    """An account in `folder`/Maildir."""

    def __init__(self, folder):
        self.folder = folder
        self.root = debian.unpacked("courier", *PACKAGES)
        self.imapd = self.root / "usr/bin/imapd"
        if not debian.runs(self.imapd, self.root):
            raise debian.Missing("Courier-IMAP does not find its libraries")
        folder.mkdir(parents=True)
        subprocess.run([self.root / "usr/bin/maildirmake.courier", folder / "Maildir"], check=True,
                       env=debian.environment(self.root))

    def command(self):
        """The session as a shell command."""
        libraries = debian.environment(self.root)["LD_LIBRARY_PATH"]
        words = ["env", f"LD_LIBRARY_PATH={libraries}", "IMAP_CAPABILITY=IMAP4rev1 UIDPLUS CHILDREN NAMESPACE",
                 "IMAP_KEYWORDS=1", "AUTHENTICATED=ann", f"HOME={self.folder}", str(self.imapd), "Maildir"]
        # It complains first that it cannot watch files for other sessions.
        return f"cd {shlex.quote(str(self.folder))} && {shlex.join(words)} 2>/dev/null | sed -u '1{{/ALERT/d}}'"

    def connect(self):
        return imaplib.IMAP4_stream(self.command())
