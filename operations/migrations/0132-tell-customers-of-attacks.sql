-- What a customer was told of an incident. An episode is from a start to its end: an incident that comes back within five
-- minutes of its recovery continues its episode, so it is told once.
alter table protect_incidents
  add column episode integer not null default 1,
  add column start_told_at timestamptz,
  add column end_told_at timestamptz,
  -- The channels that got the start, and so get the end: mail, webhook.
  add column told text[] not null default '{}',
  -- When the first mail or webhook about it was queued, and which had a recipient; null where there was none.
  add column alerted_at timestamptz,
  add column alerted_by text[] not null default '{}';

-- Mails about attacks, written in the transaction that stores the incident and sent at least once. Each is claimed by itself.
create table attack_mails (
  id bigint generated always as identity primary key,
  -- In the Message-ID of every attempt.
  public_id uuid not null unique default gen_random_uuid(),
  incident_id uuid not null references protect_incidents on delete cascade,
  episode integer not null,
  moment text not null check (moment in ('started', 'ended')),
  person_id bigint not null references people,
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed', 'cancelled')),
  attempts integer not null default 0,
  last_error text,
  created_at timestamptz not null default svc_now(),
  next_attempt_at timestamptz not null default svc_now(),
  finished_at timestamptz,
  term bigint not null default 0,
  claimed_until timestamptz,
  unique (incident_id, episode, moment, person_id)
);
create index attack_mails_person_id on attack_mails (person_id);
create index attack_mails_due on attack_mails (next_attempt_at, id) where status = 'pending';
