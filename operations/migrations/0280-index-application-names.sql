-- The course of a few applications of all servers, and a filter by name, read their rows and not those of all applications.
create index protect_application_hours_name on protect_application_hours (lower(name), at);
