-- What a caller's Idempotency-Key stands for: the thing that the first call made, never its answer, so that no secret
-- stands here. `term` is the fence: a call that was overtaken can not bind its result any more.
create table idempotency_keys (
  key_id text not null,
  method text not null,
  path text not null,
  idempotency_key text not null,
  fingerprint bytea not null,
  term bigint not null default 1,
  claimed_until timestamptz not null,
  result_kind text,
  result_id bigint,
  created_at timestamptz not null default svc_now(),
  primary key (key_id, method, path, idempotency_key),
  check ((result_kind is null) = (result_id is null))
);
create index idempotency_keys_created_at on idempotency_keys (created_at);
