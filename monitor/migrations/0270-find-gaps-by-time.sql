-- Minutes that were observed whole are removed from gaps around them: a sensor's gaps are looked up by time.
create index telemetry_gaps_sensor_id_to_minute on telemetry_gaps (sensor_id, to_minute);
drop index telemetry_gaps_sensor_id;
