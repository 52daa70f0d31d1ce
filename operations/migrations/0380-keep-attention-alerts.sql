-- What needs attention now and is mailed to operators: one row from its first sight until it has been gone for a minute.
create table attention_alerts (
  key text primary key,
  title text not null,
  text text not null,
  href text not null,
  opened_at timestamptz not null default svc_now(),
  -- When its mail was sent; null while it may still pass by itself.
  mailed_at timestamptz,
  -- Since when it is gone.
  gone_since timestamptz
);
