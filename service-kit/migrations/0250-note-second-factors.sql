-- When a second factor was last shown in a session; null: only the password was, or the session is older than this column.
alter table sessions add column second_factor_at timestamptz;
