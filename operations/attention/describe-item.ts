/** Attention items in words, the same on pages and in mails, each with the path of the page that resolves it. */
import type { Node } from '#operations/clusters/index.ts';
import { formatCount, formatDuration } from '#service-kit/pages/index.ts';
import { measuredOfSystem, systemKindNames } from '#service-kit/system/index.ts';
import type { AttentionItem } from './item.ts';

export interface ItemText {
  title: string;
  /** Why it matters and what to do. */
  text: string;
  href: string;
}

const many = (count: number, one: string, more: string) =>
  count === 1 ? `One ${one}` : `${formatCount(count)} ${more}`;

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`;

const namesOf = (all: readonly { name: string }[]) => all.map((each) => each.name).join(', ');

export function describeItem(item: AttentionItem): ItemText {
  switch (item.kind) {
    case 'attacks':
      return {
        title: many(item.count, 'attack is active', 'attacks are active'),
        text: `${many(item.servers, 'server is', 'servers are')} concerned. Customers are told according to their settings.`,
        href: '/console/attacks/?state=open',
      };
    case 'attacks_stale':
      return {
        title: `No recent data on ${item.count === 1 ? 'one attack' : `${formatCount(item.count)} attacks`}`,
        text: 'The monitor or its sensors are silent, so whether the attack goes on is unknown.',
        href: '/console/attacks/?state=stale',
      };
    case 'servers_failed':
      return {
        title: many(item.count, 'server failed to provision', 'servers failed to provision'),
        text: 'Customers cannot use or destroy these servers until an operator retries or resolves the provisioning.',
        href: '/console/servers/?status=failed',
      };
    case 'nodes_away':
      return item.nodes.length === 1 ? oneAway(item.nodes[0]!) : allAway(item.nodes);
    case 'no_open_node':
      return {
        title: `No open node in ${namesOf(item.clusters)}`,
        text: 'No server can be placed there. Orders for a location without capacity are refused.',
        href: '/console/clusters/',
      };
    case 'no_addresses':
      return {
        title: `${namesOf(item.clusters)} has no addresses`,
        text: 'Only servers without a public address can be deployed there.',
        href: '/console/clusters/',
      };
    case 'pool_nearly_full':
      return {
        title: `The addresses of ${item.pool.prefix} are nearly exhausted`,
        text: `${formatCount(item.pool.givenCount)} of ${formatCount(item.pool.size)} are allocated.`,
        href: '/console/clusters/',
      };
    case 'drift':
      return {
        title: `${item.node.name} differs from what is sold`,
        text: `${many(item.count, 'difference', 'differences')}: guests that are missing, belong to no server, or have other sizes or network interfaces.`,
        href: `/console/clusters/nodes/${item.node.id}#differences`,
      };
    case 'charges_unconfirmed':
      return {
        title: many(item.count, 'card charge is unconfirmed', 'card charges are unconfirmed'),
        text: `Payment result unknown. The oldest was made ${formatDuration(item.oldestMs / 1000)} ago.`,
        href: '/console/reconciliation/',
      };
    case 'customers_in_debt':
      return {
        title: many(item.count, 'customer is in debt', 'customers are in debt'),
        text: 'The next billing maintenance suspends them if they are still active.',
        href: '/console/customers/?status=debt',
      };
    case 'findings_critical':
      return {
        title: many(item.count, 'critical potential vulnerability', 'critical potential vulnerabilities'),
        text: 'Software that scans found on servers matches records that are rated critical. Customers see those of their own servers.',
        href: '/console/findings/?severity=critical',
      };
    case 'spoofing':
      return {
        title: many(item.servers.length, 'server sends spoofed traffic', 'servers send spoofed traffic'),
        text: 'The hypervisor drops it. Often an intruder controls such a server.',
        href: item.servers.length === 1 ? `/console/servers/${item.servers[0]}#guard` : '/console/servers/',
      };
    case 'webhooks_late':
      return {
        title: `Webhooks are ${formatDuration(item.seconds)} late`,
        text: 'Customers do not receive events. Check the operations log for “webhooks”.',
        href: '/console/webhooks/',
      };
    case 'system':
      return {
        title: `${systemKindNames[item.subject.kind]}: ${item.subject.name}`,
        text: `${sentence(measuredOfSystem(item.subject.kind, item.subject.details))}`,
        href: '/console/system/',
      };
    case 'monitor_silent':
      return {
        title: `The monitor of ${item.project.name} is silent`,
        text: `Its last call was ${formatDuration(item.seconds)} ago. Customers get no new traffic, attacks or scans until it calls again.`,
        href: `/console/projects/${item.project.id}`,
      };
    case 'limits_apart':
      return {
        title: 'Limits are not shared',
        text: `${item.why} A key may make its requests once at each process. Check the store of SVC_LIMITS_URL.`,
        href: '/console/system/',
      };
  }
}

const guestsOf = (count: number) => many(count, 'server runs', 'servers run');

const oneAway = (node: Node): ItemText => ({
  title: `${node.name} does not answer`,
  text: `${guestsOf(node.guestCount)} on it. ${node.lastError ?? 'No answer for one minute.'}`,
  href: `/console/clusters/nodes/${node.id}`,
});

const allAway = (nodes: readonly Node[]): ItemText => ({
  title: `${formatCount(nodes.length)} nodes do not answer`,
  text: `${guestsOf(nodes.reduce((sum, node) => sum + node.guestCount, 0))} on them. Check that operations runs and can reach them: ${namesOf(nodes)}.`,
  href: '/console/clusters/',
});
