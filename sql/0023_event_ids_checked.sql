-- Reads every event once, some million a second, while others are written and read.
alter table fleet_event validate constraint first_ids;
