-- Who runs a background loop now. `term` grows with every change of holder: an effect written under a lease carries
-- `where term = …`, so a holder that slept past its time is refused at the row, not by its own clock.
create table leases (
  name text primary key,
  holder text not null,
  term bigint not null,
  acquired_at timestamptz not null,
  expires_at timestamptz not null
);
