-- Version 3. Bodies may lie in an object store. An object is never written again under a name that it had: whoever stores the same octets
-- after it was swept makes another generation.

CREATE TABLE object (
  account BIGINT UNSIGNED NOT NULL,
  digest BINARY(32) NOT NULL,
  generation BIGINT UNSIGNED NOT NULL,
  octets INT UNSIGNED NOT NULL,
  referred BIGINT UNSIGNED NOT NULL,
  unused_since BIGINT NULL,
  PRIMARY KEY (account, digest, generation),
  KEY object_unused (account, unused_since)
);

CREATE TABLE body_object (
  account BIGINT UNSIGNED NOT NULL,
  email_id BIGINT UNSIGNED NOT NULL,
  digest BINARY(32) NOT NULL,
  generation BIGINT UNSIGNED NOT NULL,
  octets INT UNSIGNED NOT NULL,
  checksums VARBINARY(16384) NOT NULL,
  PRIMARY KEY (account, email_id),
  KEY body_object_name (account, digest, generation)
);

CREATE TABLE doomed_object (
  account BIGINT UNSIGNED NOT NULL,
  digest BINARY(32) NOT NULL,
  generation BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (account, digest, generation)
);
