/** What stands below the list of all servers: credit, the pool of the month, and what was done last. */
import type { Tenant } from '#operations/accounts/index.ts';
import type { AccountBandwidth, Bandwidth } from '#operations/bandwidth/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import { type StoredEntry, sentenceOf } from '#service-kit/audit/index.ts';
import {
  age,
  type Content,
  formatBytes,
  formatMoneyAbout,
  html,
  link,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { type ActivityDeps, readLatestActivity } from '../account/activity.routes.ts';
import type { Visitor } from '../guard.ts';

export interface AccountFigures {
  workspaces: readonly ({ tenant: Tenant; balanceQuanta: number } & Pick<
    AccountBandwidth,
    'pool' | 'overage'
  >)[];
  /** The newest first. */
  activity: readonly StoredEntry[];
}

/** Workspaces with figures; the page of billing has all. */
const workspacesShown = 3;
const activityShown = 5;

export async function readAccountFigures(
  deps: { billing: Pick<Billing, 'balanceOf'>; bandwidth: Bandwidth } & ActivityDeps,
  visitor: Visitor,
  tenants: readonly Tenant[],
): Promise<AccountFigures> {
  const { actor } = visitor;
  const [workspaces, activity] = await Promise.all([
    Promise.all(
      tenants.slice(0, workspacesShown).map(async (tenant) => {
        const [balanceQuanta, { pool, overage }] = await Promise.all([
          deps.billing.balanceOf(actor, tenant.id),
          deps.bandwidth.readAccount(actor, { tenantId: tenant.id, openedAt: tenant.createdAt }),
        ]);
        return { tenant, balanceQuanta, pool, overage };
      }),
    ),
    readLatestActivity(deps, visitor),
  ]);
  return { workspaces, activity };
}

export function accountFigures({ workspaces, activity }: AccountFigures, nowMs: number): Content {
  const nameOf = ({ name }: Tenant) => (workspaces.length > 1 ? `${name}: ` : '');
  const figures = workspaces.flatMap(({ tenant, balanceQuanta, pool, overage }) => [
    stat({
      label: `${nameOf(tenant)}Credit`,
      value: formatMoneyAbout(balanceQuanta, tenant.currency),
      ...(balanceQuanta < 0 && { tone: 'bad' as const }),
      source: 'current ledger balance',
      href: `/client/billing/?tenant=${tenant.id}`,
    }),
    stat({
      label: `${nameOf(tenant)}Bandwidth pool this month`,
      value: `${formatBytes(pool.usedBytes)} of ${formatBytes(pool.allowanceBytes)}`,
      source: poolOutlook(pool, overage, tenant),
      ...(pool.usedBytes > pool.allowanceBytes && { tone: 'warn' as const }),
    }),
  ]);
  return [
    stats(...figures),
    activity.length > 0 &&
      section(
        {
          title: 'Latest activity',
          id: 'activity',
          actions: link('/client/activity/', 'All activity', { kind: 'button' }),
        },
        html`<ul class="plain-list">${activity
          .slice(0, activityShown)
          .map(
            (entry) =>
              html`<li>${sentenceOf(entry)} <span class="hint">${age(entry.occurredAtMs, nowMs)}</span></li>`,
          )}</ul>`,
      ),
  ];
}

/** What the month comes to, in bytes and, where what is beyond the pool costs something, in money. */
function poolOutlook(
  pool: AccountBandwidth['pool'],
  overage: AccountBandwidth['overage'],
  { currency }: Tenant,
): string | undefined {
  const expected =
    pool.projection === null ? [] : [`about ${formatBytes(pool.projection.bytes)} by the end of the month`];
  const quanta = overage.projectedQuanta ?? overage.quanta;
  const cost = quanta === 0 ? [] : [`${formatMoneyAbout(quanta, currency)} for what is beyond the pool`];
  const parts = [...expected, ...cost];
  return parts.length === 0 ? undefined : parts.join(', ');
}
