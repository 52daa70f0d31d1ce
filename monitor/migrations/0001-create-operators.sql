-- People who sign in to the monitor's console. A viewer sees everything and changes nothing (NET-5.5).
create table operators (
  id bigint generated always as identity primary key,
  email text not null,
  name text not null,
  password_hash text not null,
  role text not null check (role in ('operator', 'viewer')),
  created_at timestamptz not null default svc_now(),
  disabled_at timestamptz
);
create unique index operators_email on operators (lower(email));
