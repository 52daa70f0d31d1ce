-- Records of the public vulnerability database, by product: a copy that is read instead of it.

-- What was fetched of each product. The last good state stands beside the last attempt: a failure changes only the attempt.
create table vulnerability_products (
  product text primary key,
  attempted_at timestamptz,
  -- Why the last attempt failed; null when it did not.
  error text,
  refreshed_at timestamptz,
  -- Records that could not be read, and those that the database does not analyse any more.
  unreadable integer not null default 0,
  deferred integer not null default 0
);

create table vulnerability_advisories (
  product text not null,
  cve text not null,
  advisory jsonb not null,
  primary key (product, cve)
);

-- One row: when the database may be asked again. It is stored, so that pauses hold for all processes and over restarts.
create table vulnerability_source (
  is_only boolean primary key default true check (is_only),
  -- No request before this.
  not_before timestamptz not null default '2000-01-01Z',
  -- Counts requests; the answer of one that lost its turn changes nothing.
  claim bigint not null default 0,
  -- Failed requests in a row.
  failures integer not null default 0
);
insert into vulnerability_source default values;
