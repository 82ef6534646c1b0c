-- The rate of a device: without it one sender of a device could fill the history for everybody.

-- Until when the points that the device has stored would have taken at the highest rate, by the clock of Postgres; past,
-- or null: it owes nothing. One time is the whole state of a bucket that drains by the clock: it survives a restart, and
-- the lock of the row makes it hold over all pods. A pod of the version before leaves it as it is.
alter table device_state add column rate_until timestamptz;
