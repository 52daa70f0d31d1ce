/** The Settings tab of a server: its name and labels, the names of its addresses, its plan, disk and root password, and its end. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import type { ReverseDns } from '#operations/reverse-dns/index.ts';
import { type FieldFault, type Servers, statusOf } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  type Content,
  chosenOf,
  confirm,
  field,
  form,
  type Html,
  hiddenField,
  isConfirmed,
  pageHeader,
  section,
  sendPage,
  type Tone,
} from '#service-kit/pages/index.ts';
import { sentence } from '../networks/network-frame.ts';
import { findServerOf } from './guard-server.ts';
import { type MachineOptions, machineSections } from './machine.page.ts';
import { faultOf } from './server.routes.ts';
import { serverFrame } from './server-frame.ts';

const Id = Type.Object({ id: Type.String() });
const WordsForm = Type.Object({
  name: Type.String({ maxLength: 1_000 }),
  hostname: Type.String({ maxLength: 1_000 }),
  labels: Type.String({ maxLength: 16_384 }),
});

const ReverseForm = Type.Object({
  address: Type.String({ maxLength: 45 }),
  name: Type.String({ maxLength: 300 }),
  force: Type.Optional(Type.String({ maxLength: 10 })),
});

export interface SettingsDeps {
  servers: Servers;
  catalog: Catalog;
  reverseDns: ReverseDns;
}

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes = {
  words: 'Saved.',
  reverse: 'Saved. The DNS server is told; resolvers may answer with the former name for an hour.',
  snapshot: 'The snapshot is being taken.',
  deleted: 'The snapshot was deleted.',
};

export function registerServerSettings(app: App, deps: SettingsDeps): void {
  app.get(
    '/servers/:id/settings',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const text = chosenOf(outcomes, request.query.done);
      const toast = text === undefined ? {} : { toast: { tone: 'info' as const, text } };
      return showSettings(deps, { visitor, server }, reply, 200, toast);
    },
  );

  app.post('/servers/:id/words', { schema: { params: Id, body: WordsForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const { name, hostname, labels: text } = request.body;
    const labels = readLabels(text, server.labels);
    const faults = new Map<string, string>();
    if (labels === null) faults.set('labels', 'Write one label a line, such as env=prod.');
    else {
      const input = { name: name.trim(), hostname: hostname.trim(), labels };
      try {
        await deps.servers.describeServer(visitor.actor, null, server.id, input);
        return reply.redirect(`/client/servers/${server.id}/settings?done=words`, 303);
      } catch (error) {
        if (!(error instanceof CodedError) || error.code !== 'servers.invalid') throw error;
        for (const fault of error.details.fields as FieldFault[])
          faults.set(fault.path.split('.')[0]!, wordsOf(fault));
      }
    }
    const words = { name, hostname, labels: text, faults };
    return showSettings(deps, { visitor, server }, reply, 422, { words });
  });

  app.post(
    '/servers/:id/reverse-dns',
    { schema: { params: Id, body: ReverseForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { address, name: text, force } = request.body;
      const name = text.trim() === '' ? null : text;
      const of = { tenantId: null, serverId: server.id, address };
      const error = await faultOf(() =>
        deps.reverseDns.setName(visitor.actor, of, { name, isForced: force !== undefined }),
      );
      if (error === null) return reply.redirect(`/client/servers/${server.id}/settings?done=reverse`, 303);
      return showSettings(deps, { visitor, server }, reply, 422, { reverse: { address, name: text, error } });
    },
  );

  app.post('/servers/:id/destroy', { schema: { params: Id } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const isMeant = isConfirmed(request.body, server.name);
    const fault = isMeant
      ? await faultOf(() => deps.servers.destroyServer(visitor.actor, null, server.id))
      : `Nothing was destroyed: the name typed is not ${server.name}.`;
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=destroy`, 303);
    return showSettings(deps, { visitor, server }, reply, isMeant ? 409 : 422, { confirmError: fault });
  });
}

export async function showSettings(
  deps: SettingsDeps,
  { visitor, server }: Pick<ServerSettingsOptions, 'visitor' | 'server'>,
  reply: FastifyReply,
  status: number,
  state: Omit<
    Partial<ServerSettingsOptions>,
    'visitor' | 'server' | 'capabilities' | 'plans' | 'images' | 'snapshots' | 'snapshotsMax' | 'nameable'
  >,
): Promise<FastifyReply> {
  const [plans, images, snapshots] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.servers.listSnapshots(visitor.actor, null, server.id),
  ]);
  const capabilities = deps.servers.capabilitiesOf(server);
  const nameable = server.addresses.filter(({ address }) => deps.reverseDns.isSupported(address));
  return sendPage(
    reply,
    serverSettingsPage({
      ...{ visitor, server, capabilities, plans, images, snapshots, nameable },
      ...{ snapshotsMax: deps.servers.snapshotsMax, ...state },
    }),
    status,
  );
}

/** `key=value`, one a line; labels that are not there any more are taken away. Null when a line is none. */
function readLabels(
  text: string,
  before: Readonly<Record<string, string>>,
): Record<string, string | null> | null {
  const labels: Record<string, string | null> = Object.fromEntries(
    Object.keys(before).map((key) => [key, null]),
  );
  for (const line of text.split('\n').map((one) => one.trim())) {
    if (line === '') continue;
    const at = line.indexOf('=');
    if (at === 0) return null;
    labels[at < 0 ? line : line.slice(0, at).trim()] = at < 0 ? '' : line.slice(at + 1).trim();
  }
  return labels;
}

