-- Browsers from which a person has signed in. Failures elsewhere against their e-mail address don't keep them out.
create table known_devices (
  digest bytea primary key,
  email_digest text not null,
  created_at timestamptz not null default svc_now()
);
create index known_devices_created_at on known_devices (created_at);
