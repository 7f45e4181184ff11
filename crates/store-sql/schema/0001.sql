-- Version 1. Every table that belongs to an account has the account's id first in its key, so that an account's rows lie together and
-- a database can be split by it. Times are seconds since 1970-01-01 UTC. docs/sql.md explains the columns.

CREATE TABLE account (
  id BIGINT UNSIGNED NOT NULL,
  name VARBINARY(255) NOT NULL,
  created BIGINT NOT NULL,
  incarnation INT UNSIGNED NOT NULL,
  modseq BIGINT UNSIGNED NOT NULL,
  email_id_next BIGINT UNSIGNED NOT NULL,
  mailbox_id_next BIGINT UNSIGNED NOT NULL,
  uidvalidity_last INT UNSIGNED NOT NULL,
  owner BIGINT UNSIGNED NOT NULL DEFAULT 0,
  epoch BIGINT UNSIGNED NOT NULL DEFAULT 0,
  lease_until DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00',
  PRIMARY KEY (id),
  UNIQUE KEY account_name (name)
);

CREATE TABLE tenure (
  account BIGINT UNSIGNED NOT NULL,
  epoch BIGINT UNSIGNED NOT NULL,
  owner BIGINT UNSIGNED NOT NULL,
  modseq_last BIGINT UNSIGNED NULL,
  PRIMARY KEY (account, epoch)
);

CREATE TABLE wanted (
  account BIGINT UNSIGNED NOT NULL,
  node BIGINT UNSIGNED NOT NULL,
  owner BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, node),
  KEY wanted_owner (owner)
);

CREATE TABLE mailbox (
  account BIGINT UNSIGNED NOT NULL,
  id BIGINT UNSIGNED NOT NULL,
  name VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  uidvalidity INT UNSIGNED NOT NULL,
  uidnext BIGINT UNSIGNED NOT NULL,
  highest_modseq BIGINT UNSIGNED NOT NULL,
  created BIGINT NOT NULL,
  special_use SMALLINT UNSIGNED NOT NULL,
  recent_floor INT UNSIGNED NOT NULL,
  vanished_floor BIGINT UNSIGNED NOT NULL,
  deleted_at BIGINT NULL,
  touched BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, id)
);

CREATE TABLE entry (
  account BIGINT UNSIGNED NOT NULL,
  mailbox BIGINT UNSIGNED NOT NULL,
  uid INT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  flags BIGINT UNSIGNED NOT NULL,
  flags_high BIGINT UNSIGNED NOT NULL,
  modseq BIGINT UNSIGNED NOT NULL,
  internal_date BIGINT NOT NULL,
  zone_minutes SMALLINT NOT NULL,
  save_date BIGINT NOT NULL,
  size INT UNSIGNED NOT NULL,
  PRIMARY KEY (account, mailbox, uid),
  KEY entry_modseq (account, modseq),
  KEY entry_email (account, email_id)
);

CREATE TABLE expunged (
  account BIGINT UNSIGNED NOT NULL,
  mailbox BIGINT UNSIGNED NOT NULL,
  uid INT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NULL,
  flags BIGINT UNSIGNED NOT NULL,
  flags_high BIGINT UNSIGNED NOT NULL,
  modseq BIGINT UNSIGNED NOT NULL,
  internal_date BIGINT NOT NULL,
  zone_minutes SMALLINT NOT NULL,
  save_date BIGINT NOT NULL,
  size INT UNSIGNED NOT NULL,
  expunged_modseq BIGINT UNSIGNED NOT NULL,
  expunged_at BIGINT NOT NULL,
  touched BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, mailbox, uid),
  KEY expunged_touched (account, touched),
  KEY expunged_email (account, email_id)
);

CREATE TABLE keyword (
  account BIGINT UNSIGNED NOT NULL,
  mailbox BIGINT UNSIGNED NOT NULL,
  number SMALLINT UNSIGNED NOT NULL,
  name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  touched BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, mailbox, number)
);

CREATE TABLE annotation (
  account BIGINT UNSIGNED NOT NULL,
  mailbox BIGINT UNSIGNED NOT NULL,
  name VARBINARY(1024) NOT NULL,
  value MEDIUMBLOB NULL,
  touched BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, mailbox, name)
);

CREATE TABLE subscription (
  account BIGINT UNSIGNED NOT NULL,
  name VARBINARY(1024) NOT NULL,
  subscribed TINYINT NOT NULL,
  touched BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, name)
);

CREATE TABLE message (
  account BIGINT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  size INT UNSIGNED NOT NULL,
  sent_at BIGINT NULL,
  from_address VARCHAR(320) CHARACTER SET utf8mb4 NULL,
  from_name VARCHAR(320) CHARACTER SET utf8mb4 NULL,
  to_addresses TEXT CHARACTER SET utf8mb4 NULL,
  cc_addresses TEXT CHARACTER SET utf8mb4 NULL,
  subject VARCHAR(1000) CHARACTER SET utf8mb4 NULL,
  message_id VARBINARY(998) NULL,
  in_reply_to VARBINARY(998) NULL,
  content_type VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  attachments INT UNSIGNED NOT NULL,
  PRIMARY KEY (account, email_id)
);

CREATE TABLE attachment (
  account BIGINT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  number INT UNSIGNED NOT NULL,
  content_type VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
  filename VARCHAR(255) CHARACTER SET utf8mb4 NULL,
  size INT UNSIGNED NOT NULL,
  PRIMARY KEY (account, email_id, number)
);

CREATE TABLE header (
  account BIGINT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  octets INT UNSIGNED NOT NULL,
  header_octets INT UNSIGNED NOT NULL,
  crc INT UNSIGNED NOT NULL,
  data_crc INT UNSIGNED NOT NULL,
  data MEDIUMBLOB NOT NULL,
  PRIMARY KEY (account, email_id)
);

CREATE TABLE body (
  account BIGINT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  part INT UNSIGNED NOT NULL,
  data_crc INT UNSIGNED NOT NULL,
  data MEDIUMBLOB NOT NULL,
  PRIMARY KEY (account, email_id, part)
);

CREATE VIEW mail AS
  SELECT account.name AS account, mailbox.name AS mailbox, entry.uid, entry.email_id, entry.size,
    FROM_UNIXTIME(entry.internal_date) AS received, FROM_UNIXTIME(message.sent_at) AS sent,
    (entry.flags & 1) <> 0 AS answered, (entry.flags & 2) <> 0 AS flagged, (entry.flags & 4) <> 0 AS deleted,
    (entry.flags & 8) <> 0 AS seen, (entry.flags & 16) <> 0 AS draft,
    message.from_address, message.from_name, message.to_addresses, message.cc_addresses, message.subject,
    message.message_id, message.content_type, message.attachments
  FROM account
    JOIN mailbox ON mailbox.account = account.id AND mailbox.deleted_at IS NULL
    JOIN entry ON entry.account = mailbox.account AND entry.mailbox = mailbox.id
    JOIN message ON message.account = entry.account AND message.email_id = entry.email_id;
