-- Findings that are shown apart and never active, the most severe first: [{why, finding}]. `any_version`: the record names every
-- version of the product.
alter table vulnerability_software add column apart jsonb not null default '[]';
