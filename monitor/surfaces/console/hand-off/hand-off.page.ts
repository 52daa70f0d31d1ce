/** The page of a site's hand-off: its rules, its limit, and what was done. */
import type { FastifyRequest } from 'fastify';
import {
  type Action,
  addressesMaxMost,
  type ListedRule,
  ruleKinds,
  type SiteHandOff,
} from '#monitor/hand-off/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import {
  banner,
  type Content,
  field,
  form,
  formatCount,
  formatDuration,
  hiddenField,
  html,
  link,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import { actionTable } from './action-table.ts';
import type { Refused } from './form-body.ts';
import { peerSection } from './peer-table.ts';
import { kindNames, modeBadge, targetText } from './rule-text.ts';

export interface HandOffPage {
  site: Site;
  found: SiteHandOff;
  actions: readonly Action[];
  viewer: Viewer;
  nowMs: number;
  /** The refused form of the limit. */
  limit?: Refused | undefined;
}

const prefixesShown = 3;

export function handOffPage(request: FastifyRequest, page: HandOffPage): Content {
  const { site, actions, viewer, nowMs } = page;
  const path = `/sites/${site.id}/protection/hand-off`;
  return [
    pageHeader({ title: 'Hand-off', state: stateOf(page) }),
    warnings(actions),
    section(
      {
        id: 'rules',
        title: 'Rules',
        description:
          'What the monitor does by itself when an address is attacked. A new rule is off; it shows in a dry run what it would do before it can be switched on.',
        actions: viewer.canChange && [
          ...ruleKinds.map((kind) =>
            link(`${path}/rules/new?kind=${kind}`, `Add: ${kindNames[kind]}`, { kind: 'button' }),
          ),
        ],
      },
      ruleTable(request, page, path),
    ),
    limitSection(page, path),
    peerSection(request, page.found.sessions, path, nowMs),
    section(
      {
        id: 'actions',
        title: 'Actions',
        description: 'An action ends when the attack has recovered and the hold time has passed.',
      },
      refreshing(
        { id: 'action-list', url: path, everySeconds: 10 },
        actionTable(request, { siteId: site.id, actions, viewer, nowMs }),
      ),
    ),
  ];
}

const plural = (n: number, one: string, many: string) => `${formatCount(n)} ${n === 1 ? one : many}`;

function stateOf({ found, actions }: HandOffPage): { tone: Tone; text: string } {
  const on = found.rules.filter(({ mode }) => mode === 'on').length;
  const dry = found.rules.filter(({ mode }) => mode === 'dry_run').length;
  const addresses = new Set(
    actions
      .filter(({ isDryRun, endedAtMs }) => !isDryRun && endedAtMs === null)
      .map(({ address }) => address),
  ).size;
  const rehearsed = dry > 0 ? ` ${plural(dry, 'rule is a dry run', 'rules are dry runs')}.` : '';
  if (on === 0 && addresses === 0)
    return {
      tone: 'neutral',
      text: `No active rules: the monitor takes no action against attacks.${rehearsed}`,
    };
  return {
    tone: addresses > 0 ? 'warn' : 'good',
    text: `${on === 0 ? 'No active rules' : plural(on, 'active rule', 'active rules')}, ${plural(addresses, 'address has', 'addresses have')} actions.${rehearsed}`,
  };
}

function warnings(actions: readonly Action[]): Content {
  const stuck = actions.filter(({ state, attempts }) => state === 'ending' && attempts > 0);
  const waiting = actions.filter(({ state, lastError }) => state === 'waiting' && lastError !== null);
  return [
    stuck.length > 0 &&
      banner({
        tone: 'bad',
        title: `The end of ${plural(stuck.length, 'action', 'actions')} fails`,
        text: `${stuck[0]!.address}: ${stuck[0]!.lastError}. It is tried again. Undo it by hand where it is urgent, then stop retrying.`,
      }),
    waiting.length > 0 &&
      banner({
        tone: 'warn',
        title: `${plural(waiting.length, 'action waits', 'actions wait')}`,
        text: `${waiting[0]!.address}: ${waiting[0]!.lastError}.`,
      }),
  ];
}

function ruleTable(request: FastifyRequest, { found }: HandOffPage, path: string): Content {
  return dataTable<ListedRule>(request, {
    id: 'rules',
    caption: 'Rules',
    card: { line: ['mode', 'does'] },
    rows: found.rules,
    columns: [
      {
        key: 'name',
        header: 'Rule',
        cell: (row) => link(`${path}/rules/${row.id}`, row.name),
        value: (row) => row.name,
      },
      { key: 'mode', header: 'State', cell: (row) => modeBadge(row.mode), value: (row) => row.mode },
      {
        key: 'does',
        header: 'Does',
        kind: 'prose',
        cell: (row) => html`${kindNames[row.kind]}: ${targetText(row)}`,
        value: targetText,
      },
      {
        key: 'prefixes',
        header: 'Allowed addresses',
        kind: 'code',
        cell: (row) => {
          const more = row.prefixes.length - prefixesShown;
          return `${row.prefixes.slice(0, prefixesShown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
        },
        value: (row) => row.prefixes.join(' '),
      },
      {
        key: 'hold',
        header: 'Hold time',
        kind: 'figure',
        field: 'hold_seconds',
        cell: (row) => formatDuration(row.holdSeconds),
        value: (row) => row.holdSeconds,
      },
      {
        key: 'open',
        header: 'Actions now',
        kind: 'figure',
        field: 'open_actions',
        cell: (row) => formatCount(row.openActions),
        value: (row) => row.openActions,
      },
    ],
    empty: {
      title: 'No rules yet',
      text: 'A rule can start a program with the arguments of FastNetMon, call a webhook, or announce a blackhole or filters by BGP.',
    },
  });
}

function limitSection({ found, viewer, limit }: HandOffPage, path: string): Content {
  const { addressesMax, revision } = found.limit;
  const options = {
    id: 'limit',
    title: 'Limit',
    description:
      'How many addresses of this site may have actions at once. Others wait. Dry runs are counted apart.',
  };
  if (!viewer.canChange) return section(options, html`<p>${formatCount(addressesMax)} addresses</p>`);
  return section(
    options,
    form(
      {
        action: `${path}/limit`,
        csrfToken: viewer.csrfToken,
        submit: 'Save limit',
        submitKind: 'button',
        layout: 'inline',
        error: limit && Object.keys(limit.fields).length === 0 ? limit.message : undefined,
      },
      [
        hiddenField('revision', limit ? String(limit.typed.revision) : revision),
        field({
          kind: 'number',
          name: 'addresses_max',
          label: 'Addresses at once',
          required: true,
          min: 1,
          max: addressesMaxMost,
          value: limit?.typed.addresses_max ?? addressesMax,
          error: limit?.fields.addresses_max,
        }),
      ],
    ),
  );
}
