//! Accounts, mailboxes, views and changes: the one door to the mail.
