-- How many assessed services of a site run each software, counted after each run of the assessing loop that changed some.
create table vulnerability_uses (
  site_id bigint not null references sites on delete cascade,
  software_id bigint not null references vulnerability_software on delete cascade,
  services integer not null,
  primary key (site_id, software_id)
);
create index vulnerability_uses_software_id on vulnerability_uses (software_id);
insert into vulnerability_uses (site_id, software_id, services)
select s.site_id, v.software_id, count(*)
from vulnerability_services v join vulnerability_servers s on s.cluster_id = v.cluster_id and s.vm_id = v.vm_id
where v.reason is null and v.software_id is not null group by 1, 2;

create index vulnerability_ignores_cve on vulnerability_ignores (cve) where ended_at is null;
