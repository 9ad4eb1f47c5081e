"""The tables of the index, and how to upgrade an index of an older format.

The number of a format is SQLite's `user_version`; 0 is an index without tables. Each step of `_UPGRADES` leads from one
number to the next. A released step is never changed.
"""

import sqlite3

_FORMAT_1 = """
CREATE TABLE runs (
  run_id        TEXT PRIMARY KEY,
  spec          TEXT NOT NULL,     -- every field, as JSON
  status        TEXT NOT NULL,     -- finished or diverged
  phase         TEXT,              -- null if diverged
  diverged_step INTEGER,
  engine        TEXT NOT NULL,
  seconds       REAL NOT NULL,
  has_weights   INTEGER NOT NULL,
  finished_at   TEXT NOT NULL,     -- UTC
  final         TEXT,              -- the last row of the curve, as JSON
  file          TEXT NOT NULL      -- the arrays, below runs/
) STRICT;
"""

# The accuracies are those of the last row of the curve. The index `runs_by_outcome` has all that a phase diagram shows,
# so SQLite need not read the long rows of the table.
_FORMAT_2 = """
ALTER TABLE runs ADD COLUMN train_accuracy REAL;
ALTER TABLE runs ADD COLUMN test_accuracy REAL;
UPDATE runs SET train_accuracy = json_extract(final, '$.train_accuracy'),
                test_accuracy = json_extract(final, '$.test_accuracy');
CREATE INDEX runs_by_time ON runs (finished_at, run_id);
CREATE INDEX runs_by_outcome ON runs (run_id, phase, status, train_accuracy, test_accuracy);
CREATE TABLE sweeps (
  name       TEXT PRIMARY KEY,
  definition TEXT NOT NULL,        -- base and axes, as JSON
  refined    INTEGER NOT NULL,     -- whether cells between equal neighbours may be left out
  started_at TEXT NOT NULL         -- UTC
) STRICT;
CREATE TABLE cells (
  sweep  TEXT NOT NULL,
  place  INTEGER NOT NULL,         -- in the product of the axes
  run_id TEXT NOT NULL,
  PRIMARY KEY (sweep, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE leases (
  run_id  TEXT PRIMARY KEY,
  owner   TEXT NOT NULL,           -- host, process and when it started
  expires REAL NOT NULL            -- seconds since 1970
) STRICT, WITHOUT ROWID;
CREATE TABLE checkpoints (
  run_id TEXT PRIMARY KEY,
  step   INTEGER NOT NULL,
  file   TEXT NOT NULL             -- below checkpoints/
) STRICT, WITHOUT ROWID;
CREATE TABLE failures (
  run_id    TEXT PRIMARY KEY,
  spec      TEXT NOT NULL,
  error     TEXT NOT NULL,         -- one line
  traceback TEXT NOT NULL,
  failed_at TEXT NOT NULL          -- UTC
) STRICT, WITHOUT ROWID;
"""

# Every row that grokscope reads numbers from has a seal over its columns. Text is sealed as bytes, so that text that
# is none can be looked at too. The spec needs no seal: the run's id is its hash. The checksum is that of the run's
# file, and null if an older release wrote it.
OUTCOME_SEAL = (
    "seal(CAST(runs.run_id AS BLOB), CAST(runs.phase AS BLOB), CAST(runs.status AS BLOB), "
    "runs.train_accuracy, runs.test_accuracy)"
)
ROW_SEAL = (
    "seal(runs.outcome_seal, runs.diverged_step, CAST(runs.engine AS BLOB), runs.seconds, runs.has_weights, "
    "CAST(runs.finished_at AS BLOB), CAST(runs.final AS BLOB), CAST(runs.file AS BLOB), CAST(runs.checksum AS BLOB))"
)
FAILURE_SEAL = (
    "seal(CAST(failures.run_id AS BLOB), CAST(failures.error AS BLOB), CAST(failures.traceback AS BLOB), "
    "CAST(failures.failed_at AS BLOB))"
)
SWEEP_SEAL = (
    "seal(CAST(sweeps.name AS BLOB), CAST(sweeps.definition AS BLOB), sweeps.refined, "
    "CAST(sweeps.started_at AS BLOB), (SELECT CAST(group_concat(run_id) AS BLOB) FROM "
    "(SELECT run_id FROM cells WHERE sweep = sweeps.name ORDER BY place)))"
)
_FORMAT_3 = f"""
ALTER TABLE runs ADD COLUMN checksum TEXT;
ALTER TABLE runs ADD COLUMN outcome_seal TEXT;
ALTER TABLE runs ADD COLUMN row_seal TEXT;
ALTER TABLE sweeps ADD COLUMN seal TEXT;
ALTER TABLE failures ADD COLUMN seal TEXT;
UPDATE runs SET outcome_seal = {OUTCOME_SEAL};
UPDATE runs SET row_seal = {ROW_SEAL};
UPDATE sweeps SET seal = {SWEEP_SEAL};
UPDATE failures SET seal = {FAILURE_SEAL};
DROP INDEX runs_by_outcome;
CREATE INDEX runs_by_outcome ON runs (run_id, phase, status, train_accuracy, test_accuracy, outcome_seal);
"""

# What people say about a run. It is not part of the run: a run that is done again keeps it.
REMARKS_SEAL = (
    "seal(CAST(remarks.run_id AS BLOB), CAST(remarks.name AS BLOB), CAST(remarks.tags AS BLOB), "
    "CAST(remarks.note AS BLOB))"
)
# A seal can be forged, so what would be read as JSON or made a file's name is looked at too.
SOUND_REMARKS = (
    f"(remarks.seal IS {REMARKS_SEAL} AND iif(json_valid(remarks.tags), json_type(remarks.tags), '') = 'array' "
    f"AND remarks.run_id GLOB '{'[0-9a-f]' * 16}')"
)
_FORMAT_4 = """
CREATE TABLE remarks (
  run_id TEXT PRIMARY KEY,
  name   TEXT,                     -- null if it has none
  tags   TEXT NOT NULL,            -- a JSON array, sorted
  note   TEXT NOT NULL,            -- may be empty
  seal   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX remarks_by_name ON remarks (name);
"""

_UPGRADES = (_FORMAT_1, _FORMAT_2, _FORMAT_3, _FORMAT_4)
SCHEMA_VERSION = len(_UPGRADES)


def schema_version(index: sqlite3.Connection) -> int:
    """The format of an open index."""
    (version,) = index.execute("PRAGMA user_version").fetchone()
    return int(version)


def upgrade(index: sqlite3.Connection) -> None:
    """Upgrade an index to this format, completely or not at all. An index of a newer format is left unchanged."""
    index.execute("BEGIN IMMEDIATE")
    try:
        for step in _UPGRADES[max(schema_version(index), 0) :]:
            for statement in filter(str.strip, step.split(";\n")):
                index.execute(statement)
        if schema_version(index) <= SCHEMA_VERSION:  # even if nothing is new, so that a read-only index fails here
            index.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        index.execute("COMMIT")
    except BaseException:
        if index.in_transaction:  # on a full disk SQLite has already rolled back
            index.execute("ROLLBACK")
        raise
