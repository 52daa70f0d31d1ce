-- Charts over a day read the ten minutes of some names, and those of everything (no name), out of those of thousands.
create index name_tens_name on name_tens (site_id, name, start);
