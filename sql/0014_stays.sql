-- Who is inside an area: the pods keep the stays of all devices in memory.

-- Of 'positions': the stays that changed with them, as JSON. Null where a pod of the version before wrote it; the other
-- pods then read the stays from the states of the devices.
alter table change add column stays text;
