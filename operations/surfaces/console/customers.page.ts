/** `/console/`: every tenant with its state and what it has. */
import type { Tenant } from '#operations/accounts/index.ts';
import {
  badge,
  code,
  field,
  form,
  formatCount,
  formatMoney,
  formatTime,
  type Html,
  link,
  pageHeader,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import type { Staff } from './guard.ts';

export interface CustomerRow {
  tenant: Tenant;
  serverCount: number;
  balanceQuanta: number | null;
}

export const statusTones: Record<Tenant['status'], Tone> = {
  ACTIVE: 'good',
  SUSPENDED: 'warn',
  CLOSED: 'neutral',
};

export interface CustomersFilter {
  text: string;
  status: string;
}

export function customersPage(
  staff: Staff,
  all: readonly CustomerRow[],
  rows: readonly CustomerRow[],
  filter: CustomersFilter,
): Html {
  return consoleFrame(
    { staff, title: 'Customers', current: 'customers', breadcrumb: [{ label: 'Customers' }] },
    [
      pageHeader({ title: 'Customers', state: stateOf(all) }),
      table<CustomerRow>({
        caption: 'Tenants',
        filter: form(
          {
            action: '/console/',
            method: 'get',
            csrfToken: null,
            layout: 'inline',
            submit: 'Filter',
            submitKind: 'button',
          },
          [
            field({ kind: 'search', name: 'text', label: 'Name, organization or id', value: filter.text }),
            field({
              kind: 'select',
              name: 'status',
              label: 'Status',
              value: filter.status,
              options: [
                { value: '', label: 'All' },
                { value: 'ACTIVE', label: 'Active' },
                { value: 'SUSPENDED', label: 'Suspended' },
                { value: 'CLOSED', label: 'Closed' },
                { value: 'debt', label: 'In debt' },
              ],
            }),
          ],
        ),
        columns: [
          {
            key: 'name',
            header: 'Tenant',
            cell: ({ tenant }) => link(`/console/customers/${tenant.id}`, tenant.name),
          },
          { key: 'organization', header: 'Organization', cell: ({ tenant }) => tenant.organizationName },
          { key: 'id', header: 'Id', kind: 'code', cell: ({ tenant }) => code(String(tenant.id)) },
          {
            key: 'status',
            header: 'Status',
            cell: ({ tenant }) => badge(statusTones[tenant.status], tenant.status.toLowerCase()),
          },
          { key: 'servers', header: 'Servers', kind: 'figure', cell: (row) => formatCount(row.serverCount) },
          {
            key: 'credit',
            header: 'Credit',
            kind: 'figure',
            cell: (row) => formatMoney(row.balanceQuanta, row.tenant.currency),
          },
          {
            key: 'profile',
            header: 'Billing profile',
            cell: ({ tenant }) => (tenant.hasBillingProfile ? 'given' : badge('warn', 'missing')),
          },
          {
            key: 'created',
            header: 'Since',
            cell: ({ tenant }) => formatTime(tenant.createdAt.getTime(), 'day'),
          },
        ],
        rows,
        rowTone: (row) => ((row.balanceQuanta ?? 0) < 0 ? 'warn' : undefined),
        pages: { label: `${formatCount(rows.length)} of ${formatCount(all.length)}` },
        empty: {
          title: all.length === 0 ? 'No customers yet' : 'Nobody like that',
          text: 'Organizations and their tenants stand here, once somebody has signed up and the filter lets them.',
        },
      }),
    ],
  );
}

function stateOf(rows: readonly CustomerRow[]): { tone: Tone; text: string } {
  const suspended = rows.filter((row) => row.tenant.status === 'SUSPENDED').length;
  const inDebt = rows.filter((row) => (row.balanceQuanta ?? 0) < 0).length;
  if (suspended + inDebt === 0)
    return { tone: 'good', text: `${formatCount(rows.length)} tenants, none suspended, none in debt.` };
  return {
    tone: 'warn',
    text: `Of ${formatCount(rows.length)} tenants ${formatCount(suspended)} suspended, ${formatCount(inDebt)} in debt.`,
  };
}
