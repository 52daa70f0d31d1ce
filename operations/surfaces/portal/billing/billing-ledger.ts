/** The ledger of the billing page: every change of the credit, with filters, pages and CSV. */
import type { Tenant } from '#operations/accounts/index.ts';
import type { LedgerEntry } from '#operations/billing/index.ts';
import {
  field,
  form,
  formatCount,
  formatMoney,
  type Html,
  hiddenField,
  section,
  table,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';

export interface LedgerOptions {
  tenant: Tenant;
  entries: readonly LedgerEntry[];
  filter: { source: string; period: string; beforeId: number | undefined; nextBeforeId: number | undefined };
  /** `2025-11`, the newest first. */
  periods: readonly string[];
}

/** Where ledger entries come from, in the customer's words. */
const sourceLabels: Readonly<Record<string, string>> = {
  deposit: 'Payment',
  refund: 'Refund',
  adjustment: 'Adjustment',
  server_hours: 'Server hours',
  api_overage: 'API requests',
  bandwidth_overage: 'Traffic beyond the pool',
};

export const labelOf = (source: string) => sourceLabels[source] ?? source.replaceAll('_', ' ');

export function ledgerSection(options: LedgerOptions): Html {
  const { entries, filter, tenant, periods } = options;
  const here = withQuery('/client/billing/', {
    tenant: tenant.id,
    source: filter.source || undefined,
    period: filter.period || undefined,
  });
  return section(
    {
      title: 'Ledger',
      id: 'ledger',
      description: 'Every change of your credit. The entries add up to the balance above.',
    },
    table<LedgerEntry>({
      caption: 'Ledger',
      card: { line: ['for', 'amount'] },
      filter: form(
        {
          action: '/client/billing/#ledger',
          method: 'get',
          layout: 'inline',
          submit: 'Filter',
          submitKind: 'button',
        },
        [
          hiddenField('tenant', tenant.id),
          field({
            kind: 'select',
            name: 'source',
            label: 'What for',
            value: filter.source,
            options: [
              { value: '', label: 'Everything' },
              ...Object.entries(sourceLabels).map(([value, label]) => ({ value, label })),
            ],
          }),
          field({
            kind: 'select',
            name: 'period',
            label: 'Month',
            value: filter.period,
            options: [
              { value: '', label: 'All' },
              ...periods.map((period) => ({ value: period, label: period })),
            ],
          }),
        ],
      ),
      columns: [
        { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.createdAt.getTime()) },
        { key: 'for', header: 'What for', cell: (entry) => labelOf(entry.metadata.source) },
        { key: 'text', header: 'Description', kind: 'prose', cell: (entry) => entry.description },
        {
          key: 'amount',
          header: 'Amount',
          unit: tenant.currency,
          kind: 'figure',
          cell: (entry) => formatMoney(entry.amountQuanta, tenant.currency),
        },
      ],
      rows: entries,
      csvHref: withQuery('/client/billing/ledger.csv', {
        tenant: tenant.id,
        source: filter.source || undefined,
        period: filter.period || undefined,
      }),
      pages: {
        label: entries.length === 1 ? 'One entry' : `${formatCount(entries.length)} entries`,
        ...(filter.beforeId === undefined ? {} : { previousHref: `${here}#ledger` }),
        ...(filter.nextBeforeId === undefined
          ? {}
          : { nextHref: `${withQuery(here, { before: filter.nextBeforeId })}#ledger` }),
      },
      empty: {
        title: 'No entries',
        text: 'Payments, server hours and charges for API requests and traffic appear here.',
      },
    }),
  );
}
