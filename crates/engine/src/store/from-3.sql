-- From version 3 to 4: which edge sent a report, and under which version, so that none counts twice. Numbers of intervals
-- become times when they begin, by the lengths of services that there are now; see `ms_of` in the code of each store.
ALTER TABLE reports ADD COLUMN edge BIGINT;
ALTER TABLE reports ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE edges ADD COLUMN late BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN prefixes TEXT NOT NULL DEFAULT '[]';
CREATE UNIQUE INDEX reports_once ON reports (aggregate, interval, edge, version);
