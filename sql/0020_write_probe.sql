-- Whether writes are taken is found out by a write, which waits for what a point waits for (the disk, a synchronous
-- replica). Each pod has a row of its own: one that waits for a replica holds it, and the next try of the same pod waits
-- for that one instead of leaving another session behind.
create table write_probe (
  pod_id uuid primary key,
  at timestamptz not null default clock_timestamp()
);
