-- Why a minute is not a full one, or its attack values are unknown; null from senders that do not tell.
alter table protect_minutes add column reason text;
