-- A complete scan closes what its own profile found, and leaves evidence of the other profile as it is (NET-2.7.10). A port is
-- closed (closed_at) when no evidence says that it is open.
alter table port_observations
  -- End of the complete scan of the profile that did not find the port any more.
  add column common_closed_at timestamptz,
  add column full_closed_at timestamptz;
update port_observations set
  common_closed_at = case when common_observed_at is not null then closed_at end,
  full_closed_at = case when full_observed_at is not null then closed_at end
where closed_at is not null;
