/** `/client/developer/`: the API keys of the signed-in person and of the organizations they own. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Membership, Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { KeySummary } from '#operations/views/key-store.ts';
import { defaultDays, expiryOf } from '#service-kit/credentials/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  age,
  badge,
  banner,
  type Content,
  cellColumn,
  code,
  codeColumn,
  drawer,
  field,
  fieldGroup,
  form,
  formatDuration,
  formatTime,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
  sendPage,
  shownOnce,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { ageColumn, countColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { developerTabs } from './usage.routes.ts';

const Id = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const KeyForm = Type.Object({
  name: Type.String({ maxLength: 200 }),
  scope: Type.Union([Type.Literal('read'), Type.Literal('full')]),
  organization: Type.Optional(Type.String()),
  tenants: Type.Optional(Type.Union([Id, Type.Array(Id)])),
  days: Type.Optional(Type.String()),
});
const Ids = Type.Optional(Type.Union([Id, Type.Array(Id)]));
const NarrowForm = Type.Object({ key_id: Type.String({ maxLength: 64 }), tenants: Ids });
const RevokeForm = Type.Object({ key_id: Type.String({ maxLength: 64 }) });

export function registerDeveloper(app: App, deps: Features): void {
  app.get('/developer/', async (request, reply) => show(deps, request.visitor!, reply, 200, {}));

  // The token is in the answer to this very request: a redirect would have to keep it somewhere (API-2.1.6).
  app.post('/developer/', { schema: { body: KeyForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { name, scope } = request.body;
    const given = { ...request.body, tenants: [request.body.tenants ?? []].flat() };
    const refuse = (status: number, fault: { error: string } | { daysError: string }) =>
      show(deps, visitor, reply, status, { ...fault, given });
    const owned = visitor.actor.ownedOrganizationIds;
    const organizationId = request.body.organization ? Number(request.body.organization) : owned[0];
    if (organizationId === undefined || !owned.includes(organizationId)) {
      throw new HttpError(403, {
        code: 'forbidden',
        message: 'Only the owner of the organization may create keys. Ask the owner for one.',
      });
    }
    const expiresAt = expiryOf(request.body.days, deps.clock.nowMs());
    if (expiresAt === undefined)
      return refuse(422, { daysError: 'Give a whole number of days, or nothing.' });
    const tenants = given.tenants.map(Number);
    try {
      const { token } = await deps.apiKeys.issueKey(visitor.actor, {
        organizationId,
        personId: visitor.actor.personId,
        name,
        scope,
        tenantIds: tenants.length === 0 ? null : tenants,
        expiresAt,
      });
      return show(deps, visitor, reply, 200, { token });
    } catch (error) {
      if (error instanceof CodedError && error.code.startsWith('api_keys.'))
        return refuse(422, { error: error.message });
      throw error;
    }
  });

  // Like a created one, the new token is in this answer alone.
  app.post('/developer/rotate', { schema: { body: RevokeForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    try {
      const { token } = await deps.apiKeys.rotateKey(visitor.actor, request.body.key_id);
      return show(deps, visitor, reply, 200, { token });
    } catch (error) {
      if (hasCode(error, 'api_keys.not_found')) throw noSuchPage();
      if (hasCode(error, 'api_keys.limit'))
        return show(deps, visitor, reply, 422, { error: (error as Error).message });
      throw error;
    }
  });

  app.post('/developer/narrow', { schema: { body: NarrowForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const tenantIds = [request.body.tenants ?? []].flat().map(Number);
    if (tenantIds.length === 0)
      return show(deps, visitor, reply, 422, { error: 'Select at least one workspace, or revoke the key.' });
    if (!(await deps.apiKeys.narrowKey(visitor.actor, request.body.key_id, tenantIds))) throw noSuchPage();
    return reply.redirect('/client/developer/', 303);
  });

  app.post('/developer/revoke', { schema: { body: RevokeForm } }, async (request, reply) => {
    const isRevoked = await deps.apiKeys.revokeKey(request.visitor!.actor, request.body.key_id);
    if (!isRevoked) throw noSuchPage();
    return reply.redirect('/client/developer/', 303);
  });
}

async function show(
  deps: Features,
  visitor: Visitor,
  reply: FastifyReply,
  status: number,
  state: DeveloperState,
): Promise<FastifyReply> {
  const page = developerPage({ visitor, ...(await readDeveloper(deps, visitor)), ...state });
  return sendPage(reply, page, status);
}

async function readDeveloper({ apiKeys, accounts, metering, clock }: Features, { actor }: Visitor) {
  const { memberships, ...read } = await readAll({
    keys: apiKeys.listKeys(actor),
    memberships: accounts.membershipsOf(actor.personId),
    tenants: accounts.findTenants(actor.tenantIds),
  });
  return {
    ...read,
    // This month's requests, by key id.
    counts: await metering.countOfKeys(read.keys.map((key) => key.keyId)),
    // Those whose owner the visitor is.
    organizations: memberships.filter((each) => each.role === 'owner'),
    nowMs: clock.nowMs(),
  };
}

interface DeveloperState {
  /** A token that was made by this very request: the only page that shows it. */
  token?: string;
  /** Why a form was refused. */
  error?: string;
  daysError?: string;
  /** What it held. */
  given?: GivenKey;
}

