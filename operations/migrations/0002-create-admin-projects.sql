-- Machines that use the admin API: a project holds permissions, its tokens prove that a caller is that project.

create table admin_projects (
  id bigint generated always as identity primary key,
  name text not null,
  permissions text[] not null,
  -- Clusters whose servers the project may see; null: all of them.
  cluster_ids bigint[],
  created_at timestamptz not null default svc_now()
);
create unique index admin_projects_name on admin_projects (lower(name));

-- Several tokens of a project may be valid at once, so that credentials rotate without downtime. Never deleted.
create table admin_tokens (
  id text primary key,
  project_id bigint not null references admin_projects,
  digest bytea not null,
  created_by bigint references people,
  created_at timestamptz not null default svc_now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index admin_tokens_project_id on admin_tokens (project_id);
create index admin_tokens_created_by on admin_tokens (created_by);

-- Failed authentications by source address and minute.
create table admin_auth_failures (
  bucket text not null,
  window_start timestamptz not null,
  failures integer not null,
  primary key (bucket, window_start)
);