/** Of a label, its name comes first: there may be many. */
function wordsOf({ path, message }: FieldFault): string {
  const label = path.startsWith('labels.') ? path.slice('labels.'.length) : '';
  if (label === '') return sentence(message);
  return `${label.length > 40 ? `${label.slice(0, 40)}…` : label}: ${message}.`;
}

interface ServerSettingsOptions extends MachineOptions {
  toast?: { tone: Tone; text: Content };
  confirmError?: string;
  /** Addresses whose reverse names can be set here. */
  nameable: Server['addresses'];
  /** What a refused form about a reverse name held. */
  reverse?: { address: string; name: string; error: string };
  /** What a refused form about its words held, and what was wrong. */
  words?: { name: string; hostname: string; labels: string; faults: ReadonlyMap<string, string> };
}

/** `/client/servers/{id}/settings`: what a server is called, what it is made of, and its end. */
function serverSettingsPage(options: ServerSettingsOptions): Html {
  const { visitor, server, toast } = options;
  const header = pageHeader({
    title: server.name,
    state: { tone: 'neutral', text: `Host name ${server.hostname}.` },
  });
  return serverFrame({ visitor, server, tab: 'settings', toast }, header, [
    section(
      { title: 'Name and labels', description: 'Changes names here only, not inside the server.' },
      wordsForm(options),
    ),
    reverseSection(options),
    machineSections(options),
    destroySection(options),
  ]);
}

function wordsForm({ server, visitor, words }: ServerSettingsOptions): Html {
  const faultOf = (name: string) => words?.faults.get(name);
  const labels = Object.entries(server.labels).map(([key, value]) => `${key}=${value}`);
  return form(
    {
      action: `/client/servers/${server.id}/words`,
      csrfToken: visitor.csrfToken,
      submit: 'Save',
      submitKind: 'button',
    },
    [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 64,
        value: words?.name ?? server.name,
        error: faultOf('name'),
      }),
      field({
        name: 'hostname',
        label: 'Host name',
        required: true,
        maxLength: 253,
        isCode: true,
        value: words?.hostname ?? server.hostname,
        error: faultOf('hostname'),
      }),
      field({
        kind: 'textarea',
        name: 'labels',
        label: 'Labels',
        hint: 'One per line, for example env=prod. The API can filter by labels.',
        isCode: true,
        rows: 3,
        value: words?.labels ?? labels.join('\n'),
        error: faultOf('labels'),
      }),
    ],
  );
}

function reverseSection({ server, visitor, nameable, reverse }: ServerSettingsOptions): Content {
  if (nameable.length === 0) return '';
  return section(
    {
      title: 'Reverse DNS',
      id: 'reverse-dns',
      description:
        'The name that others see for an address. It needs an A or AAAA record with the address. It is removed when the server loses the address.',
    },
    nameable.map(({ address, reverseDns }) => {
      const typed = reverse?.address === address ? reverse : undefined;
      return form(
        {
          action: `/client/servers/${server.id}/reverse-dns`,
          csrfToken: visitor.csrfToken,
          submit: 'Save',
          submitKind: 'button',
        },
        [
          hiddenField('address', address),
          field({
            name: 'name',
            id: `reverse-${address}`,
            label: address,
            hint: 'Empty: no name.',
            isCode: true,
            maxLength: 254,
            value: typed?.name ?? reverseDns ?? '',
            error: typed?.error,
          }),
          typed !== undefined &&
            field({
              kind: 'checkbox',
              name: 'force',
              id: `force-${address}`,
              label: 'Set it without such a record',
            }),
        ],
      );
    }),
  );
}

function destroySection({ server, visitor, confirmError }: ServerSettingsOptions): Content {
  const status = statusOf(server);
  if (status === 'deleting' || status === 'failed') return '';
  return section(
    { title: 'Destroy this server', id: 'destroy' },
    confirm({
      action: `/client/servers/${server.id}/destroy`,
      csrfToken: visitor.csrfToken,
      name: server.name,
      consequence:
        'This permanently deletes the disk and releases its IP addresses, except those that you keep. Charging ends with the current hour.',
      submit: 'Destroy server',
      ...(confirmError === undefined ? {} : { error: confirmError }),
    }),
  );
}
