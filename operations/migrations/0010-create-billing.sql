-- Money is kept in quanta of $0.0001, the smallest amount that anything is charged in: whole numbers add up exactly.
create table credit_balances (
  tenant_id bigint primary key references tenants (id),
  balance_quanta bigint not null default 0,
  updated_at timestamptz not null default svc_now()
);

-- Every change of a balance, with the reason that makes it unique: the same charge can't be booked twice, even by
-- code that is wrong.
create table ledger_entries (
  id bigint generated always as identity primary key,
  tenant_id bigint not null references tenants (id),
  amount_quanta bigint not null check (amount_quanta <> 0),
  description text not null,
  metadata jsonb not null,
  created_at timestamptz not null default svc_now(),
  check (metadata ? 'source')
);
create index ledger_entries_tenant_id on ledger_entries (tenant_id, id);
create unique index ledger_entries_reference on ledger_entries (tenant_id, (metadata ->> 'source'), (metadata ->> 'reference'))
  where metadata ? 'reference';
