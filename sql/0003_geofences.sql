-- Stays of devices in areas, and the area of geofence events.

-- The open stays of a device, read and written with its point under the lock of its row: [[area id, ms of the first
-- inside point, ms of the confirmed entry or null], …]. One value rather than a table: no second row to lock, none
-- to forget when an area goes.
alter table device_state add column stays text not null default '[]';

alter table fleet_event add column area_id bigint;
alter table fleet_event add column direction text check (direction in ('entry', 'exit'));
create index fleet_event_area on fleet_event (area_id, occurred_at desc, id desc) where area_id is not null;

-- Before a batch is judged: is there anything in the feed, other than positions, that this pod has not applied?
create index change_writes on change (xid) where kind <> 'positions';
