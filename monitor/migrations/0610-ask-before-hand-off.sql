-- The address is of no server on the node whose sensor reports the attack: an operator starts the action.
alter table hand_off_actions add column needs_approval boolean not null default false;
