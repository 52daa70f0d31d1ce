-- How many services run each software is counted from the index alone, for the list of records and what they touch.
create index vulnerability_services_software on vulnerability_services (software_id, cluster_id, vm_id) include (reason);
drop index vulnerability_services_software_id;
