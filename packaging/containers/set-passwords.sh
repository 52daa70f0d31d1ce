#!/bin/sh
# Gives the roles of packaging/postgres/roles.sql the passwords of their URLs. The image of PostgreSQL calls it once, as its
# administrator, after roles.sql. SVC_SECRETS: the folder of the secrets.
set -eu
secrets=${SVC_SECRETS:-/run/secrets}
password_of() { sed -n 's|^[a-z]*://[^:]*:\([^@]*\)@.*|\1|p' "$secrets/$1"; }
psql --quiet --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname postgres -v ON_ERROR_STOP=1 \
  -v operations="$(password_of operations-database-url)" -v monitor="$(password_of monitor-database-url)" <<'SQL'
alter role svc_operations password :'operations';
alter role svc_monitor password :'monitor';
SQL
