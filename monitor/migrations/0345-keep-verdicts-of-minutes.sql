-- Attack and expected traffic of an allocation's minute, as it was judged: the sweep of the last 24 hours sends the same again.
create table minute_verdicts (
  -- The allocation generation, as in feed_cursors.
  item text not null,
  minute timestamptz not null,
  -- What it was judged by; other observations are judged again.
  input text not null,
  bytes bigint not null,
  packets bigint,
  -- Observed as a whole and known to be without attack traffic: a minute that expected values are made of.
  is_healthy boolean not null,
  ddos_bytes bigint,
  ddos_packets bigint,
  -- False for an attack minute whose own source did not check it: its coverage is unknown.
  is_checked boolean not null,
  expected_bps double precision,
  expected_pps double precision,
  -- Why the attack values are unknown.
  reason text,
  primary key (item, minute)
) partition by range (minute);
