-- Whether services changed since their uses were counted. A loop that is killed in between counts them when it runs again.
create table vulnerability_uses_state (
  is_only boolean primary key default true check (is_only),
  is_outdated boolean not null
);
-- Those that a killed loop left.
insert into vulnerability_uses_state (is_outdated) values (true);
