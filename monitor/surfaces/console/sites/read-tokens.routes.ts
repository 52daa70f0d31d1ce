/** `/sites/{id}/read-tokens`: tokens with which programs read the traffic of a site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { ReadToken } from '#monitor/read-tokens/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
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
  toast,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';

export function registerReadTokens(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({ saved: Type.Optional(Type.String()) });
  app.get(
    '/sites/:siteId/read-tokens',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return show(deps, reply, site, {}, request.query.saved !== undefined);
    },
  );

  const Body = Type.Object({ name: Type.String({ maxLength: 200 }), days: Type.String({ maxLength: 20 }) });
  app.post(
    '/sites/:siteId/read-tokens',
    { schema: { params: SiteParams, body: Body } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      try {
        const made = await deps.readTokens.create(viewerOf(request).actor, site.id, request.body);
        // Rendered here instead of a redirect: only this answer contains the token.
        return await show(deps, reply, site, { made });
      } catch (error) {
        const fault = faultText(error, 'read_tokens.invalid');
        return show(deps, reply, site, { refused: { ...request.body, fault } });
      }
    },
  );

  const Token = Type.Object({
    ...SiteParams.properties,
    tokenId: Type.String({ pattern: '^[a-z0-9]{16}$' }),
  });
  app.post(
    '/sites/:siteId/read-tokens/:tokenId/revoke',
    { schema: { params: Token } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      if (!(await deps.readTokens.revoke(viewerOf(request).actor, site.id, request.params.tokenId)))
        throw notFound('This site has no such token.');
      return reply.redirect(`${pathOf(site)}?saved=1`, 303);
    },
  );
}

async function show(deps: ConsoleDeps, reply: FastifyReply, site: Site, shown: ShownToken, isSaved = false) {
  const { request } = reply;
  const tokens = await deps.readTokens.list(site.id);
  const baseUrl = deps.monitorUrl() ?? `${request.protocol}://${request.host}`;
  const content = readTokensPage({ site, tokens, shown, viewer: viewerOf(request), baseUrl, request });
  return sendConsolePage(
    reply,
    {
      title: 'Read tokens',
      site: { site, page: 'settings' },
      status: shown.refused ? 422 : 200,
      ...(isSaved && { toast: toast('good', 'Saved.') }),
    },
    content,
  );
}

interface ShownToken {
  made?: { token: string; expiresAtMs: number | null };
  refused?: { name: string; days: string; fault: string };
}

interface ReadTokensPage {
  site: Site;
  tokens: readonly ReadToken[];
  shown: ShownToken;
  viewer: Viewer;
  /** Where programs reach the monitor. */
  baseUrl: string;
  request: FastifyRequest;
}

/** The page of a site's read tokens: make one, see which are used, revoke one. */
function readTokensPage(page: ReadTokensPage): Content {
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

const pathOf = (site: Site) => `/sites/${site.id}/read-tokens`;

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
  const time = (
    [key, header, name]: readonly [key: string, header: string, field: string],
    read: (one: ReadToken) => number | null,
    none = '',
  ): DataColumn<ReadToken> => ({
    ...{ key, header, field: name, value: (one) => isoTime(read(one)) },
    cell: (one) => {
      const ms = read(one);
      return ms === null ? none : formatTime(ms);
    },
  });
  const columns: DataColumn<ReadToken>[] = [
    { key: 'name', header: 'Name', field: 'name', cell: (one) => one.name, value: (one) => one.name },
    textColumn('id', 'Begins with', (one) => one.id, {
      field: 'id',
      kind: 'code',
      show: (id) => `svcread_${id}`,
    }),
    time(['made', 'Created', 'created'], (one) => one.createdAtMs),
    time(['ends', 'Ends', 'ends'], (one) => one.expiresAtMs, 'no end'),
    time(['used', 'Last used', 'last_used'], (one) => one.lastUsedAtMs, 'never'),
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