interface DeveloperPageOptions extends Awaited<ReturnType<typeof readDeveloper>>, DeveloperState {
  visitor: Visitor;
}

/** The form of a new key as it was sent. */
interface GivenKey {
  name: string;
  scope: 'read' | 'full';
  organization?: string;
  tenants: readonly string[];
  days?: string;
}

function developerPage(options: DeveloperPageOptions): Html {
  const { visitor, token, organizations } = options;
  return portalFrame({ visitor, title: 'API keys', current: 'developer' }, [
    pageHeader({
      title: 'API keys',
      state: stateOf(options.keys, organizations.length > 0),
      actions: link('/docs/api/', 'API reference', { kind: 'button' }),
    }),
    developerTabs('keys'),
    token !== undefined && shownOnce('Key', token, 'We store only its digest and cannot show it again.'),
    keysTable(options),
    organizations.length > 0
      ? createSection(options)
      : banner({
          tone: 'info',
          title: 'Only the owner of the organization creates keys',
          text: 'Ask the owner for a key. Keys that act for you are listed above.',
        }),
  ]);
}

function stateOf(keys: readonly KeySummary[], mayCreate: boolean): { tone: Tone; text: string } {
  const active = keys.filter((key) => key.isActive);
  if (active.length === 0) {
    const next = mayCreate ? 'Create one' : 'Ask the owner for one';
    return { tone: 'neutral', text: `No active keys. ${next} to call the API.` };
  }
  const full = active.filter((key) => key.scope === 'full').length;
  const count = active.length === 1 ? 'One active key' : `${active.length} active keys`;
  return { tone: 'good', text: `${count}, ${full === 0 ? 'none' : full} with write access.` };
}

function keysTable({ keys, counts, visitor, tenants, nowMs }: DeveloperPageOptions): Html {
  return table<KeySummary>({
    caption: 'API keys',
    card: { line: ['state'] },
    columns: [
      cellColumn('name', 'Name', (key) => key.name),
      codeColumn('id', 'Key', (key) => code(`svc_${key.keyId}_…`)),
      cellColumn('state', 'State', (key) => [stateBadge(key, nowMs), ` ${key.scope}`]),
      cellColumn('tenants', 'Workspaces', (key) => key.tenantNames?.join(', ') ?? 'all'),
      cellColumn('person', 'Acts for', (key) => key.personName),
      countColumn('count', 'This month', (key) => counts.get(key.keyId) ?? 0),
      ageColumn('used', 'Last used', (key) => key.lastUsedAt?.getTime(), nowMs),
      cellColumn('expires', 'Expires', (key) => age(key.expiresAt?.getTime(), nowMs)),
      actionsColumn('revoke', (key) =>
        key.isActive
          ? [narrowDrawer(key, visitor, tenants), rotateDrawer(key, visitor), revokeDrawer(key, visitor)]
          : '',
      ),
    ],
    rows: keys,
    empty: {
      title: 'No keys yet',
      text: 'A key lets a program call the API, for example to deploy servers, start and stop them, and read their state.',
    },
  });
}

/** Rotating is the owner's, as creating is; a member's left-over key can only be revoked. */
function rotateDrawer(key: KeySummary, visitor: Visitor): Content {
  const isMine = key.personId === visitor.actor.personId;
  if (!isMine || !visitor.actor.ownedOrganizationIds.includes(key.organizationId)) return '';
  return drawer({ id: `rotate-${key.keyId}`, open: 'Rotate', title: `Rotate ${key.name}` }, [
    banner({
      tone: 'info',
      title: 'A new key replaces it',
      text: 'It has the same permissions. Its token is shown once, on the next page. The old key works for 24 hours more, so you can update your programs.',
    }),
    actionButton({
      action: '/client/developer/rotate',
      csrfToken: visitor.csrfToken,
      label: 'Rotate this key',
      kind: 'primary',
      fields: { key_id: key.keyId },
    }),
  ]);
}

