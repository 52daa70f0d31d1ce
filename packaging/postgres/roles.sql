-- Databases and roles for both programs on a PostgreSQL of your own. Once, as its administrator:
--   psql -f roles.sql postgres
-- then give each program's role a password (\password svc_monitor) and the program its URL, start it, and run audit.sql and
-- readers.sql.
--
-- Each program owns its database, because it applies its migrations and makes and drops partitions; it has no right
-- beyond it, and no way into the other's. The readers are groups: `grant monitor_reader to anna;`
create role svc_operations login nosuperuser nocreatedb nocreaterole;
create role svc_monitor login nosuperuser nocreatedb nocreaterole;
-- Own the audit trails once audit.sql was run.
create role operations_audit nologin;
create role monitor_audit nologin;
create role operations_reader nologin;
create role monitor_reader nologin;
-- For SVC_MONITOR_READER_DATABASE_URL: sensors' plans, health and metrics are read as a role that can't write at all.
create role svc_monitor_reader login nosuperuser nocreatedb nocreaterole in role monitor_reader;

create database operations owner svc_operations encoding 'UTF8' template template0;
create database monitor owner svc_monitor encoding 'UTF8' template template0;
revoke all on database operations from public;
revoke all on database monitor from public;
grant connect on database operations to operations_reader;
grant connect on database monitor to monitor_reader;
