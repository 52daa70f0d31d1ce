-- Makes the partition of a fact table that begins at `starts_at` and lasts `span` (a day or an hour, both in UTC).
-- Attached instead of created in place, because that takes no lock that readers or writers would wait for; the
-- advisory lock lets two workers ask at once. Retention drops whole partitions.
create function ensure_fact_partition(parent text, starts_at timestamptz, span interval) returns void
language plpgsql as $$
declare
  partition_name text := parent || '_p' || to_char(starts_at at time zone 'UTC',
    case when span < interval '1 day' then 'YYYYMMDDHH24' else 'YYYYMMDD' end);
begin
  if to_regclass(partition_name) is not null then return; end if;
  perform pg_advisory_xact_lock(7318101);
  if to_regclass(partition_name) is not null then return; end if;
  execute format('create table %I (like %I including defaults including constraints)', partition_name, parent);
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', parent, partition_name,
    starts_at, starts_at + span);
end
$$;

-- Interfaces that sensors listen on. Facts carry the short id.
create table captures (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  name text not null,
  role text not null check (role in ('uplink', 'bridge')),
  unique (sensor_id, name)
);
create index captures_site_id on captures (site_id);

-- What one capture saw in one minute, all in all. Different uploads of one window add (NET-2.2.9).
create table capture_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  capture_id bigint not null,
  observed_ms integer not null,
  packets bigint not null,
  ip_packets bigint not null,
  ip_bytes bigint not null,
  non_ip_packets bigint not null,
  parser_dropped bigint not null,
  kernel_dropped bigint not null,
  detail_truncated bigint not null,
  primary key (site_id, minute, capture_id)
) partition by range (minute);
create index capture_minutes_capture_id on capture_minutes (capture_id, minute);

-- Exact counters of a local address at one capture in one minute. Captures overlap, so rows of one address and minute
-- are never summed: readers take the strongest capture (NET-2.4.2).
create table host_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  address inet not null,
  capture_id bigint not null,
  rx_bytes bigint not null,
  tx_bytes bigint not null,
  packets bigint not null,
  device_key text not null,
  primary key (site_id, address, minute, capture_id)
) partition by range (minute);
create index host_minutes_site_minute on host_minutes (site_id, minute);

-- The one rule of NET-2.4.2: of an address and minute the strongest capture counts, in both directions. Of equally strong
-- ones the longest listener, then the uplink. Coverage (NET-2.4.3) is null where the parser lost packets or where
-- another capture saw more in one direction; packets that the kernel dropped lower it. Conditions on site, address and
-- minute reach the table's key through the view.
create view strongest_host_minutes as
select distinct on (h.site_id, h.address, h.minute)
  h.site_id, h.address, h.minute, h.capture_id, h.rx_bytes, h.tx_bytes, h.packets, h.device_key, m.observed_ms,
  case
    when m.parser_dropped > 0 then null
    when h.rx_bytes < max(h.rx_bytes) over captures_of_minute or h.tx_bytes < max(h.tx_bytes) over captures_of_minute then null
    else m.observed_ms / 60000.0::float8 * coalesce(m.packets::float8 / nullif(m.packets + m.kernel_dropped, 0), 1)
  end as coverage
from host_minutes h
join capture_minutes m on m.site_id = h.site_id and m.minute = h.minute and m.capture_id = h.capture_id
join captures c on c.id = h.capture_id
window captures_of_minute as (partition by h.site_id, h.address, h.minute)
order by h.site_id, h.address, h.minute,
  h.rx_bytes + h.tx_bytes desc, m.observed_ms desc, (c.role = 'uplink') desc, h.capture_id;

-- Minutes that were not, or not wholly, collected; both ends inclusive. Without a capture: all of the sensor's.
create table telemetry_gaps (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  capture text not null,
  from_minute timestamptz not null,
  to_minute timestamptz not null,
  reason text not null,
  recorded_at timestamptz not null default svc_now(),
  check (to_minute >= from_minute)
);
create index telemetry_gaps_site_id on telemetry_gaps (site_id, to_minute);
create index telemetry_gaps_sensor_id on telemetry_gaps (sensor_id);

-- A site's minute after selection: the sum over its addresses of each one's strongest capture. Made from
-- host_minutes; a mark says that a site's minute has changed since.
create table site_minutes (
  site_id bigint not null references sites,
  minute timestamptz not null,
  rx_bytes bigint not null,
  tx_bytes bigint not null,
  packets bigint not null,
  addresses integer not null,
  primary key (site_id, minute)
);
create index site_minutes_minute on site_minutes (minute);
create table site_minute_marks (
  id bigint generated always as identity primary key,
  site_id bigint not null,
  minute timestamptz not null
);
