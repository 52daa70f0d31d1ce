-- Signing secrets of webhooks are sealed with a key of `data_keys`. The program seals clear values at its start, because
-- SQL has no key; the clear columns are empty afterwards.
alter table webhook_endpoints rename column secret to clear_secret;
alter table webhook_endpoints alter column clear_secret drop not null;
alter table webhook_endpoints rename column previous_secret to clear_previous_secret;
alter table webhook_endpoints add column sealed_secret bytea, add column sealed_previous_secret bytea;
alter table webhook_endpoints add check (num_nonnulls(clear_secret, sealed_secret) = 1);
alter table webhook_endpoints add check (num_nonnulls(clear_previous_secret, sealed_previous_secret) <= 1);
