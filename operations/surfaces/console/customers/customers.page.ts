/** `/console/customers/`: every tenant with its state and what it has. */
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
  withQuery,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { customerTrafficColumns, type ListTraffic } from '../traffic-columns.ts';

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

export interface CustomersPageOptions {
  staff: Staff;
  all: readonly CustomerRow[];
  /** Those of this page. */
  rows: readonly CustomerRow[];
  fittingCount: number;
  filter: CustomersFilter;
  traffic: ListTraffic;
  page: number;
  hasMore: boolean;
}

const path = '/console/customers/';

export function customersPage(options: CustomersPageOptions): Html {
  const { staff, all, rows, filter } = options;
  return consoleFrame(
    { staff, title: 'Customers', current: 'customers', breadcrumb: [{ label: 'Customers' }] },
    [
      pageHeader({
        title: 'Customers',
        state: stateOf(all),
        actions: staff.canChange && link(`${path}new`, 'New customer', { kind: 'primary' }),
      }),
      table<CustomerRow>({
        caption: 'Customers',
        card: { line: ['status', 'servers', 'credit'] },
        filter: form(
          {
            action: path,
            method: 'get',
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
            header: 'Customer',
            cell: ({ tenant }) => link(`/console/customers/${tenant.id}`, tenant.name),
          },
          {
            key: 'organization',
            header: 'Organization',
            cell: ({ tenant }) => (tenant.organizationName === tenant.name ? '' : tenant.organizationName),
          },
          { key: 'id', header: 'Id', kind: 'code', cell: ({ tenant }) => code(String(tenant.id)) },
          {
            key: 'status',
            header: 'Status',
            cell: ({ tenant }) => [
              badge(statusTones[tenant.status], tenant.status.toLowerCase()),
              !tenant.hasBillingProfile && [' ', badge('warn', 'no billing profile')],
            ],
          },
          { key: 'servers', header: 'Servers', kind: 'figure', cell: (row) => formatCount(row.serverCount) },
          ...customerTrafficColumns<CustomerRow>(options.traffic, (row) => row.tenant.id),
          {
            key: 'credit',
            header: 'Credit',
            kind: 'figure',
            cell: (row) => formatMoney(row.balanceQuanta, row.tenant.currency),
          },
          {
            key: 'created',
            header: 'Since',
            cell: ({ tenant }) => formatTime(tenant.createdAt.getTime(), 'day'),
          },
        ],
        rows,
        rowTone: (row) => ((row.balanceQuanta ?? 0) < 0 ? 'warn' : undefined),
        pages: pagesOf(options),
        empty: emptyOf(options),
      }),
    ],
  );
}

function emptyOf({ staff, all }: CustomersPageOptions) {
  if (all.length > 0)
    return { title: 'No customer matches', text: 'Names, organizations and ids are searched.' };
  const text = 'A customer is an organization with an owner who signs in, and a workspace that is invoiced.';
  const action = { label: 'Create the first customer', href: `${path}new` };
  return { title: 'No customers yet', text, ...(staff.canChange ? { action } : {}) };
}

function pagesOf({ rows, fittingCount, filter, page, hasMore }: CustomersPageOptions) {
  const here = withQuery(path, { text: filter.text || undefined, status: filter.status || undefined });
  return {
    label: `${formatCount(rows.length)} of ${formatCount(fittingCount)}`,
    previousHref: page > 1 ? withQuery(here, { page: page === 2 ? undefined : page - 1 }) : undefined,
    nextHref: hasMore ? withQuery(here, { page: page + 1 }) : undefined,
  };
}

function stateOf(rows: readonly CustomerRow[]): { tone: Tone; text: string } {
  if (rows.length === 0) return { tone: 'neutral', text: 'No customers yet.' };
  const all = rows.length === 1 ? 'One customer' : `${formatCount(rows.length)} customers`;
  const suspended = rows.filter((row) => row.tenant.status === 'SUSPENDED').length;
  const inDebt = rows.filter((row) => (row.balanceQuanta ?? 0) < 0).length;
  if (suspended + inDebt === 0) return { tone: 'good', text: `${all}, none suspended, none in debt.` };
  return {
    tone: 'warn',
    text: `${all}, ${suspended === 0 ? 'none' : formatCount(suspended)} suspended, ${inDebt === 0 ? 'none' : formatCount(inDebt)} in debt.`,
  };
}
