-- Work to be done at least once. `term` is the fence: a worker finishes a job only under the term that it claimed.
create table jobs (
  id bigint generated always as identity primary key,
  kind text not null,
  payload jsonb not null,
  run_at timestamptz not null default svc_now(),
  attempts integer not null default 0,
  term bigint not null default 0,
  claimed_until timestamptz,
  last_error text,
  created_at timestamptz not null default svc_now(),
  finished_at timestamptz
);
create index jobs_due on jobs (run_at) where finished_at is null;
