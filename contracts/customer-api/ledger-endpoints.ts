import type { Endpoint } from './endpoint.ts';
import { LedgerEntryList, ListLedgerQuery } from './ledger-schemas.ts';

/** Every movement of the credit of an account. */
export const ledgerEndpoints = [
  {
    id: 'listLedger',
    method: 'GET',
    path: '/ledger',
    versions: ['v2'],
    summary: 'List ledger entries',
    description:
      'Every change of the credit of the account, newest first. The entries add up to `credit_balance` of the account.',
    params: {},
    query: ListLedgerQuery,
    selectsTenant: true,
    responses: {
      200: { description: 'A page of entries.', schema: LedgerEntryList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor', 'invalid_fields'],
  },
] as const satisfies readonly Endpoint[];
