-- Capture files of attacks. The file is an object in a folder or an S3 bucket; a row is written before its object, says
-- `stored_at` once the object is there, and is deleted after it. So no object is without a row.
create table evidence_files (
  id uuid primary key default gen_random_uuid(),
  site_id bigint not null references sites,
  sensor_id bigint not null references sensors,
  -- The sensor's own UUID of the incident.
  observation_id uuid not null,
  capture text not null,
  object_key text not null,
  -- SHA-256 of the object.
  digest bytea not null,
  object_bytes integer not null,
  file_bytes integer not null,
  packets integer not null,
  first_packet_at timestamptz not null,
  last_packet_at timestamptz not null,
  -- When the sensor observed the incident last.
  incident_ends_at timestamptz not null,
  begun_at timestamptz not null default svc_now(),
  stored_at timestamptz,
  unique (sensor_id, observation_id, digest)
);
-- The first file that is stored stays.
create unique index evidence_files_stored on evidence_files (sensor_id, observation_id) where stored_at is not null;
create index evidence_files_site_id on evidence_files (site_id);
create index evidence_files_age on evidence_files (coalesce(stored_at, begun_at));
create index evidence_files_incident_ends_at on evidence_files (incident_ends_at);

-- Finds which sensor an incident is of.
create index incident_observations_observation_id on incident_observations (observation_id);
