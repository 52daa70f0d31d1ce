-- An email address is verified when its person opened a link that was mailed to it, or when an operator made the person.
-- Only a verified person becomes the owner of an organization without being reset first.
alter table people add column email_verified_at timestamptz;
-- No password has been set yet: the person was made by an operator and has not used their link.
alter table people alter column password_hash drop not null;

-- Links of earlier invitations were shown to the owner who invited, so they prove nothing about the address.
update people set email_verified_at = created_at
where not exists (
  select 1 from invitations i
  where i.email = people.email and i.accepted_at is not null and people.staff_role is null
    and people.created_at between i.accepted_at - interval '1 minute' and i.accepted_at + interval '1 minute'
);
-- Open links were shown to owners as well; they stop working. The owner invites again, by mail.
update invitations set revoked_at = svc_now() where accepted_at is null and revoked_at is null;
