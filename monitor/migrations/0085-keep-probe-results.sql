-- What the sensors of a site measure from their hosts. A probe keeps its kind and target for life, so that its history
-- speaks of one thing; one that was removed keeps its history until that expires.
create table probes (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  name text not null,
  kind text not null check (kind in ('icmp', 'tcp', 'http', 'dns')),
  target text not null,
  port integer,
  question text,
  interval_seconds integer not null,
  timeout_ms integer not null,
  is_enabled boolean not null default true,
  created_at timestamptz not null default svc_now(),
  removed_at timestamptz
);
create index probes_site_id on probes (site_id);

-- What one sensor measured of one probe in one minute, or in a part of it: the key makes a result count once.
create table probe_results (
  minute timestamptz not null,
  probe_id bigint not null,
  sensor_id bigint not null,
  first_sent_ms integer not null,
  sent integer not null,
  lost integer not null,
  rtt_min_us integer,
  rtt_median_us integer,
  rtt_max_us integer,
  failure text,
  primary key (probe_id, minute, sensor_id, first_sent_ms)
) partition by range (minute);

-- A probe's minute over all sensors of its site: what charts and alerts read. A minute without a row is unknown.
create table probe_minutes (
  minute timestamptz not null,
  probe_id bigint not null,
  sent integer not null,
  lost integer not null,
  rtt_min_us integer,
  -- Sum and number of the sensors' medians.
  rtt_median_sum_us bigint not null,
  rtt_medians integer not null,
  rtt_max_us integer,
  failure text,
  primary key (probe_id, minute)
) partition by range (minute);

-- A probe's hour: bit m of `reported` says that minute m was measured, of `answered` that anything answered in it.
-- Or-ing them is repeatable, and over the probes of a site it gives the site.
create table probe_hours (
  hour timestamptz not null,
  probe_id bigint not null,
  reported bigint not null,
  answered bigint not null,
  sent bigint not null,
  lost bigint not null,
  rtt_min_us integer,
  rtt_median_sum_us bigint not null,
  rtt_medians integer not null,
  rtt_max_us integer,
  primary key (probe_id, hour)
);
create index probe_hours_hour on probe_hours (hour);
