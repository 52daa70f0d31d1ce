-- What the security trackers of distributions say of packages of known products.
create table vulnerability_package_fixes (
  product text not null,
  distribution text not null check (distribution in ('debian', 'ubuntu', 'redhat')),
  -- As the tracker names it: bookworm, 24.04, 9.
  release text not null,
  package text not null,
  cve text not null,
  status text not null check (status in ('fixed', 'affected')),
  -- The first version with the fix; 0 where no version is affected, null where there is none.
  fixed_in text,
  -- Upstream versions that the tracker names for the package in the release.
  upstreams text[] not null,
  -- The newest version of the package that the tracker names.
  newest text
);
create index vulnerability_package_fixes_product on vulnerability_package_fixes (product);
create index vulnerability_package_fixes_cve on vulnerability_package_fixes (distribution, cve);

create table vulnerability_trackers (
  distribution text primary key,
  imported_at timestamptz not null
);

-- A package whose distribution's tracker knows it: its findings are what the tracker says.
alter table vulnerability_software add column is_judged boolean not null default false;
