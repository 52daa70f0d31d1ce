-- How many findings each address has, kept in the transactions that change them: pages over all customers add up addresses
-- instead of reading findings.
create table finding_counts (
  allocation_id bigint primary key references finding_projections on delete cascade,
  -- The counts hold from the one time, unless the clock is put back, until the other: then evidence expires or an ignore ends.
  valid_from timestamptz not null default svc_now(),
  valid_until timestamptz not null,
  -- By severity: critical, high, medium, low, none, without one. Findings of the originals of packages are not among them.
  active integer[] not null,
  ignored integer[] not null,
  -- Of the active ones those that are known to be exploited.
  exploited integer[] not null,
  -- Services that can't be assessed.
  unable integer not null
);
create index finding_counts_valid_until on finding_counts (valid_until);

-- What was delivered before this.
insert into finding_counts (allocation_id, valid_until, active, ignored, exploited, unable)
select p.allocation_id, coalesce(least(e.until, g.until), 'infinity'), g.active, g.ignored, g.exploited, e.unable
from finding_projections p
cross join lateral (
  select min(s.observed_at) + interval '7 days' as until, count(*) filter (where s.reason is not null)::int as unable
  from finding_services s where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - interval '7 days') e
cross join lateral (
  select min(i.until) as until,
    array[
      count(*) filter (where f.severity = 'critical' and i.id is null)::int,
      count(*) filter (where f.severity = 'high' and i.id is null)::int,
      count(*) filter (where f.severity = 'medium' and i.id is null)::int,
      count(*) filter (where f.severity = 'low' and i.id is null)::int,
      count(*) filter (where f.severity = 'none' and i.id is null)::int,
      count(*) filter (where f.severity is null and i.id is null)::int] as active,
    array[
      count(*) filter (where f.severity = 'critical' and i.id is not null)::int,
      count(*) filter (where f.severity = 'high' and i.id is not null)::int,
      count(*) filter (where f.severity = 'medium' and i.id is not null)::int,
      count(*) filter (where f.severity = 'low' and i.id is not null)::int,
      count(*) filter (where f.severity = 'none' and i.id is not null)::int,
      count(*) filter (where f.severity is null and i.id is not null)::int] as ignored,
    array[
      count(*) filter (where f.severity = 'critical' and i.id is null and f.is_known_exploited)::int,
      count(*) filter (where f.severity = 'high' and i.id is null and f.is_known_exploited)::int,
      count(*) filter (where f.severity = 'medium' and i.id is null and f.is_known_exploited)::int,
      count(*) filter (where f.severity = 'low' and i.id is null and f.is_known_exploited)::int,
      count(*) filter (where f.severity = 'none' and i.id is null and f.is_known_exploited)::int,
      count(*) filter (where f.severity is null and i.id is null and f.is_known_exploited)::int] as exploited
  from finding_services s
  join findings f on f.allocation_id = s.allocation_id and f.transport = s.transport and f.port = s.port and not f.is_upstream
  left join finding_ignores i on i.tenant_id = p.tenant_id and i.server_id = p.server_id
    and i.allocation_id = f.allocation_id and i.transport = f.transport and i.port = f.port
    and i.fingerprint = f.fingerprint and i.cve_id = f.cve_id and i.ended_at is null
    and (i.until is null or i.until > svc_now())
  where s.allocation_id = p.allocation_id and s.observed_at > svc_now() - interval '7 days') g;

drop index findings_counted;
-- Findings of one CVE in the order of their pages; they are counted without reading records.
drop index findings_cve_id;
create index findings_of_cve on findings
  (cve_id, (not is_known_exploited), (- coalesce(score, -1)), allocation_id, transport, port)
  include (severity, is_known_exploited, score) where not is_upstream;
create index finding_ignores_of_cve on finding_ignores (cve_id) where ended_at is null;
