-- What a customer chose for a server; without a row the defaults hold. A time says since when a choice is on, null that
-- it was never off. An alert is about incidents that began after it was switched on.
create table protect_settings (
  server_id bigint primary key references servers (id),
  tenant_id bigint not null references tenants (id),
  views_on boolean not null,
  views_on_since timestamptz,
  attack_mail boolean not null,
  attack_mail_since timestamptz,
  attack_webhook boolean not null,
  attack_webhook_since timestamptz,
  changed_at timestamptz not null default svc_now()
);
create index protect_settings_tenant_id on protect_settings (tenant_id);
