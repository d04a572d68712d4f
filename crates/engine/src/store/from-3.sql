-- From version 3 to 4: which edge sent a report, and under which version, so that none counts twice.
ALTER TABLE reports ADD COLUMN edge BIGINT;
ALTER TABLE reports ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
ALTER TABLE edges ADD COLUMN late BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX reports_once ON reports (aggregate, interval, edge, version);
