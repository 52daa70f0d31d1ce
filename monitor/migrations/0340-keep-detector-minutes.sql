-- What the detector of a capture said of a minute; parts from before and after a restart add. A minute without a row is
-- unknown: it never says that there was no attack.
create table detector_minutes (
  minute timestamptz not null,
  site_id bigint not null,
  sensor_id bigint not null,
  capture text not null,
  -- Seconds that were observed as a whole and judged in time.
  ticks smallint not null,
  -- What was protected throughout the minute; null: no epoch lasted that long.
  epoch_id uuid,
  overflowed bigint not null,
  incidents_lost bigint not null,
  merged_frames bigint not null,
  -- Dropped by the kernel or not parsed.
  lost_packets bigint not null,
  primary key (sensor_id, capture, minute)
) partition by range (minute);

-- Protected addresses with traffic, for each direction. The arrays are in the order of the metrics of the contract.
create table detector_addresses (
  minute timestamptz not null,
  site_id bigint not null,
  sensor_id bigint not null,
  capture text not null,
  address inet not null,
  is_outbound boolean not null,
  one_second bigint[] not null,
  ten_seconds bigint[] not null,
  attack_bytes bigint not null,
  attack_packets bigint not null,
  primary key (address, minute, sensor_id, capture, is_outbound)
) partition by range (minute);

-- What a sensor protected, since when. Kept as long as its newest minute.
create table detector_epochs (
  sensor_id bigint not null,
  id uuid not null,
  since timestamptz not null,
  prefixes inet[] not null,
  last_used_at timestamptz not null default svc_now(),
  primary key (sensor_id, id)
);
create index detector_epochs_last_used_at on detector_epochs (last_used_at);
