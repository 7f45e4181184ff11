-- Version 2. Accounts may be in several databases ("cells"); the first one says which is where.

CREATE TABLE directory (
  name VARBINARY(255) NOT NULL,
  cell VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  moving_to VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  PRIMARY KEY (name)
);
