-- Who there is: people, the organizations they belong to, and the tenants (billing accounts) of an organization.

create table people (
  id bigint generated always as identity primary key,
  email text not null check (email = lower(email)),
  name text not null,
  password_hash text not null,
  -- What this person may do in the operators' console; null for customers.
  staff_role text check (staff_role in ('operator', 'support')),
  deactivated_at timestamptz,
  created_at timestamptz not null default svc_now()
);
create unique index people_email on people (email);

create table organizations (
  id bigint generated always as identity primary key,
  name text not null,
  created_at timestamptz not null default svc_now()
);

create table memberships (
  organization_id bigint not null references organizations,
  person_id bigint not null references people,
  role text not null check (role in ('owner', 'member')),
  created_at timestamptz not null default svc_now(),
  primary key (organization_id, person_id)
);
create index memberships_person_id on memberships (person_id);
create unique index memberships_owner on memberships (organization_id) where role = 'owner';

-- A tenant is a workspace and its billing account at once: one id, one balance, one status.
create table tenants (
  id bigint generated always as identity primary key,
  organization_id bigint not null references organizations,
  name text not null,
  slug text not null check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' and slug !~ '^[0-9]+$'),
  status text not null default 'ACTIVE' check (status in ('ACTIVE', 'SUSPENDED', 'CLOSED')),
  currency text not null default 'USD' check (currency ~ '^[A-Z]{3}$'),
  -- The organization's original tenant: what a key that reaches it acts on unless told otherwise.
  is_payer boolean not null default false,
  created_at timestamptz not null default svc_now()
);
create unique index tenants_slug on tenants (slug);
create index tenants_organization_id on tenants (organization_id);
create unique index tenants_payer on tenants (organization_id) where is_payer;

-- Who is invoiced. A tenant without a row has no billing profile and its API stays locked.
create table billing_profiles (
  tenant_id bigint primary key references tenants,
  legal_name text not null,
  email text not null,
  country text not null check (country ~ '^[A-Z]{2}$'),
  created_at timestamptz not null default svc_now(),
  updated_at timestamptz not null default svc_now()
);
