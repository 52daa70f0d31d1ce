-- Incidents of one site that began together and share classes.
create table site_correlations (
  id uuid primary key,
  site_id bigint not null references sites,
  classes text[] not null,
  -- Starts of the first and the last incident.
  first_started_at timestamptz not null,
  last_started_at timestamptz not null,
  -- Of its incidents; it is kept as long as they are.
  last_observed_at timestamptz not null
);
create index site_correlations_site_id on site_correlations (site_id, last_started_at);
create index site_correlations_last_observed_at on site_correlations (last_observed_at);

-- One attack as operators and operations see it, made of what sensors observe of it.
create table incidents (
  id uuid primary key,
  site_id bigint not null references sites,
  target_kind text not null check (target_kind in ('host', 'prefix', 'capture')),
  target text not null,
  -- Tells targets apart: an address with its segment where it is not unique, a capture with its sensor.
  target_key text not null,
  direction text not null check (direction in ('inbound', 'outbound')),
  severity text not null check (severity in ('attack', 'info')),
  class text not null,
  is_drill boolean not null,
  -- Grows with every change that can be seen.
  revision integer not null,
  state text not null check (state in ('active', 'stale', 'recovered')),
  -- Times of the sensors.
  started_at timestamptz not null,
  detected_at timestamptz not null,
  last_observed_at timestamptz not null,
  recovered_at timestamptz,
  -- Vectors, rates, totals, coverage, threshold: what is shown and never searched.
  measured jsonb not null,
  correlation_id uuid references site_correlations on delete set null,
  -- Observations that came later showed that it is a part of another one; it goes on and ends with that one.
  merged_into uuid references incidents on delete set null,
  -- None of its observations counts any more: they were of other nodes' servers.
  is_withdrawn boolean not null default false,
  -- What operations has, and what it made of it.
  delivered_revision integer not null default 0,
  delivered_at timestamptz,
  delivery_outcome text,
  created_at timestamptz not null default svc_now(),
  changed_at timestamptz not null default svc_now(),
  check ((state = 'recovered') = (recovered_at is not null))
);
create index incidents_site_id on incidents (site_id, started_at);
create index incidents_target on incidents (site_id, target, started_at);
create index incidents_open on incidents (last_observed_at) where state <> 'recovered';
create index incidents_pending on incidents (id) where delivered_revision < revision;
create index incidents_last_observed_at on incidents (last_observed_at);
create index incidents_correlation_id on incidents (correlation_id);
create index incidents_merged_into on incidents (merged_into);

-- The last that each sensor said of each of its incidents. What it may not say of another node's server is kept apart and
-- belongs to no incident.
create table incident_observations (
  id bigint generated always as identity primary key,
  sensor_id bigint not null references sensors,
  -- The sensor's own UUID.
  observation_id uuid not null,
  is_foreign boolean not null,
  site_id bigint not null references sites,
  incident_id uuid references incidents on delete cascade,
  revision integer not null,
  -- What it is counted for: of an outbound attack whose sender is not certain the capture.
  target_kind text not null,
  target text not null,
  target_key text not null,
  direction text not null,
  severity text not null,
  is_drill boolean not null,
  started_at timestamptz not null,
  -- Of the last observation or, once it is over, of the recovery.
  ends_at timestamptz not null,
  -- What the sensor said, without seconds.
  said jsonb not null,
  first_received_at timestamptz not null default svc_now(),
  received_at timestamptz not null default svc_now(),
  unique (sensor_id, observation_id, is_foreign)
);
create index incident_observations_target on incident_observations (site_id, target_key, ends_at);
create index incident_observations_address on incident_observations ((said #>> '{target,value}'), ends_at);
create index incident_observations_incident_id on incident_observations (incident_id);
create index incident_observations_ends_at on incident_observations (ends_at) where incident_id is null;

-- Seconds of an observation, a row for each revision. Later parts of a long attack have the largest rates of ten seconds.
create table incident_seconds (
  observation bigint not null references incident_observations on delete cascade,
  revision integer not null,
  -- Unix milliseconds.
  at bigint[] not null,
  bps bigint[] not null,
  pps bigint[] not null,
  primary key (observation, revision)
);

-- Remote prefixes of an observation: sources of an inbound attack, destinations of an outbound one.
create table incident_remotes (
  observation bigint not null references incident_observations on delete cascade,
  prefix text not null,
  -- The largest share of the packets that it had.
  share float8 not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (observation, prefix)
);

-- What happened to an incident, and when by the sensors' or, where only the monitor can know, by our clock.
create table incident_transitions (
  id bigint generated always as identity primary key,
  incident_id uuid not null references incidents on delete cascade,
  kind text not null,
  at timestamptz not null,
  details jsonb not null default '{}'
);
create index incident_transitions_incident_id on incident_transitions (incident_id, id);

-- The feed is told at commit, also in another process.
create function notify_incident_change() returns trigger language plpgsql as $$
begin
  perform pg_notify('svc_monitor', 'incidents');
  return null;
end $$;
create trigger incidents_added after insert on incidents for each statement execute function notify_incident_change();
create trigger incidents_changed after update of revision on incidents for each row
  when (old.revision <> new.revision) execute function notify_incident_change();

-- Where servers with this MAC and this address were, from the view of one sensor.
create function interface_placements(of_sensor bigint, of_address inet, of_mac text)
returns table (began_at timestamptz, ended_at timestamptz, speaks boolean)
language sql stable as $$
  select greatest(a.began_at, m.began_at), least(coalesce(a.ended_at, 'infinity'), coalesce(m.ended_at, 'infinity')),
    coalesce(c.site_id = s.site_id and (m.node is null or m.node = s.node and coalesce(m.cluster_id = s.cluster_id, true)), false)
  from vm_placements m
  join vm_placements a on a.cluster_id = m.cluster_id and a.vm_id = m.vm_id and a.node is not distinct from m.node
    and a.address = of_address
  join site_clusters c on c.cluster_id = m.cluster_id
  left join sensors s on s.id = of_sensor
  where m.mac = of_mac and m.address is null and (a.is_unique or c.site_id = s.site_id)
$$;
