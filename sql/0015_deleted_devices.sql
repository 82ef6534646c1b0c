-- Events outlive their device, as they outlive their area. The constraint also had no index on the side of the events: to
-- delete one device Postgres would read them all.
alter table fleet_event drop constraint fleet_event_device_id_fkey;
