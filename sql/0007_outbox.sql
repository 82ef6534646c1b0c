-- Where the deliveries of large transactions wait to be made. One point inside of thousands of areas, times a hundred
-- endpoints, is hundreds of thousands of deliveries: too many for the transaction of a point. It stores what happened and
-- who receives it; the deliveries are made of that afterwards, a chunk in a statement (src/store/delivery/outbox.ts). Pods of the
-- version before queue theirs as ever; what waits here waits for the first delivering pod of this version.

-- Events of one transaction, in the order of production, each with the body that all its deliveries have.
create table webhook_outbox_batch (
  id bigint generated always as identity primary key,
  event_ids text[] not null,
  event_types text[] not null,
  bodies text[] not null
);

-- What one account receives of a batch: each of the events at `places` (from 1) goes to each of webhook_ids, event by
-- event. `done` counts those that have become deliveries, of `size` in all; then the row goes. Ids rise in the order in
-- which the events of a device were produced, for each transaction of it sees the one before.
create table webhook_outbox (
  id bigint generated always as identity primary key,
  account_id bigint not null,
  batch_id bigint not null references webhook_outbox_batch,
  places integer[] not null,
  webhook_ids bigint[] not null,
  size integer not null,
  done integer not null default 0
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
create index webhook_outbox_account on webhook_outbox (account_id, id);
create index webhook_outbox_of_batch on webhook_outbox (batch_id);
