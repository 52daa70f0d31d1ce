-- How often an address was invited in a day, by all organizations.
create index invitations_email on invitations (email, created_at);
