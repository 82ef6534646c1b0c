-- Endpoints that were deleted while they had more deliveries than one transaction may remove: those of one that has been
-- sent to for months are millions, and no statement may take that long. The endpoint is gone at once, so nothing is
-- queued to it or sent any more; its deliveries are removed in pieces afterwards, and its row here with the last.
-- A pod of the version before removes everything in the old way, and passes over rows whose endpoint is gone.
create table webhook_removed (
  webhook_id bigint primary key,
  account_id bigint not null,
  removed_at timestamptz not null default clock_timestamp()
);
