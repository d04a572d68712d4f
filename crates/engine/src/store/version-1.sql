-- A store of version 1, as an engine left it.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    services TEXT NOT NULL,     -- a JSON list; an edge's only
    hash BLOB NOT NULL,         -- SHA-256 of the secret
    created_ms INTEGER NOT NULL,
    revoked_ms INTEGER
);

-- What each edge sent last, so that nothing counts twice.
CREATE TABLE edges (
    token INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    digest BLOB NOT NULL,
    seen_ms INTEGER NOT NULL,
    reports INTEGER NOT NULL
);

CREATE TABLE aggregates (
    id INTEGER PRIMARY KEY,
    service TEXT NOT NULL,
    prefix TEXT NOT NULL,
    hold TEXT NOT NULL,         -- learning, paused or pinned
    version INTEGER NOT NULL,   -- of the configuration in force; grows with each change
    configuration TEXT NOT NULL,-- JSON
    state BLOB,                 -- the learner's
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
    bytes BLOB NOT NULL
);
CREATE INDEX reports_due ON reports (service, interval, aggregate);

CREATE TABLE decisions (
    aggregate INTEGER NOT NULL,
    interval INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    hold TEXT NOT NULL,
    version INTEGER NOT NULL,   -- of the configuration that was in force
    configuration TEXT NOT NULL,-- that one, JSON
    reports INTEGER NOT NULL,
    reward REAL,
    detail TEXT NOT NULL,       -- why, JSON
    PRIMARY KEY (aggregate, interval)
) WITHOUT ROWID;
CREATE INDEX decisions_at ON decisions (at_ms);

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);

INSERT INTO meta VALUES ('schema', '1');
INSERT INTO aggregates VALUES (1, 'tv', 'a', 'learning', 3, '{"knobs":{"gamma":950}}', CAST('{"steps":3,"centre":[0.25,0.5]}' AS BLOB), 12, 0.5, 2, 99);
INSERT INTO aggregates VALUES (2, 'tv', 'b', 'learning', 0, '', NULL, NULL, NULL, 0, 99);
INSERT INTO decisions VALUES (1, 10, 50, 'learning', 1, '', 1, NULL, '{}');
INSERT INTO decisions VALUES (1, 12, 60, 'learning', 2, '{"knobs":{"gamma":900}}', 4, 0.5, '{"sentence":"Because of 7."}');
