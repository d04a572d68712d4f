-- The engine's state in PostgreSQL, version 7. Times are milliseconds since 1970, UTC; an interval is known by when it
-- begins. Names are compared byte by byte, as SQLite does.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE tokens (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    services TEXT NOT NULL,     -- a JSON list; an edge's only
    hash BYTEA NOT NULL,        -- SHA-256 of the secret
    created_ms BIGINT NOT NULL,
    revoked_ms BIGINT,
    prefixes TEXT NOT NULL      -- a JSON list; none: any
);

-- What each edge sent last, so that nothing counts twice.
CREATE TABLE edges (
    token BIGINT PRIMARY KEY,
    sequence BIGINT NOT NULL,   -- -1: nothing yet
    digest BYTEA NOT NULL,
    seen_ms BIGINT NOT NULL,
    reports BIGINT NOT NULL,
    late BIGINT NOT NULL        -- of the last batch
) WITH (fillfactor = 70);

CREATE TABLE aggregates (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service TEXT COLLATE "C" NOT NULL,
    prefix TEXT COLLATE "C" NOT NULL,
    part INT NOT NULL,          -- what is locked at a time: close.rs
    hold TEXT NOT NULL,         -- learning, paused or pinned
    version BIGINT NOT NULL,    -- of the configuration in force; grows with each change
    configuration TEXT NOT NULL,-- JSON
    state BYTEA,                -- the learner's, packed
    closed BIGINT,              -- the last interval that was closed
    reward DOUBLE PRECISION,    -- what it brought
    decisions BIGINT NOT NULL,
    changed_ms BIGINT NOT NULL,
    UNIQUE (service, prefix)
) WITH (fillfactor = 70);

-- Reports of intervals that are not closed yet.
CREATE TABLE reports (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    aggregate BIGINT NOT NULL,
    service TEXT COLLATE "C" NOT NULL,
    part INT NOT NULL,
    interval BIGINT NOT NULL,
    edge BIGINT,              -- its token; none in reports from before version 4
    version BIGINT NOT NULL,  -- of the configuration that it was measured under
    bytes BYTEA NOT NULL
);
CREATE INDEX reports_due ON reports (service, interval, part, aggregate);
CREATE UNIQUE INDEX reports_once ON reports (aggregate, interval, edge, version);

-- What packed documents share; by SHA-256, since an index has no room for long texts.
CREATE TABLE shapes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest BYTEA NOT NULL UNIQUE,
    text TEXT NOT NULL
);

-- Since version 3: experiments and staged rollouts.
CREATE TABLE studies (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    service TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,         -- experiment or rollout
    standing TEXT COLLATE "C" NOT NULL, -- running, kept or past: store/study.rs
    revision BIGINT NOT NULL,   -- grows with each change
    document TEXT NOT NULL,     -- JSON
    changed_ms BIGINT NOT NULL,
    UNIQUE (service, name)
);
CREATE UNIQUE INDEX studies_active ON studies (service, standing) WHERE standing <> 'past';

CREATE TABLE members (
    study BIGINT NOT NULL,
    aggregate BIGINT NOT NULL,
    place BIGINT NOT NULL,      -- the arm of an experiment by prefixes, the stage of a rollout
    baseline DOUBLE PRECISION,  -- its mean reward before
    left_ms BIGINT,             -- when an operator took it out
    PRIMARY KEY (study, aggregate)
);

-- What members showed: sums over the intervals of a block.
CREATE TABLE cells (
    study BIGINT NOT NULL,
    aggregate BIGINT NOT NULL,
    block BIGINT NOT NULL,
    arm INT NOT NULL,
    sums TEXT NOT NULL,         -- JSON
    PRIMARY KEY (study, aggregate, block)
) WITH (fillfactor = 70);

-- Since version 5: the audit. No line is ever changed, none goes before the last one announces it,
-- and each has the hash of the one before: store/chain.rs. In `meta`, `audit` is the number and the
-- hash of the last line.
CREATE TABLE audit (
    id BIGINT PRIMARY KEY,          -- without gaps
    at_ms BIGINT NOT NULL,
    who TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    previous BYTEA NOT NULL,  -- the hash of the line before
    hash BYTEA NOT NULL       -- SHA-256 of that and of this line
);
CREATE FUNCTION audit_unchanged() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'no line of the audit is ever changed'; END $$;
CREATE TRIGGER audit_unchanged BEFORE UPDATE OR TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION audit_unchanged();
CREATE FUNCTION audit_kept() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE last RECORD;
BEGIN
    SELECT action, detail INTO last FROM audit ORDER BY id DESC LIMIT 1;
    IF last.action <> 'audit forgotten' OR split_part(last.detail, ':', 1)::bigint < OLD.id THEN
        RAISE EXCEPTION 'no line of the audit goes before the last one announces it';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_kept();
INSERT INTO meta VALUES ('audit', '0:0000000000000000000000000000000000000000000000000000000000000000');

-- Since version 6: how long the secrets of tokens are valid. A token without a row never expires, so
-- engines of version 5 may go on meanwhile.
CREATE TABLE token_times (
    token BIGINT PRIMARY KEY,
    expires_ms BIGINT,        -- of the secret in `tokens`; none: never
    used_ms BIGINT,           -- when that one was last used
    former BYTEA,              -- SHA-256 of the secret that it replaced
    former_expires_ms BIGINT,
    former_used_ms BIGINT
);

-- Since version 7: decisions in partitions by day, which go as a whole: postgres/partitions.rs.
-- `previous` leads from each decision to the aggregate's last.
CREATE TABLE decisions (
    interval BIGINT NOT NULL,
    aggregate BIGINT NOT NULL,
    previous BIGINT,            -- the aggregate's interval that was closed before
    at_ms BIGINT NOT NULL,
    hold TEXT NOT NULL,
    version BIGINT NOT NULL,    -- of the configuration that was in force
    reports BIGINT NOT NULL,
    reward DOUBLE PRECISION,
    packed BYTEA NOT NULL,      -- that configuration, and why: store/pack.rs
    PRIMARY KEY (interval, aggregate)
) PARTITION BY RANGE (interval);
CREATE INDEX decisions_at ON decisions (at_ms);
-- An engine of an earlier version deletes rows by where they are, which in partitions is another row.
-- One that had no connection when the tables were brought up to date comes back to this.
CREATE OR REPLACE FUNCTION decisions_go_by_days() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'decisions go by days since version 7 of the tables: end this engine, which is older';
    END $$;
CREATE TRIGGER decisions_go_by_days BEFORE DELETE ON decisions
    FOR EACH STATEMENT EXECUTE FUNCTION decisions_go_by_days();
