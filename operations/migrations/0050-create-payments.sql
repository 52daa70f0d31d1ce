-- Cards that a customer has saved at a payment gateway. The gateway holds the number; here is only what it calls the card.
create table gateway_customers (
  tenant_id bigint not null references tenants (id),
  gateway text not null,
  reference text not null,
  primary key (tenant_id, gateway)
);
create table saved_cards (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  gateway text not null,
  reference text not null,
  brand text not null,
  last4 text not null check (last4 ~ '^[0-9]{4}$'),
  expires_month integer not null check (expires_month between 1 and 12),
  expires_year integer not null check (expires_year between 2000 and 2200),
  is_default boolean not null,
  created_at timestamptz not null default svc_now(),
  removed_at timestamptz
);
create index saved_cards_tenant_id on saved_cards (tenant_id) where removed_at is null;
create unique index saved_cards_reference on saved_cards (gateway, reference) where removed_at is null;
create unique index saved_cards_default on saved_cards (tenant_id, gateway) where is_default and removed_at is null;

-- An order is created, then paid or unpaid. `request` is what was ordered, so that a paid order whose process died can
-- still be carried out; `queued_at` is when provisioning was queued, `closed_reason` says why it never will be.
alter table server_orders add column request jsonb;
alter table server_orders add column queued_at timestamptz;
alter table server_orders add column closed_reason text;
update server_orders set queued_at = paid_at where state = 'paid';
create index server_orders_unfinished on server_orders (id) where queued_at is null and closed_reason is null;

-- A charge of a card. `charge_key` is its id at the gateway: stored before the first call, sent with every call, never
-- made again. Money can move only once `gateway_reference` is stored. An order has one charge, which the index says.
--   intended    nothing was asked of the gateway yet
--   prepared    the gateway knows the charge; money may be taken from here on
--   succeeded   taken in time, and credited
--   declined    not taken, and never will be
--   unconfirmed the caller was told that nothing is certain; reconciliation ends it
--   voided      ended before money was taken
--   refunded    money was taken too late, and given back
create table charges (
  id bigint generated always as identity primary key,
  charge_key text not null unique,
  tenant_id bigint not null references tenants (id),
  card_id bigint not null references saved_cards (id),
  order_id bigint unique references server_orders (id),
  purpose text not null check (purpose in ('order', 'credit')),
  amount_quanta bigint not null check (amount_quanta > 0),
  currency text not null,
  gateway text not null,
  gateway_reference text,
  state text not null default 'intended'
    check (state in ('intended', 'prepared', 'succeeded', 'declined', 'unconfirmed', 'voided', 'refunded')),
  decline_reason text,
  attempts integer not null default 0,
  next_attempt_at timestamptz,
  last_error text,
  created_at timestamptz not null default svc_now(),
  settled_at timestamptz,
  check ((purpose = 'order') = (order_id is not null)),
  check (state in ('intended', 'voided', 'unconfirmed', 'declined') or gateway_reference is not null)
);
create index charges_tenant_id on charges (tenant_id, id);
create index charges_card_id on charges (card_id);
create unique index charges_gateway_reference on charges (gateway, gateway_reference);
create index charges_unsettled on charges (id) where state in ('intended', 'prepared', 'unconfirmed');

-- Whether money was ever paid in: asked on every API call, so it is kept where the balance is.
alter table credit_balances add column has_deposit boolean not null default false;
update credit_balances b set has_deposit = true
where exists (select 1 from ledger_entries e where e.tenant_id = b.tenant_id and e.metadata ->> 'source' = 'deposit');

-- The test gateway's own books, as a real gateway keeps them on its side.
create table test_gateway_charges (
  reference text primary key,
  charge_key text not null unique,
  card_reference text not null,
  amount_quanta bigint not null,
  currency text not null,
  state text not null check (state in ('prepared', 'succeeded', 'declined', 'canceled', 'refunded')),
  created_at timestamptz not null default svc_now()
);
