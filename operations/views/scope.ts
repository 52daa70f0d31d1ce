/** Tenants whose rows an operation may read or change: those of these ids, or all. */
export type Scope = readonly number[] | 'all';
