-- Verdicts about foreign addresses that changed after their facts were stored in an engine of its own, which never changes rows:
-- reads apply them. An address's rows of one capture and segment, of these minutes, that are older than `epoch`.
create table fact_verdicts (
  id bigint generated always as identity primary key,
  site_id bigint not null references sites,
  capture_id bigint not null,
  address inet not null,
  segment text not null,
  from_minute timestamptz not null,
  -- Inclusive.
  to_minute timestamptz not null,
  is_foreign boolean not null,
  epoch bigint not null
);
create index fact_verdicts_site on fact_verdicts (site_id, to_minute);
create index fact_verdicts_to_minute on fact_verdicts (to_minute);
create sequence fact_verdict_epochs minvalue 0 start 0;
select nextval('fact_verdict_epochs');
