import type { Tenant } from '#operations/accounts/index.ts';
import type { LedgerEntry } from '#operations/billing/index.ts';
import {
  code,
  formatMoney,
  type Html,
  pageHeader,
  table,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface LedgerPageOptions {
  staff: Staff;
  tenant: Tenant;
  balanceQuanta: number;
  entries: readonly LedgerEntry[];
  isFirst: boolean;
  /** Where older entries go on. */
  nextBeforeId: number | undefined;
}

/** `/console/customers/{id}/ledger`: every change of the credit, with its reason. */
export function ledgerPage(options: LedgerPageOptions): Html {
  const { staff, tenant, entries, nextBeforeId } = options;
  const home = `/console/customers/${tenant.id}`;
  const here = `${home}/ledger`;
  const balance = formatMoney(options.balanceQuanta, tenant.currency);
  return consoleFrame(
    {
      staff,
      title: `Ledger of ${tenant.name}`,
      current: 'customers',
      breadcrumb: [
        { label: 'Customers', href: '/console/customers/' },
        { label: tenant.name, href: home },
        { label: 'Ledger' },
      ],
    },
    [
      pageHeader({
        title: `Ledger of ${tenant.name}`,
        state: {
          tone: options.balanceQuanta < 0 ? 'warn' : 'good',
          text: `Credit is ${balance}: the sum of all entries, which are never changed.`,
        },
      }),
      ledgerTable(entries, tenant, {
        previousHref: options.isFirst ? undefined : here,
        nextHref: nextBeforeId === undefined ? undefined : withQuery(here, { before: nextBeforeId }),
      }),
    ],
  );
}

export function ledgerTable(
  entries: readonly LedgerEntry[],
  tenant: Tenant,
  pages?: { previousHref: string | undefined; nextHref: string | undefined },
): Html {
  return table<LedgerEntry>({
    caption: 'Ledger',
    card: { title: 'text', line: ['amount', 'source', 'at'] },
    columns: [
      { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.createdAt.getTime()) },
      { key: 'source', header: 'Source', kind: 'code', cell: (entry) => code(entry.metadata.source) },
      { key: 'text', header: 'Description', kind: 'prose', cell: (entry) => entry.description },
      {
        key: 'amount',
        header: 'Amount',
        kind: 'figure',
        cell: (entry) => formatMoney(entry.amountQuanta, tenant.currency),
      },
    ],
    rows: entries,
    pages: pages?.nextHref || pages?.previousHref ? pages : undefined,
    empty: { title: 'No entries', text: 'Payments, adjustments and charges appear here.' },
  });
}
