"""mailyard restore: what was expunged or deleted comes back, as it was."""

import datetime
import unittest

import support
from support import Case, Server, add_user, all_messages, corpus, flags_of, tool, write_maildir

ITEMS = "(UID FLAGS INTERNALDATE EMAILID BODY.PEEK[])"
# Letters of a Maildir file name: flagged, answered, seen, and the first keyword.
LETTERS = ["", "S", "FS", "RS", "Sa", "F"]


def keyed(found):
    """EMAILID: (flags, date, bytes) of what `all_messages` gives."""
    return {values["EMAILID"][0]: (flags_of(values), values["INTERNALDATE"], values["BODY[]"]) for values in found}


class Restore(Case):
    def setUp(self):
        super().setUp()
        add_user(self.data)
        maildir = self.folder / "Maildir"
        self.count = 300
        write_maildir(maildir, corpus()[: self.count], [LETTERS[n % len(LETTERS)] for n in range(self.count)])
        (maildir / "dovecot-keywords").write_text("0 $Work\n")
        tool(self.data, "import", "--user", support.USER, "--mailbox", "Work", maildir)

    def log_in(self, server):
        imap = server.connect()
        self.addCleanup(imap.shutdown)
        return imap

    def restore(self, mailbox="Work", since="1h", check=True):
        code, out, err = tool(
            self.data, "restore", "--user", support.USER, "--mailbox", mailbox, "--since", since, check=check)
        return code, out + err

    def test_expunged(self):
        """New UIDs in the old order; flags, dates, identities and octets as they were; a session that looks on is told."""
        with Server(self.data) as server:
            imap, other = self.log_in(server), self.log_in(server)
            before = all_messages(imap, "Work", ITEMS)
            self.assertEqual(len(before), self.count)
            self.assertEqual(len({flags_of(values) for values in before}), len(LETTERS))
            self.ok(imap.select("Work"))
            self.ok(other.select("Work"))
            self.ok(imap.store("2:*", "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(imap.store("100:150", "-FLAGS.SILENT", r"(\Deleted)"))
            gone = {values["EMAILID"][0] for number, values in enumerate(before, 1) if number > 1 and not 100 <= number <= 150}
            self.ok(imap.expunge())
            self.ok(other.noop())
            self.assertEqual(len(all_messages(imap, "Work", ITEMS)), self.count - len(gone))
            uid_next = int(imap.response("UIDNEXT")[1][0])

            _, said = self.restore()
            self.assertRegex(said, rf"restored: +{len(gone)}\b")
            self.ok(other.noop())
            self.assertEqual(other.response("EXISTS")[1][-1], str(self.count).encode())
            after = all_messages(imap, "Work", ITEMS)
            self.assertEqual(keyed(after), keyed(before))
            new = [values for values in after if values["UID"] >= uid_next]
            self.assertEqual({values["EMAILID"][0] for values in new}, gone)
            # In the order that they had.
            self.assertEqual([values["EMAILID"][0] for values in new],
                             [values["EMAILID"][0] for values in before if values["EMAILID"][0] in gone])

            # Nothing is left to restore, and what came back stays when the next EXPUNGE comes.
            self.assertRegex(self.restore()[1], r"restored: +0\b")
            self.ok(imap.select("Work"))
            self.assertEqual(self.ok(imap.expunge()), [None])
        # Without a server, after a restart, from the log alone.
        with Server(self.data) as server:
            self.assertEqual(keyed(all_messages(self.log_in(server), "Work", ITEMS)), keyed(before))
        tool(self.data, "check")

    def test_since(self):
        """Only what was expunged since then."""
        with Server(self.data) as server:
            imap = self.log_in(server)
            self.ok(imap.select("Work"))
            self.ok(imap.store("1:10", "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(imap.expunge())
            later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
            self.assertRegex(self.restore(since=later.strftime("%Y-%m-%dT%H:%M:%SZ"))[1], r"restored: +0\b")
            earlier = later - datetime.timedelta(hours=2)
            self.assertRegex(self.restore(since=earlier.strftime("%Y-%m-%dT%H:%M:%SZ"))[1], r"restored: +10\b")

    def test_killed(self):
        """An expunge that was acknowledged can be taken back after the server was killed, by the command alone."""
        with Server(self.data) as server:
            imap = self.log_in(server)
            before = all_messages(imap, "Work", ITEMS)
            self.ok(imap.select("Work"))
            self.ok(imap.store("1:*", "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(imap.expunge())
            server.kill()
        self.assertRegex(self.restore()[1], rf"restored: +{self.count}\b")
        with Server(self.data) as server:
            self.assertEqual(keyed(all_messages(self.log_in(server), "Work", ITEMS)), keyed(before))

    def test_deleted_mailbox(self):
        """A deleted mailbox comes back with its UIDs, and what was expunged from it before with new ones."""
        with Server(self.data) as server:
            imap = self.log_in(server)
            before = all_messages(imap, "Work", ITEMS)
            validity = imap.response("UIDVALIDITY")[1]
            self.ok(imap.select("Work"))
            self.ok(imap.store("7", "+FLAGS.SILENT", r"(\Deleted)"))
            self.ok(imap.expunge())
            self.ok(imap.close())
            self.ok(imap.delete("Work"))
            self.restore()
            after = all_messages(imap, "Work", ITEMS)
            self.assertEqual(imap.response("UIDVALIDITY")[1], validity)
            self.assertEqual(keyed(after), keyed(before))
            uids = [values["UID"] for values in before]
            self.assertEqual([values["UID"] for values in after], uids[:6] + uids[7:] + [uids[-1] + 1])

    def test_nothing_to_restore(self):
        code, said = self.restore("Nowhere", check=False)
        self.assertEqual(code, 1)
        self.assertIn("Nowhere", said)
        code, said = self.restore(since="soon", check=False)
        self.assertEqual(code, 2, said)


if __name__ == "__main__":
    unittest.main()
