-- What messages that repeated the newest point of a device have said.

-- A tracker without a fix sends its last one again, with an alarm, an ignition or a tag that the first did not have. To
-- tell each of them once, however often and in whatever order it comes, the state remembers more than its last values:
-- [ms of the point, ms of the latest message, ignitions, tags], and null where the point was not repeated so. The time of
-- the point is in it, because a pod of the version before moves a device without touching this column.
alter table device_state add column repeats text;
