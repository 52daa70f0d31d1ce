-- The audit trail: who changed what, from where, written in the transaction of the change.
-- The database itself keeps it append-only: no row is changed, and none is deleted before its year is over.
create table audit_entries (
  id bigint generated always as identity primary key,
  occurred_at timestamptz not null default svc_now(),
  operation text not null,
  actor_kind text not null check (actor_kind in
    ('person', 'key', 'staff', 'token', 'operator', 'sensor', 'system', 'anonymous')),
  -- Of the person, the key, the token or the job; with the name that it had then.
  actor_id text,
  actor_name text,
  -- For whom a key acts.
  person_id bigint,
  source_address text,
  request_id text,
  subject_kind text not null,
  subject_id text not null,
  subject_name text,
  -- Whose thing it is; both null for what belongs to no customer.
  organization_id bigint,
  tenant_id bigint,
  before jsonb,
  after jsonb
);
create index audit_entries_subject on audit_entries (subject_kind, subject_id, id desc);
create index audit_entries_organization on audit_entries (organization_id, id desc) where organization_id is not null;
create index audit_entries_tenant on audit_entries (tenant_id, id desc) where tenant_id is not null;
create index audit_entries_occurred_at on audit_entries (occurred_at);
create index audit_entries_request on audit_entries (request_id) where request_id is not null;

create function audit_entries_stamp() returns trigger language plpgsql as $$
begin
  -- A backdated row would be one that retention may delete at once.
  new.occurred_at := svc_now();
  return new;
end $$;
create function audit_entries_refuse() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    if old.occurred_at < svc_now() - interval '1 year' then
      return old;
    end if;
  end if;
  raise exception 'audit_entries is append-only: % is refused', lower(tg_op) using errcode = 'insufficient_privilege';
end $$;
create trigger audit_entries_stamp before insert on audit_entries
  for each row execute function audit_entries_stamp();
create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function audit_entries_refuse();
create trigger audit_entries_no_truncate before truncate on audit_entries
  for each statement execute function audit_entries_refuse();
-- Also for sessions that have switched ordinary triggers off.
alter table audit_entries enable always trigger audit_entries_stamp;
alter table audit_entries enable always trigger audit_entries_append_only;
alter table audit_entries enable always trigger audit_entries_no_truncate;
