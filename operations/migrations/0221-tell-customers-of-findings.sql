-- Alerts about potential vulnerabilities are off until a customer switches them on; a time says since when. Mails are about
-- findings of this severity on.
alter table protect_settings
  add column finding_mail text not null default 'off' check (finding_mail in ('off', 'medium', 'high', 'critical')),
  add column finding_mail_since timestamptz,
  add column finding_webhook boolean not null default false,
  add column finding_webhook_since timestamptz;

-- The rank before the last rise; -1: it was not known.
alter table known_findings add column previous_rank integer not null default -1;

-- The customer's page tells the last attempt of a delivery from the last receipt (NET-2.9).
alter table finding_projections
  add column attempted_at timestamptz not null default svc_now(),
  -- The last delivery of another source that was refused.
  add column refused_at timestamptz;

-- What one check found that its customer is mailed about.
create table finding_notices (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  server_id bigint not null references servers (id),
  address text not null,
  checked_at timestamptz not null,
  -- The most severe first: [{cveId, severity, score, transport, port, product, version, isKnownExploited}], the first 50 of them.
  listed jsonb not null,
  total integer not null,
  -- The highest of all.
  severity text not null,
  created_at timestamptz not null default svc_now()
);
create index finding_notices_tenant_id on finding_notices (tenant_id);
create index finding_notices_server_id on finding_notices (server_id);
create index finding_notices_created_at on finding_notices (created_at);

-- Mails about potential vulnerabilities, one for each notice and reader, written in the transaction that stores the check and
-- sent at least once. Each is claimed by itself.
create table finding_mails (
  id bigint generated always as identity primary key,
  -- In the Message-ID of every attempt.
  public_id uuid not null unique default gen_random_uuid(),
  notice_id bigint not null references finding_notices on delete cascade,
  person_id bigint not null references people,
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed', 'cancelled')),
  attempts integer not null default 0,
  last_error text,
  created_at timestamptz not null default svc_now(),
  next_attempt_at timestamptz not null default svc_now(),
  finished_at timestamptz,
  term bigint not null default 0,
  claimed_until timestamptz,
  unique (notice_id, person_id)
);
create index finding_mails_person_id on finding_mails (person_id);
create index finding_mails_due on finding_mails (next_attempt_at, id) where status = 'pending';
