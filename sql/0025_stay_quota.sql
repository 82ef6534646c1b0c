-- A quota of stays: without it two imports around a fleet would fill the memory of every pod, which holds who is where.

-- Stays of devices in the areas that an account made, shared ones too, that may be open at a time.
alter table plan add column max_stays bigint not null default 2000000 check (max_stays >= 0);

-- Between which points of a device, by their times, stays did not begin for want of room: what an explanation says then.
-- Only the latest time is kept, so nothing grows.
alter table device_state add column stays_refused_from timestamptz, add column stays_refused_until timestamptz;
