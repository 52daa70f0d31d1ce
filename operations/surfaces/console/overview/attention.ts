/** Attention items, most severe first, each with a link to the page that resolves it. */
import type { Node } from '#operations/clusters/index.ts';
import { formatCount, formatDuration, type Tone } from '#service-kit/pages/index.ts';
import { isAway, isNearlyFull } from '../clusters/clusters.page.ts';
import { lateSeconds } from '../developer/webhooks.routes.ts';
import type { OverviewFacts } from './overview-facts.ts';

export interface AttentionItem {
  tone: Extract<Tone, 'bad' | 'warn'>;
  title: string;
  /** Why it matters and what to do. */
  text: string;
  href: string;
}

const many = (count: number, one: string, more: string) =>
  count === 1 ? `One ${one}` : `${formatCount(count)} ${more}`;

export function findAttentionItems(facts: OverviewFacts, nowMs: number): AttentionItem[] {
  const found = [...ofServers(facts), ...ofNodes(facts, nowMs), ...ofMoney(facts), ...ofDelivery(facts)];
  return found.sort((a, b) => Number(b.tone === 'bad') - Number(a.tone === 'bad'));
}

function ofServers({ servers }: OverviewFacts): AttentionItem[] {
  const failed = servers.get('failed') ?? 0;
  if (failed === 0) return [];
  return [
    {
      tone: 'bad',
      title: many(failed, 'server failed to provision', 'servers failed to provision'),
      text: 'Customers cannot use or destroy these servers until an operator retries or resolves the provisioning.',
      href: '/console/servers/?status=failed',
    },
  ];
}

function ofNodes({ clusters, nodes, pools }: OverviewFacts, nowMs: number): AttentionItem[] {
  const away = nodes.filter((node) => isAway(node, nowMs));
  const without = clusters.filter(
    (cluster) => !nodes.some((node) => node.clusterId === cluster.id && node.isOpen),
  );
  const bare = clusters.filter((cluster) => !pools.some((pool) => pool.clusterId === cluster.id));
  const names = (all: readonly { name: string }[]) => all.map((each) => each.name).join(', ');
  const items: (AttentionItem | false)[] = [
    ...(away.length > awayMax ? [allAway(away)] : away.map(oneAway)),
    // Where there is none at all, the first steps say so.
    nodes.length > 0 &&
      without.length > 0 && {
        tone: 'warn',
        title: `No open node in ${names(without)}`,
        text: 'No server can be placed there. Orders for a location without capacity are refused.',
        href: '/console/clusters/',
      },
    pools.length > 0 &&
      bare.length > 0 && {
        tone: 'warn',
        title: `${names(bare)} has no addresses`,
        text: 'Only servers without a public address can be deployed there.',
        href: '/console/clusters/',
      },
    ...pools.filter(isNearlyFull).map(
      (pool): AttentionItem => ({
        tone: 'warn',
        title: `The addresses of ${pool.prefix} are nearly exhausted`,
        text: `${formatCount(pool.givenCount)} of ${formatCount(pool.size)} are allocated.`,
        href: '/console/clusters/',
      }),
    ),
  ];
  return items.filter((matter) => matter !== false);
}

/** More than these are told as one: then it is the way to them that is broken. */
const awayMax = 3;

const guestsOf = (count: number) => many(count, 'server runs', 'servers run');

const oneAway = (node: Node): AttentionItem => ({
  tone: 'bad',
  title: `${node.name} does not answer`,
  text: `${guestsOf(node.guestCount)} on it. ${node.lastError ?? 'No answer for one minute.'}`,
  href: `/console/clusters/nodes/${node.id}`,
});

const allAway = (nodes: readonly Node[]): AttentionItem => ({
  tone: 'bad',
  title: `${formatCount(nodes.length)} nodes do not answer`,
  text: `${guestsOf(nodes.reduce((sum, node) => sum + node.guestCount, 0))} on them. Check that operations runs and can reach them: ${nodes.map((node) => node.name).join(', ')}.`,
  href: '/console/clusters/',
});

function ofMoney({ waitingCharges, oldestChargeMs, customers }: OverviewFacts): AttentionItem[] {
  const { inDebt } = customers;
  const items: (AttentionItem | false)[] = [
    waitingCharges > 0 && {
      tone: oldestChargeMs > 3_600_000 ? 'bad' : 'warn',
      title: many(waitingCharges, 'card charge is unconfirmed', 'card charges are unconfirmed'),
      text: `Payment result unknown. The oldest was made ${formatDuration(oldestChargeMs / 1000)} ago.`,
      href: '/console/reconciliation/',
    },
    inDebt > 0 && {
      tone: 'warn',
      title: many(inDebt, 'customer is in debt', 'customers are in debt'),
      text: 'The next billing maintenance suspends them if they are still active.',
      href: '/console/customers/?status=debt',
    },
  ];
  return items.filter((matter) => matter !== false);
}

function ofDelivery({ webhooks }: OverviewFacts): AttentionItem[] {
  if (webhooks.oldestSeconds <= lateSeconds) return [];
  return [
    {
      tone: 'bad',
      title: `Webhooks are ${formatDuration(webhooks.oldestSeconds)} late`,
      text: 'Customers do not receive events. Check the operations log for “webhooks”.',
      href: '/console/webhooks/',
    },
  ];
}
