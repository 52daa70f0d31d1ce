-- Clocks of hosts may be wrong; what they told of the future must not outlive the mistake.

-- When a newer minute arrived last: it goes on where a clock that was set back makes minutes older than the newest one.
alter table sensor_contacts add column newest_minute_at timestamptz;

-- Rows of a future that a sensor's clock once showed. A gap ends where it was recorded, and one that had not begun by
-- then never was.
delete from telemetry_gaps where from_minute > recorded_at + interval '5 minutes';
update telemetry_gaps set to_minute = greatest(from_minute, date_trunc('minute', recorded_at))
  where to_minute > recorded_at + interval '5 minutes';
update sensor_contacts set newest_minute = null where newest_minute > svc_now() + interval '5 minutes';
update host_inventories set observed_at = svc_now() where observed_at > svc_now();

-- The newest upload of each sensor that was not taken, and why.
create table sensor_refusals (
  sensor_id bigint primary key references sensors,
  code text not null,
  message text not null,
  first_refused_at timestamptz not null,
  last_refused_at timestamptz not null
) with (fillfactor = 70);

-- What each capture of a sensor does, as it told last; null: an older sensor, which does not tell.
alter table sensor_conditions add column captures jsonb;
