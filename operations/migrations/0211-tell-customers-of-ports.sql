-- Alerts about ports are off until a customer switches them on; a time says since when.
alter table protect_settings
  add column port_mail boolean not null default false,
  add column port_mail_since timestamptz,
  add column port_webhook boolean not null default false,
  add column port_webhook_since timestamptz;

-- Ports that were not open before the scan: [{transport, port, answer}], the first 50, and how many they were.
alter table port_scans
  add column opened jsonb not null default '[]',
  add column opened_count integer not null default 0;

-- Mails about newly open ports, one for each scan and reader, written in the transaction that stores the result and sent at
-- least once. Each is claimed by itself.
create table port_mails (
  id bigint generated always as identity primary key,
  -- In the Message-ID of every attempt.
  public_id uuid not null unique default gen_random_uuid(),
  scan_id uuid not null references port_scans on delete cascade,
  person_id bigint not null references people,
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed', 'cancelled')),
  attempts integer not null default 0,
  last_error text,
  created_at timestamptz not null default svc_now(),
  next_attempt_at timestamptz not null default svc_now(),
  finished_at timestamptz,
  term bigint not null default 0,
  claimed_until timestamptz,
  unique (scan_id, person_id)
);
create index port_mails_person_id on port_mails (person_id);
create index port_mails_due on port_mails (next_attempt_at, id) where status = 'pending';
