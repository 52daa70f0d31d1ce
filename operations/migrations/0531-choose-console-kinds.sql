-- What the console speaks. Null: what it usually does, in a ticket of an earlier program.
alter table console_tickets add column kind text;
