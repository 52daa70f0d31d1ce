-- Secrets are sealed with a key of `data_keys`. The program seals clear values at its start, because SQL has no key;
-- the clear columns are empty afterwards. Changing a column's type rewrites the table and drops the column's statistics.
alter table operations_connection alter column token drop not null;
alter table operations_connection alter column token type bytea using convert_to(token, 'UTF8');
alter table operations_connection rename column token to clear_token;
alter table operations_connection add column sealed_token bytea;
alter table operations_connection add check (num_nonnulls(clear_token, sealed_token) = 1);
-- Counts changes of the base URL or the token: whether a check still speaks of this connection.
alter table operations_connection add column revision bigint not null default 1;

alter table notice_secret alter column secret drop not null;
alter table notice_secret alter column secret type bytea using convert_to(secret, 'UTF8');
alter table notice_secret rename column secret to clear_secret;
alter table notice_secret add column sealed_secret bytea;
alter table notice_secret add check (num_nonnulls(clear_secret, sealed_secret) = 1);

alter table alert_channels rename column secret to clear_secret;
alter table alert_channels alter column clear_secret type bytea using clear_secret;
alter table alert_channels add column sealed_secret bytea;
alter table alert_channels add constraint alert_channels_webhook check (
  kind = 'webhook' and url is not null and num_nonnulls(clear_secret, sealed_secret) = 1
  or kind <> 'webhook' and num_nonnulls(url, clear_secret, sealed_secret) = 0);
do $$
declare former text;
begin
  select conname into strict former from pg_constraint
  where conrelid = 'alert_channels'::regclass and contype = 'c' and conname <> 'alert_channels_webhook'
    and pg_get_constraintdef(oid) like '%webhook%' and pg_get_constraintdef(oid) like '%url%';
  execute format('alter table alert_channels drop constraint %I', former);
end
$$;
