/** Bodies about the movements of credit. */
import { type Static, Type } from 'typebox';
import { Strict } from '../scalars.ts';
import { type EndpointDeclaration, page } from './endpoint.ts';
import { Id, Moment, Money, monthPattern, Optional, PageOf, pageQuery, Titled } from './schema-kit.ts';

const Source = Type.String({
  description:
    'What for: `deposit`, `refund`, `adjustment`, `server_hours`, `snapshots`, `api_overage`, `bandwidth_overage`; others may be added.',
});

export const LedgerEntry = Titled('LedgerEntry', {
  id: Id,
  tenant_id: Id,
  amount: Type.String({ ...Money, description: 'Decimal text; negative for a charge.' }),
  currency: Type.String(),
  source: Source,
  description: Type.String(),
  created_at: Moment,
});
export type LedgerEntry = Static<typeof LedgerEntry>;

export const LedgerEntryList = PageOf('LedgerEntryList', 'entries', LedgerEntry);

export const ListLedgerQuery = Strict({
  ...Optional({
    source: Type.String({ maxLength: 40, pattern: '^[a-z_]+$', description: 'Entries of this source.' }),
    period: Type.String({ pattern: monthPattern, description: 'A UTC calendar month such as `2025-11`.' }),
  }),
  ...pageQuery(50).properties,
});
export type ListLedgerQuery = Static<typeof ListLedgerQuery>;

/** Every movement of the credit of an account. */
export const ledgerEndpoints = [
  {
    id: 'listLedger',
    call: 'GET /ledger',
    summary: 'List ledger entries',
    description:
      'Every change of the credit of the account, newest first. The entries add up to `credit_balance` of the account.',
    query: ListLedgerQuery,
    responses: page(LedgerEntryList, 'A page of entries.'),
  },
] as const satisfies readonly EndpointDeclaration[];
