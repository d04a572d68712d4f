-- The engine's state, version 6. Times are milliseconds since 1970, UTC; an interval is known by when it begins.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    services TEXT NOT NULL,     -- a JSON list; an edge's only
    hash BLOB NOT NULL,         -- SHA-256 of the secret
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER,
    prefixes TEXT NOT NULL      -- a JSON list; none: any
);

-- What each edge sent last, so that nothing counts twice.
CREATE TABLE edges (
    token INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    seen_ms INTEGER NOT NULL,
    reports INTEGER NOT NULL,
    late INTEGER NOT NULL       -- of the last batch
);

CREATE TABLE aggregates (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hold TEXT NOT NULL,         -- learning, paused or pinned
    version INTEGER NOT NULL,   -- of the configuration in force; grows with each change
    configuration TEXT NOT NULL,-- JSON
    state BLOB,                 -- the learner's, packed
    closed INTEGER,             -- the last interval that was closed
    reward REAL,                -- what it brought
    decisions INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    UNIQUE (service, prefix)
);

-- Reports of intervals that are not closed yet.
CREATE TABLE reports (
    id INTEGER PRIMARY KEY,
    aggregate INTEGER NOT NULL,
    service TEXT NOT NULL,
    interval INTEGER NOT NULL,
    edge INTEGER,             -- its token; none in reports from before version 4
    version INTEGER NOT NULL, -- of the configuration that it was measured under
    bytes BLOB NOT NULL
);
CREATE INDEX reports_due ON reports (service, interval, aggregate);
CREATE UNIQUE INDEX reports_once ON reports (aggregate, interval, edge, version);

-- By interval, so that what is written at a time lies together; `previous` leads from each decision to the aggregate's last.
CREATE TABLE decisions (
    interval INTEGER NOT NULL,
    aggregate INTEGER NOT NULL,
    previous INTEGER,           -- the aggregate's interval that was closed before
    at_ms INTEGER NOT NULL,
    hold TEXT NOT NULL,
    version INTEGER NOT NULL,   -- of the configuration that was in force
    reports INTEGER NOT NULL,
    reward REAL,
    packed BLOB NOT NULL,       -- that configuration, and why: store/pack.rs
    PRIMARY KEY (interval, aggregate)
) WITHOUT ROWID;
CREATE INDEX decisions_at ON decisions (at_ms);

-- What packed documents share.
CREATE TABLE shapes (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);

-- Since version 3: experiments and staged rollouts.
CREATE TABLE studies (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,         -- experiment or rollout
    standing TEXT NOT NULL,     -- running, kept or past: store/study.rs
    revision INTEGER NOT NULL,  -- grows with each change
    document TEXT NOT NULL,     -- JSON
    changed_ms INTEGER NOT NULL,
    UNIQUE (service, name)
);
CREATE UNIQUE INDEX studies_active ON studies (service, standing) WHERE standing <> 'past';

CREATE TABLE members (
    study INTEGER NOT NULL,
    aggregate INTEGER NOT NULL,
    place INTEGER NOT NULL,     -- the arm of an experiment by prefixes, the stage of a rollout
    baseline REAL,              -- its mean reward before
    left_ms INTEGER,            -- when an operator took it out
    PRIMARY KEY (study, aggregate)
) WITHOUT ROWID;

-- What members showed: sums over the intervals of a block.
CREATE TABLE cells (
    study INTEGER NOT NULL,
    aggregate INTEGER NOT NULL,
    block INTEGER NOT NULL,
    arm INTEGER NOT NULL,
    sums TEXT NOT NULL,         -- JSON
    PRIMARY KEY (study, aggregate, block)
) WITHOUT ROWID;

-- Since version 5: the audit. No line is ever changed, none goes before the last one announces it,
-- and each has the hash of the one before: store/chain.rs. In `meta`, `audit` is the number and the
-- hash of the last line.
CREATE TABLE audit (
    id INTEGER PRIMARY KEY,         -- without gaps
    at_ms INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous BLOB NOT NULL,  -- the hash of the line before
    hash BLOB NOT NULL       -- SHA-256 of that and of this line
);
CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'no line of the audit is ever changed'); END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit WHEN NOT EXISTS (
    SELECT 1 FROM (SELECT action, detail FROM audit ORDER BY id DESC LIMIT 1)
    WHERE action = 'audit forgotten' AND CAST(substr(detail, 1, instr(detail, ':') - 1) AS INTEGER) >= OLD.id)
BEGIN SELECT RAISE(ABORT, 'no line of the audit goes before the last one announces it'); END;
INSERT INTO meta VALUES ('audit', '0:0000000000000000000000000000000000000000000000000000000000000000');

-- Since version 6: how long the secrets of tokens are valid. A token without a row never expires, so
-- engines of version 5 may go on meanwhile.
CREATE TABLE token_times (
    token INTEGER PRIMARY KEY,
    expires_ms INTEGER,        -- of the secret in `tokens`; none: never
    used_ms INTEGER,           -- when that one was last used
    former BLOB,              -- SHA-256 of the secret that it replaced
    former_expires_ms INTEGER,
    former_used_ms INTEGER
);
