-- Webhook endpoints, each with its lane, and their deliveries: the outbox of the points' transactions.

-- An endpoint is its own lane: whoever has leased it may have one request in flight to it. The fencing token rises
-- with every claim, so a pod that slept past its lease can write nothing any more. All times are this database's.
create table webhook (
  id bigint generated always as identity primary key,
  account_id bigint not null references account,
  url text not null,
  description text,
  events text[] not null check (cardinality(events) > 0),
  retry_policy text not null check (retry_policy in ('none', 'fixed', 'exponential')),
  max_retries integer not null check (max_retries between 0 and 10),
  active boolean not null,
  signature_version text not null default 'v1',
  -- AES-256-GCM under SECRETS_KEY.
  secret bytea not null,
  previous_secret bytea,
  previous_secret_until timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  fencing_token bigint not null default 0,
  leased_until timestamptz
);
create index webhook_account on webhook (account_id, id);
create index webhook_lease on webhook (leased_until) where leased_until is not null;

-- One event to one endpoint. body holds the bytes as they are sent and signed, at every attempt. attempt_token is the
-- lease under which an attempt is in flight. Partitions hold a week each; retention drops whole ones.
create table webhook_delivery (
  id text not null,
  webhook_id bigint not null,
  account_id bigint not null,
  event_id text not null,
  event_type text not null,
  body text not null,
  status text not null default 'pending'
    check (status in ('pending', 'delivered', 'failed', 'exhausted', 'requeued')),
  attempts integer not null default 0,
  -- Attempts of the present budget; a replay begins a new one.
  spent integer not null default 0,
  next_attempt_at timestamptz default clock_timestamp(),
  attempt_token bigint,
  last_status_code integer,
  last_error text,
  last_duration_ms integer,
  created_at timestamptz not null default clock_timestamp(),
  delivered_at timestamptz,
  primary key (id, created_at)
) partition by range (created_at);
create unique index webhook_delivery_once on webhook_delivery (webhook_id, event_id, created_at);
create index webhook_delivery_due on webhook_delivery (webhook_id, next_attempt_at) where next_attempt_at is not null;
create index webhook_delivery_in_flight on webhook_delivery (webhook_id) where attempt_token is not null;
create index webhook_delivery_list on webhook_delivery (webhook_id, created_at desc, id desc);
create index webhook_delivery_dead on webhook_delivery (account_id, created_at desc, id desc) where status = 'exhausted';
create index webhook_delivery_summary on webhook_delivery (account_id, created_at)
  include (status, attempts, last_duration_ms);