/** Workspaces can be removed from a key and never added: its holder must not gain permissions. */
function narrowDrawer(key: KeySummary, visitor: Visitor, tenants: readonly Tenant[]): Content {
  const reached = tenants.filter(
    (tenant) => tenant.organizationId === key.organizationId && (key.tenantIds?.includes(tenant.id) ?? true),
  );
  if (reached.length < 2) return '';
  return drawer({ id: `narrow-${key.keyId}`, open: 'Limit', title: `Limit ${key.name}` }, [
    banner({
      tone: 'info',
      title: 'The key keeps the selected workspaces',
      text: 'From its next call on, the key has no access to other workspaces, including new ones. You cannot undo this. Create another key instead.',
    }),
    form({ action: '/client/developer/narrow', csrfToken: visitor.csrfToken, submit: 'Limit this key' }, [
      hiddenField('key_id', key.keyId),
      html`<fieldset class="field"><legend>Workspaces</legend>${reached.map((tenant) => {
        const id = `narrow-${key.keyId}-${tenant.id}`;
        return html`<div class="field field-checkbox"><input type="checkbox" id="${id}" name="tenants" value="${tenant.id}" checked><div><label for="${id}">${tenant.name}</label></div></div>`;
      })}</fieldset>`,
    ]),
  ]);
}

/** Revoking can't be undone, so it takes a second look; it works without JavaScript. */
function revokeDrawer(key: KeySummary, visitor: Visitor): Html {
  const used =
    key.lastUsedAt === null
      ? 'It was never used.'
      : `It was last used at ${formatTime(key.lastUsedAt.getTime())}.`;
  return drawer({ id: `revoke-${key.keyId}`, open: 'Revoke', title: `Revoke ${key.name}` }, [
    banner({
      tone: 'warn',
      title: `Programs that use “${key.name}” are refused from their next call on`,
      text: `${used} A revoked key can't be brought back; create another one first if something still needs it.`,
    }),
    actionButton({
      action: '/client/developer/revoke',
      csrfToken: visitor.csrfToken,
      label: 'Revoke this key',
      kind: 'danger',
      fields: { key_id: key.keyId },
    }),
  ]);
}

function stateBadge(key: KeySummary, nowMs: number): Html {
  if (key.isActive && key.replacedBy !== null && key.expiresAt !== null)
    return badge(
      'warn',
      `replaced, old key ends in ${formatDuration((key.expiresAt.getTime() - nowMs) / 1000)}`,
    );
  if (key.isActive) return badge('good', 'active');
  return key.revokedAt === null ? badge('neutral', 'expired') : badge('neutral', 'revoked');
}

function createSection(options: DeveloperPageOptions): Html {
  const { visitor, organizations, tenants, error, given } = options;
  const first = organizations[0]!;
  const organizationField =
    organizations.length === 1
      ? hiddenField('organization', first.organizationId)
      : field({
          kind: 'select',
          name: 'organization',
          label: 'Organization',
          value: given?.organization ?? String(first.organizationId),
          options: organizations.map((each) => ({
            value: String(each.organizationId),
            label: each.organizationName,
          })),
        });
  return section(
    { title: 'Create a key', id: 'create' },
    form({ action: '/client/developer/', csrfToken: visitor.csrfToken, submit: 'Create key', error }, [
      organizationField,
      field({
        name: 'name',
        label: 'Name',
        hint: 'Its purpose, for example “deploy from CI”.',
        required: true,
        maxLength: 100,
        value: given?.name ?? '',
      }),
      field({
        kind: 'select',
        name: 'scope',
        label: 'Scope',
        value: given?.scope ?? 'read',
        options: [
          { value: 'read', label: 'Read: read servers' },
          { value: 'full', label: 'Full: also deploy, change and destroy' },
        ],
      }),
      workspaceChoice(tenants, organizations, given?.tenants ?? []),
      field({
        kind: 'number',
        name: 'days',
        label: 'Expires after days',
        hint: 'Default: 365. Leave empty for a key that does not expire.',
        min: 1,
        max: 9999,
        value: given === undefined ? defaultDays : given.days,
        error: options.daysError,
      }),
    ]),
  );
}

function workspaceChoice(
  tenants: readonly Tenant[],
  organizations: readonly Membership[],
  chosen: readonly string[],
): Content {
  const owned = tenants.filter((tenant) =>
    organizations.some((each) => each.organizationId === tenant.organizationId),
  );
  if (owned.length < 2) return '';
  return fieldGroup(
    { legend: 'Workspaces', hint: 'None selected: all workspaces of the organization, including new ones.' },
    owned.map((tenant) =>
      field({
        kind: 'checkbox',
        id: `tenant-${tenant.id}`,
        name: 'tenants',
        label: tenant.name,
        value: String(tenant.id),
        checked: chosen.includes(String(tenant.id)),
      }),
    ),
  );
}
