/** The page of a site's read tokens: make one, see which are used, revoke one. */

import type { FastifyRequest } from 'fastify';
import type { ReadToken } from '#monitor/read-tokens/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import {
  askButton,
  banner,
  type Content,
  codeBlock,
  field,
  form,
  formatTime,
  html,
  isoTime,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';

export interface ShownToken {
  made?: { token: string; expiresAtMs: number | null };
  refused?: { name: string; days: string; fault: string };
}

export interface ReadTokensPage {
  site: Site;
  tokens: readonly ReadToken[];
  shown: ShownToken;
  viewer: Viewer;
  /** Where programs reach the monitor. */
  baseUrl: string;
  request: FastifyRequest;
}

export function readTokensPage(page: ReadTokensPage): Content {
  const { site, tokens, shown, viewer } = page;
  const text =
    tokens.length === 0
      ? 'No program reads the traffic of this site.'
      : `${tokens.length} ${tokens.length === 1 ? 'token reads' : 'tokens read'} the traffic of this site.`;
  return [
    pageHeader({ title: 'Read tokens', state: { tone: 'info', text } }),
    shown.made && madeSection(shown.made, page.baseUrl),
    section(
      {
        title: 'Create a token',
        description:
          'For Grafana, Prometheus and your own programs. A token reads the traffic of this site and changes nothing.',
      },
      viewer.canChange
        ? form({ action: pathOf(site), csrfToken: viewer.csrfToken, submit: 'Create read token' }, [
            field({
              name: 'name',
              label: 'Name',
              hint: 'Which program uses it.',
              required: true,
              maxLength: 80,
              value: shown.refused?.name,
              error: shown.refused?.fault,
            }),
            field({
              name: 'days',
              label: 'Expires in (days)',
              hint: 'Leave blank for no expiry.',
              maxLength: 4,
              value: shown.refused?.days ?? '365',
            }),
          ])
        : 'Ask an operator to make one.',
    ),
    tokens.length > 0 && section({ title: 'Tokens' }, tokenTable(page)),
    html`<p>${link(`/sites/${site.id}/settings`, 'Site settings')}</p>`,
  ];
}

export const pathOf = (site: Site) => `/sites/${site.id}/read-tokens`;

function madeSection({ token, expiresAtMs }: NonNullable<ShownToken['made']>, baseUrl: string): Content {
  const end = expiresAtMs === null ? 'It has no end.' : `It ends ${formatTime(expiresAtMs)}.`;
  return [
    banner({ tone: 'good', title: 'This token is shown only now', text: end }),
    codeBlock({ label: 'Read token', code: token }),
    codeBlock({
      label: 'Applications of the last hour',
      code: `curl -H 'Authorization: Bearer ${token}' '${baseUrl}/api/v1/query?range=1h&by=application'`,
    }),
  ];
}

function tokenTable({ site, tokens, viewer, request }: ReadTokensPage): Content {
  const time = (ms: number | null, none: string) => (ms === null ? none : formatTime(ms));
  const columns: DataColumn<ReadToken>[] = [
    { key: 'name', header: 'Name', field: 'name', cell: (one) => one.name, value: (one) => one.name },
    {
      key: 'id',
      header: 'Begins with',
      kind: 'code',
      field: 'id',
      cell: (one) => `svcread_${one.id}`,
      value: (one) => one.id,
    },
    {
      key: 'made',
      header: 'Created',
      field: 'created',
      cell: (one) => time(one.createdAtMs, ''),
      value: (one) => isoTime(one.createdAtMs),
    },
    {
      key: 'ends',
      header: 'Ends',
      field: 'ends',
      cell: (one) => time(one.expiresAtMs, 'no end'),
      value: (one) => isoTime(one.expiresAtMs),
    },
    {
      key: 'used',
      header: 'Last used',
      field: 'last_used',
      cell: (one) => time(one.lastUsedAtMs, 'never'),
      value: (one) => isoTime(one.lastUsedAtMs),
    },
  ];
  const revoke: DataColumn<ReadToken> = {
    key: 'actions',
    header: 'Actions',
    kind: 'actions',
    cell: (one) =>
      askButton(
        {
          id: `revoke-${one.id}`,
          action: `${pathOf(site)}/${one.id}/revoke`,
          csrfToken: viewer.csrfToken,
          label: 'Revoke',
          title: `Revoke ${one.name}`,
        },
        'The program that uses it is refused from the next request on.',
      ),
  };
  return dataTable<ReadToken>(request, {
    id: 'tokens',
    caption: 'Read tokens',
    card: { line: ['made', 'used'] },
    rows: tokens,
    columns: viewer.canChange ? [...columns, revoke] : columns,
    empty: { title: 'No read tokens', text: 'Make one above.' },
  });
}
