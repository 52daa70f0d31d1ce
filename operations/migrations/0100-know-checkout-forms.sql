-- The portal's form that ordered; null for the API, where every call is a new order. Sent again, it orders nothing.
alter table server_orders add column form_id text;
create unique index server_orders_form_id on server_orders (tenant_id, form_id) where form_id is not null;
