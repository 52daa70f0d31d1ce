/** `/client/developer/ssh-keys/`: the SSH keys of the person's workspaces, by the same operations that the API uses. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionsColumn,
  askButton,
  type Column,
  cellColumn,
  code,
  codeColumn,
  formatTime,
  type Html,
  inputForm,
  pageHeader,
  section,
  sendPage,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { portalFrame, workspaceField } from '../frame.ts';
import { Done, type Visitor } from '../guard.ts';
import { type FormFault, faultOf } from '../networks/network-frame.ts';
import { developerTabs } from './usage.routes.ts';
export const sshKeysPath = '/client/developer/ssh-keys/';
const Text = Type.String({ maxLength: 10_000 });
const AddForm = Type.Object({ name: Text, public_key: Text, tenant: Type.Optional(Text) });
const DeleteForm = Type.Object({ key: Text, tenant: Text });
/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes = { added: 'The SSH key was added.', deleted: 'The SSH key was deleted.' };

interface PageState {
  done?: string | undefined;
  /** What was typed, and what was wrong with it. */
  draft?: { name: string; public_key: string; tenant?: string };
  fault?: FormFault;
}

export function registerSshKeys(app: App, deps: Features): void {
  app.get('/developer/ssh-keys/', { schema: { querystring: Done } }, async (request, reply) =>
    show(deps, request.visitor!, reply, request.query),
  );

  app.post('/developer/ssh-keys/', { schema: { body: AddForm } }, async (request, reply) => {
    const visitor = request.visitor!;
    const { name, public_key: publicKey, tenant } = request.body;
    const tenantId = tenant === undefined ? visitor.actor.tenantIds[0] : Number(tenant);
    if (tenantId === undefined) throw noSuchPage();
    const input = { tenantId, name: name.trim(), publicKey };
    const fault = await faultOf(() => deps.sshKeys.addKey(visitor.actor, input));
    if (fault !== null) return show(deps, visitor, reply, { draft: request.body, fault });
    return reply.redirect(`${sshKeysPath}?done=added`, 303);
  });

  app.post('/developer/ssh-keys/delete', { schema: { body: DeleteForm } }, async (request, reply) => {
    const { key, tenant } = request.body;
    if (!/^[1-9]\d{0,14}$/.test(key) || !/^[1-9]\d{0,14}$/.test(tenant)) throw noSuchPage();
    const named = { tenantId: Number(tenant), id: Number(key) };
    await faultOf(() => deps.sshKeys.deleteKey(request.visitor!.actor, named));
    return reply.redirect(`${sshKeysPath}?done=deleted`, 303);
  });
}

async function show(deps: Features, visitor: Visitor, reply: FastifyReply, state: PageState) {
  const { actor } = visitor;
  const [tenants, keys] = await Promise.all([
    deps.accounts.findTenants(actor.tenantIds),
    Promise.all(actor.tenantIds.map((tenantId) => deps.sshKeys.listKeys(actor, tenantId))),
  ]);
  const status = state.fault === undefined ? 200 : 422;
  const page = portalFrame(
    { visitor, title: 'SSH keys', current: 'developer', toast: toastOf(outcomes, state.done) },
    [
      pageHeader({ title: 'SSH keys', state: stateOf(keys.flat()) }),
      developerTabs('ssh-keys'),
      keyTable(visitor, tenants, keys.flat()),
      addSection(visitor, tenants, state),
    ],
  );
  return sendPage(reply, page, status);
}

function stateOf(keys: readonly SshKey[]) {
  if (keys.length === 0) return { tone: 'neutral', text: 'No SSH keys yet.' } as const;
  const text = `${keys.length === 1 ? '1 key' : `${keys.length} keys`} for new servers.`;
  return { tone: 'info', text } as const;
}

function keyTable(visitor: Visitor, tenants: readonly Tenant[], keys: readonly SshKey[]): Html {
  const names = new Map(tenants.map(({ id, name }) => [id, name]));
  const columns: Column<SshKey>[] = [
    cellColumn('name', 'Name', (key) => key.name),
    codeColumn('fingerprint', 'Fingerprint', (key) => code(key.fingerprint)),
    ...(tenants.length > 1
      ? [cellColumn('tenant', 'Workspace', (key: SshKey) => names.get(key.tenantId))]
      : []),
    cellColumn('created', 'Added', (key) => formatTime(key.createdAt.getTime(), 'day')),
    actionsColumn('delete', (key) =>
      askButton(
        {
          id: `delete-${key.id}`,
          label: 'Delete',
          title: `Delete ${key.name}?`,
          openKind: 'button',
          action: `${sshKeysPath}delete`,
          csrfToken: visitor.csrfToken,
          fields: { key: key.id, tenant: key.tenantId },
        },
        'New servers can’t be ordered with it any more. Your present servers keep it.',
      ),
    ),
  ];
  return table({
    caption: 'SSH keys',
    card: { line: ['fingerprint', 'created'] },
    columns,
    rows: keys,
    empty: { title: 'No SSH keys yet', text: 'Add your public key to choose it when you deploy a server.' },
  });
}

function addSection(visitor: Visitor, tenants: readonly Tenant[], { draft, fault }: PageState): Html {
  return section(
    { title: 'Add an SSH key', id: 'add' },
    inputForm(
      { action: sshKeysPath, csrfToken: visitor.csrfToken, submit: 'Add key' },
      [
        workspaceField(tenants),
        { name: 'name', label: 'Name', required: true, maxLength: 64 },
        {
          kind: 'textarea',
          name: 'public_key',
          label: 'Public key',
          hint: 'For example the content of ~/.ssh/id_ed25519.pub.',
          required: true,
          isCode: true,
          rows: 3,
        },
      ],
      { typed: draft, fault },
    ),
  );
}
