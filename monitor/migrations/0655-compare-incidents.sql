-- The rule by which the sensor counted what may be an attack (contracts/sensor-api/detection.ts): 1 by flows, 2 by pairs of addresses.
alter table detector_epochs add column counting_rule integer not null default 1;

-- Incidents that the present thresholds find and those that were asked about do not, and the other way round. Null: not compared.
alter table protection_replay_addresses add column lost integer, add column added integer;
