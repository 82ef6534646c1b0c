-- How the last ten attempts of a delivery ended, the oldest first, each an object of JSON: attempt, at, status_code, error,
-- duration_ms, answer. It is written with the outcome. Attempts that pods of the version before made are missing.
alter table webhook_delivery add column attempt_log json[] not null default '{}';
