-- Quotas of waiting deliveries. One point inside of thousands of areas, times a hundred endpoints, makes a million
-- deliveries of a kilobyte each, which are kept for 90 days. And an endpoint that nobody reads any more fills up for ever.

-- Deliveries that wait for an attempt: of an account together, and of one of its endpoints. A hundred thousand are a day
-- of an event a second. Nobody counts them with every delivery: a pod counts an account again when it has made a thousand
-- deliveries of one of its endpoints.
alter table plan
  add column max_waiting_deliveries bigint not null default 1000000 check (max_waiting_deliveries >= 0),
  add column max_waiting_per_webhook bigint not null default 100000 check (max_waiting_per_webhook >= 0);

-- A paused endpoint gets no new deliveries; those that wait go on. failing_since: the first failed attempt after the last
-- success. A pod of the version before makes deliveries for paused endpoints too, and notes no failures.
alter table webhook
  add column paused_at timestamptz,
  add column paused_reason text check (paused_reason in ('endpoint_quota', 'account_quota', 'failing')),
  add column failing_since timestamptz,
  add column failed_at timestamptz,
  add column failures integer not null default 0;
create index webhook_paused on webhook (id) where paused_at is not null;
create index webhook_failing on webhook (failing_since) where failing_since is not null;

-- Which events an endpoint lacks: those recorded after (from_at, after_id) and until to_at; null while it is paused. From
-- then on their deliveries are made in that order, and the row says how far they are made. An event that has a delivery
-- already is passed over, so a range may begin early.
create table webhook_left_out (
  webhook_id bigint primary key references webhook on delete cascade,
  from_at timestamptz not null,
  after_id bigint not null default 0,
  to_at timestamptz
) with (fillfactor = 50);

-- When the events happened: those of a paused endpoint are left out from there. Null in rows of the version before.
alter table webhook_outbox add column created_at timestamptz;
alter table webhook_outbox alter column created_at set default clock_timestamp();
