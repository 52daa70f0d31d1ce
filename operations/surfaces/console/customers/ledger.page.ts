/** `/console/customers/{id}/ledger`: every change of the credit, with its reason. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Billing, LedgerEntry } from '#operations/billing/index.ts';
import { type Column, code, formatMoney, pageHeader, sendPage, utcTime } from '#service-kit/pages/index.ts';
import { idCursor, readList, sendWantedFile } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';

export async function showLedger(
  deps: { billing: Pick<Billing, 'listEntries' | 'balanceOf'> },
  request: FastifyRequest,
  reply: FastifyReply,
  tenant: Tenant,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const home = `/console/customers/${tenant.id}`;
  const [list, balanceQuanta] = await Promise.all([
    readList(request, {
      ...{ id: 'ledger', path: `${home}/ledger`, filters: [], ...ledgerOf(tenant) },
      cursor: idCursor<LedgerEntry>(),
      read: (_, { limit, after }) =>
        deps.billing.listEntries(staff.actor, tenant.id, { limit, ...(after && { beforeId: after }) }),
    }),
    deps.billing.balanceOf(staff.actor, tenant.id),
  ]);
  const title = `Ledger of ${tenant.name}`;
  const state = {
    tone: balanceQuanta < 0 ? 'warn' : 'good',
    text: `Credit is ${formatMoney(balanceQuanta, tenant.currency)}: the sum of all entries, which are never changed.`,
  } as const;
  const breadcrumb = [
    { label: 'Customers', href: '/console/customers/' },
    { label: tenant.name, href: home },
    { label: 'Ledger' },
  ];
  const content = [pageHeader({ title, state }), list.table];
  return (
    sendWantedFile(request, reply, 'console') ??
    sendPage(reply, consoleFrame({ staff, title, current: 'customers', breadcrumb }, content))
  );
}

/** The table of a ledger, whole or its newest entries. */
export const ledgerOf = (tenant: Tenant) => ({
  caption: 'Ledger',
  card: { title: 'text', line: ['amount', 'source', 'at'] },
  columns: [
    { key: 'at', header: 'When', kind: 'time', cell: (entry) => utcTime(entry.createdAt.getTime()) },
    { key: 'source', header: 'Source', kind: 'code', cell: (entry) => code(entry.metadata.source) },
    { key: 'text', header: 'Description', kind: 'prose', cell: (entry) => entry.description },
    {
      ...{ key: 'amount', header: 'Amount', kind: 'figure', field: 'amount_quanta' },
      cell: (entry) => formatMoney(entry.amountQuanta, tenant.currency),
      value: (entry) => entry.amountQuanta,
    },
  ] satisfies Column<LedgerEntry>[],
  empty: { title: 'No entries', text: 'Payments, adjustments and charges appear here.' },
});
