-- How the sessions with BGP peers go, as the process said that holds them.
create table bgp_sessions (
  -- As rules name it.
  peer text primary key,
  -- Null: the session is established.
  problem text,
  -- Announced now.
  routes integer not null,
  -- Of this state.
  since timestamptz not null default svc_now(),
  told_at timestamptz not null default svc_now()
);
