-- Every filter of a list has an index that finds its page, and finds nothing as quickly as something: a list is never
-- searched row by row. Each index begins with what a filter says and ends with the order of the list; a list that leaves
-- some of it open merges one walk for each value (a world, a type, a direction).
--
-- Building them keeps writers of both tables waiting, for about a second for each million of rows and index. The
-- indexes that go at the end are beginnings of new ones, so a pod of the old version finds what it asks for.

-- geofence_enter, geofence_exit.
create index fleet_event_direction on fleet_event (world_id, direction, occurred_at desc, id desc)
  where direction is not null;
-- A device, with or without a type. Its entries and exits, which are about as many, and its areas are told apart by
-- reading on in this index: one device has few events, and one more index would cost each of them 140 bytes.
create index fleet_event_device_type on fleet_event (device_imei, world_id, type, occurred_at desc, id desc)
  include (direction, area_id);
-- Of an area, with or without a direction.
create index fleet_event_area_direction on fleet_event (area_id, world_id, direction, occurred_at desc, id desc)
  where area_id is not null;
-- Deliveries of an endpoint in one state.
create index webhook_delivery_status on webhook_delivery (webhook_id, status, created_at desc, id desc);

drop index fleet_event_device;
drop index fleet_event_area;
