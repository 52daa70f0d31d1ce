-- What the provider's own port scans caused of a server's UTC day, whichever source says what it used: it does not count against the
-- pool. Kept as long as the days.
create table bandwidth_own_scans (
  server_id bigint not null references servers (id),
  day date not null,
  inbound_bytes bigint not null check (inbound_bytes >= 0),
  outbound_bytes bigint not null check (outbound_bytes >= 0),
  primary key (server_id, day)
);
