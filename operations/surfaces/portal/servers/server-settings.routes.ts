/** The Settings tab of a server: its name and labels, the names of its addresses, its plan, disk, rescue system, CD drive and root password, and its end. */
import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Plan } from '#operations/catalog/index.ts';
import type { Features } from '#operations/features.ts';
import { type FieldFault, statusOf } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  banner,
  type Content,
  confirm,
  field,
  formatMoney,
  type Html,
  hiddenField,
  html,
  inputForm,
  isConfirmed,
  link,
  otherSubmit,
  pageHeader,
  type Refused,
  section,
  sendPage,
  shownOnce,
  type Tone,
  toastOf,
} from '#service-kit/pages/index.ts';
import { readAll } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import { Done, Id, type Visitor } from '../guard.ts';
import { type FormFault, refusalOf, sentence } from '../networks/network-frame.ts';
import { findServerOf, serverFrame } from './server-frame.ts';
import { type SnapshotState, snapshotSection } from './snapshots.page.ts';

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
/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes = {
  words: 'Saved.',
  reverse: 'Saved. The DNS server is told; resolvers may answer with the former name for an hour.',
  snapshot: 'The snapshot is being taken.',
  deleted: 'The snapshot was deleted.',
  attach_iso: 'The ISO is being attached.',
  detach_iso: 'The ISO is being detached.',
};

export function registerServerSettings(app: App, deps: Features): void {
  app.get('/servers/:id/settings', { schema: { params: Id, querystring: Done } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const toast = toastOf(outcomes, request.query.done);
    return showSettings(deps, { visitor, server }, reply, 200, { toast });
  });

  app.post('/servers/:id/words', { schema: { params: Id, body: WordsForm } }, async (request, reply) => {
    const { visitor, server } = await findServerOf(deps.servers, request);
    const { name, hostname, labels: text } = request.body;
    const labels = readLabels(text, server.labels);
    const faults: FormFault[] = [];
    if (labels === null)
      faults.push({ field: 'labels', message: 'Write one label a line, such as env=prod.' });
    else {
      const input = { name: name.trim(), hostname: hostname.trim(), labels };
      try {
        await deps.servers.describeServer(visitor.actor, null, server.id, input);
        return reply.redirect(`/client/servers/${server.id}/settings?done=words`, 303);
      } catch (error) {
        if (!(error instanceof CodedError) || error.code !== 'servers.invalid') throw error;
        for (const fault of error.details.fields as FieldFault[])
          faults.push({ field: fault.path.split('.')[0]!, message: wordsOf(fault) });
      }
    }
    return showSettings(deps, { visitor, server }, reply, 422, {
      words: { typed: request.body, fault: faults },
    });
  });

  app.post(
    '/servers/:id/reverse-dns',
    { schema: { params: Id, body: ReverseForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { address, name: text, force } = request.body;
      const name = text.trim() === '' ? null : text;
      const of = { tenantId: null, serverId: server.id, address };
      const error = await refusalOf(() =>
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
      ? await refusalOf(() => deps.servers.destroyServer(visitor.actor, null, server.id))
      : `Nothing was destroyed: the name typed is not ${server.name}.`;
    if (fault === null) return reply.redirect(`/client/servers/${server.id}?done=destroy`, 303);
    return showSettings(deps, { visitor, server }, reply, isMeant ? 409 : 422, { confirmError: fault });
  });
}

export async function showSettings(
  deps: Features,
  { visitor, server }: Pick<ServerSettingsOptions, 'visitor' | 'server'>,
  reply: FastifyReply,
  status: number,
  state: SettingsState,
): Promise<FastifyReply> {
  const read = await readSettings(deps, visitor, server);
  return sendPage(reply, serverSettingsPage({ visitor, server, ...read, ...state }), status);
}

async function readSettings({ catalog, servers, reverseDns }: Features, { actor }: Visitor, server: Server) {
  const { snapshotsMax, snapshotGbQuanta } = servers;
  return readAll({
    plans: catalog.listPlans(),
    images: catalog.listImages(),
    rescueImages: catalog.listImages(['rescue']),
    isos: catalog.listImages(['iso']),
    snapshots: servers.listSnapshots(actor, null, server.id),
    ...{ snapshotsMax, snapshotGbQuanta, capabilities: servers.capabilitiesOf(server) },
    // Addresses whose reverse names can be set here.
    nameable: server.addresses.filter(({ address }) => reverseDns.isSupported(address)),
  });
}

/** `key=value`, one a line; labels that are not there any more are taken away. Null when a line is none. */
function readLabels(text: string, before: Readonly<Record<string, string>>) {
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

/** The outcome of a form: what a refused or rehearsed one held, and what is said of it. */
interface SettingsState {
  toast?: { tone: Tone; text: Content } | undefined;
  confirmError?: string;
  reverse?: { address: string; name: string; error: string };
  words?: Refused;
  resize?: { plan: string; keepDisk: boolean; onTimeout: string; error?: string; forecast?: Content };
  rebuild?: { image: string; error: string };
  resetError?: string;
  rescueError?: string;
  isoError?: string;
  snapshot?: SnapshotState;
}

interface ServerSettingsOptions extends Awaited<ReturnType<typeof readSettings>>, SettingsState {
  visitor: Visitor;
  server: Server;
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
  const labels = Object.entries(server.labels).map(([key, value]) => `${key}=${value}`);
  return inputForm(
    {
      action: `/client/servers/${server.id}/words`,
      csrfToken: visitor.csrfToken,
      submit: 'Save',
      submitKind: 'button',
    },
    [
      { name: 'name', label: 'Name', required: true, maxLength: 64, value: server.name },
      {
        name: 'hostname',
        label: 'Host name',
        required: true,
        maxLength: 253,
        isCode: true,
        value: server.hostname,
      },
      {
        kind: 'textarea',
        name: 'labels',
        label: 'Labels',
        hint: 'One per line, for example env=prod. The API can filter by labels.',
        isCode: true,
        rows: 3,
        value: labels.join('\n'),
      },
    ],
    words,
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
      return inputForm(
        {
          action: `/client/servers/${server.id}/reverse-dns`,
          csrfToken: visitor.csrfToken,
          submit: 'Save',
          submitKind: 'button',
        },
        [
          hiddenField('address', address),
          {
            name: 'name',
            id: `reverse-${address}`,
            label: address,
            hint: 'Empty: no name.',
            isCode: true,
            maxLength: 254,
            value: typed?.name ?? reverseDns ?? '',
            error: typed?.error,
          },
          typed !== undefined && {
            kind: 'checkbox',
            name: 'force',
            id: `force-${address}`,
            label: 'Set it without such a record',
          },
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

const ResizeForm = Type.Object({
  plan: Type.String({ maxLength: 64 }),
  keep_disk: Type.Optional(Type.String({ maxLength: 10 })),
  on_timeout: Type.Union([Type.Literal('fail'), Type.Literal('stop')]),
});
const RescueForm = Type.Object({ image: Type.Optional(Type.String({ maxLength: 64 })) });
const IsoForm = Type.Object({ iso: Type.String({ maxLength: 64 }) });
const RebuildForm = Type.Object({ image: Type.String({ maxLength: 64 }) });

/** Resize, rescue, ISOs, rebuild and a new root password from the Settings tab, by the same operations that the API uses. */
export function registerMachine(app: App, deps: Features): void {
  const { servers } = deps;
  registerRescue(app, deps);
  registerIsos(app, deps);
  for (const isDryRun of [false, true])
    app.post(
      `/servers/:id/resize${isDryRun ? '/check' : ''}`,
      { schema: { params: Id, body: ResizeForm } },
      async (request, reply) => {
        const of = await findServerOf(servers, request);
        const { plan, keep_disk: keep, on_timeout: onTimeout } = request.body;
        const held = { plan, keepDisk: keep !== undefined, onTimeout };
        let forecast = '';
        const fault = await refusalOf(async () => {
          const resize = await servers.resizeServer(of.visitor.actor, null, of.server.id, held, { isDryRun });
          forecast = forecastText(resize);
        });
        if (fault !== null) return showSettings(deps, of, reply, 409, { resize: { ...held, error: fault } });
        if (!isDryRun) return reply.redirect(`/client/servers/${of.server.id}?done=resize`, 303);
        return showSettings(deps, of, reply, 200, { resize: { ...held, forecast } });
      },
    );

  app.post('/servers/:id/rebuild', { schema: { params: Id, body: RebuildForm } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const { image } = request.body;
    let password = '';
    const isMeant = isConfirmed(request.body, of.server.name);
    const fault = isMeant
      ? await refusalOf(async () => {
          const { rootPassword } = await servers.rebuildServer(of.visitor.actor, null, of.server.id, {
            image,
          });
          password = rootPassword;
        })
      : `Nothing was rebuilt: the name typed is not ${of.server.name}.`;
    if (fault !== null)
      return showSettings(deps, of, reply, isMeant ? 409 : 422, { rebuild: { image, error: fault } });
    const text = 'The server is being rebuilt. The password is valid when it runs again.';
    return sendPage(reply, newPasswordPage(of, password, text));
  });

  app.post('/servers/:id/reset-password', { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    let password = '';
    const resetError = await refusalOf(async () => {
      password = (await servers.resetPassword(of.visitor.actor, null, of.server.id)).rootPassword;
    });
    if (resetError !== null) return showSettings(deps, of, reply, 409, { resetError });
    const text =
      'It is valid when the server’s activity shows that it was set, or from the next boot where it says so.';
    return sendPage(reply, newPasswordPage(of, password, text));
  });
}

function registerRescue(app: App, deps: Features): void {
  const { servers } = deps;
  app.post('/servers/:id/rescue', { schema: { params: Id, body: RescueForm } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const { image } = request.body;
    let password: string | null = null;
    const rescueError = await refusalOf(async () => {
      const wanted = { image };
      password = (await servers.rescueServer(of.visitor.actor, null, of.server.id, wanted)).rootPassword;
    });
    if (rescueError !== null) return showSettings(deps, of, reply, 409, { rescueError });
    if (password === null) return reply.redirect(`/client/servers/${of.server.id}/settings`, 303);
    const text = 'The rescue system is being started. The password is valid when the server runs again.';
    return sendPage(reply, newPasswordPage(of, password, text));
  });

  app.post('/servers/:id/unrescue', { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const rescueError = await refusalOf(() => servers.unrescueServer(of.visitor.actor, null, of.server.id));
    if (rescueError !== null) return showSettings(deps, of, reply, 409, { rescueError });
    return reply.redirect(`/client/servers/${of.server.id}?done=unrescue`, 303);
  });
}

function registerIsos(app: App, { servers, ...deps }: Features): void {
  app.post('/servers/:id/attach-iso', { schema: { params: Id, body: IsoForm } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const { iso } = request.body;
    const isoError = await refusalOf(() => servers.attachIso(of.visitor.actor, null, of.server.id, iso));
    if (isoError !== null) return showSettings({ servers, ...deps }, of, reply, 409, { isoError });
    return reply.redirect(`/client/servers/${of.server.id}/settings?done=attach_iso`, 303);
  });

  app.post('/servers/:id/detach-iso', { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const isoError = await refusalOf(() => servers.detachIso(of.visitor.actor, null, of.server.id));
    if (isoError !== null) return showSettings({ servers, ...deps }, of, reply, 409, { isoError });
    return reply.redirect(`/client/servers/${of.server.id}/settings?done=detach_iso`, 303);
  });
}

function forecastText(resize: Awaited<ReturnType<Features['servers']['resizeServer']>>): string {
  const { action, hourlyQuanta, monthlyCapQuanta, dueQuanta, isRestarted } = resize;
  if (!action.changed) return 'The server has this plan already.';
  const due = dueQuanta > 0 ? ` ${formatMoney(dueQuanta)} is charged for the hour that has begun.` : '';
  const restart = isRestarted
    ? 'The server is shut down and started again.'
    : 'The server is off and stays off.';
  return `${formatMoney(hourlyQuanta)} an hour, at most ${formatMoney(monthlyCapQuanta)} a month.${due} ${restart}`;
}

/** What the hypervisor can do with this server now; nothing for one that is not ready. */
function machineSections(options: ServerSettingsOptions): Content {
  const { server, capabilities } = options;
  if (server.provisioningState !== 'ready') return '';
  // Nothing else can be done with its disk meanwhile.
  if (server.isRescued) return rescueSection(options);
  return [
    capabilities.includes('resize') && resizeSection(options),
    capabilities.includes('reset_password') && passwordSection(options),
    capabilities.includes('snapshots') && snapshotSection(options),
    capabilities.includes('rescue') && options.rescueImages.length > 0 && rescueSection(options),
    (server.iso !== null || (capabilities.includes('iso') && options.isos.length > 0)) && isoSection(options),
    capabilities.includes('rebuild') && rebuildSection(options),
  ];
}

const priceOf = (plan: Pick<Plan, 'hourlyQuanta' | 'monthlyCapQuanta'>) =>
  `${formatMoney(plan.hourlyQuanta)} an hour, at most ${formatMoney(plan.monthlyCapQuanta)} a month`;

function resizeSection({ server, visitor, plans, resize }: ServerSettingsOptions): Content {
  const path = `/client/servers/${server.id}/resize`;
  const able = plans.filter((plan) => plan.diskGb >= server.diskGb);
  const description = `Now ${server.planName}: ${server.vcpus} vCPU, ${server.memoryMb / 1024} GiB memory, ${server.diskGb} GB disk; ${priceOf(server)}. A running server is shut down and started again. Plans with a smaller disk are not offered: a disk never shrinks.`;
  return section({ title: 'Plan', id: 'resize', description }, [
    resize?.forecast !== undefined &&
      banner({ tone: 'info', title: 'Nothing was changed yet', text: resize.forecast }),
    inputForm(
      {
        action: path,
        csrfToken: visitor.csrfToken,
        submit: 'Resize',
        submitKind: 'button',
        cancel: otherSubmit({ action: `${path}/check`, label: 'Check the price' }),
        error: resize?.error,
      },
      [
        {
          kind: 'select',
          name: 'plan',
          label: 'New plan',
          required: true,
          value: resize?.plan ?? server.planSlug,
          options: able.map((plan) => ({
            value: plan.slug,
            label: `${plan.name}: ${plan.vcpus} vCPU, ${plan.memoryMb / 1024} GiB, ${plan.diskGb} GB`,
          })),
        },
        {
          kind: 'checkbox',
          name: 'keep_disk',
          label: `Keep the disk of ${server.diskGb} GB`,
          hint: 'Then the server can return to a plan with a smaller disk.',
          checked: resize?.keepDisk ?? false,
        },
        {
          kind: 'select',
          name: 'on_timeout',
          label: 'If the operating system does not shut down in 2 minutes',
          value: resize?.onTimeout ?? 'fail',
          options: [
            { value: 'fail', label: 'Change nothing' },
            { value: 'stop', label: 'Cut the power' },
          ],
        },
      ],
    ),
  ]);
}

function passwordSection({ server, visitor, resetError }: ServerSettingsOptions): Content {
  const description =
    'Sets a new root password inside the running server. Without qemu-guest-agent it holds from the next boot, by cloud-init.';
  return section({ title: 'Root password', id: 'password', description }, [
    resetError !== undefined &&
      banner({ tone: 'bad', title: 'The password was not reset', text: resetError }),
    html`<div>${askButton(
      {
        ...{ id: 'ask-password', label: 'Reset the root password', title: 'Reset the root password?' },
        ...{ openKind: 'button' as const, csrfToken: visitor.csrfToken, fields: {} },
        action: `/client/servers/${server.id}/reset-password`,
      },
      'The present root password stops working. The new one is shown once, on the next page.',
    )}</div>`,
  ]);
}

function rescueSection(options: ServerSettingsOptions): Content {
  const { server, visitor, rescueImages, rescueError, resize, rebuild, snapshot } = options;
  // What a form of before the rescue asked for: its own section is not there.
  const otherError =
    options.isoError ?? options.resetError ?? resize?.error ?? rebuild?.error ?? snapshot?.error;
  const error = rescueError ?? (server.isRescued ? otherError : undefined);
  const description = server.isRescued
    ? 'The server is in rescue: it starts from a rescue system, and its own disk is beside it, on most systems as /dev/vdc.'
    : 'For a server that is locked out or does not boot: it starts from a rescue system and has its own disk beside it, untouched. Addresses, networks, firewall and price stay.';
  const common = { openKind: 'button' as const, csrfToken: visitor.csrfToken };
  return section({ title: 'Rescue', id: 'rescue', description }, [
    error !== undefined && banner({ tone: 'bad', title: 'Nothing was changed', text: error }),
    server.isRescued
      ? html`<div>${askButton(
          {
            ...{ ...common, id: 'ask-unrescue', label: 'Start from its own disk' },
            ...{ title: 'Start from its own disk?', action: `/client/servers/${server.id}/unrescue` },
          },
          'The server is restarted. Everything written to the rescue system is lost.',
        )}</div>`
      : rescueImages.map(
          ({ slug, name }) =>
            html`<div>${askButton(
              {
                ...{ ...common, id: `ask-rescue-${slug}`, label: `Start ${name}`, title: `Start ${name}?` },
                ...{ action: `/client/servers/${server.id}/rescue`, fields: { image: slug } },
              },
              'The power of the server is cut. The root password of the rescue system is shown once, on the next page.',
            )}</div>`,
        ),
  ]);
}

function isoSection({ server, visitor, isos, isoError }: ServerSettingsOptions): Content {
  const { iso } = server;
  const path = `/client/servers/${server.id}`;
  const description =
    'The server sees the ISO at once. After a reset it starts from the ISO instead of its disk.';
  return section({ title: 'CD drive', id: 'iso', description }, [
    iso === null
      ? inputForm(
          {
            ...{ action: `${path}/attach-iso`, csrfToken: visitor.csrfToken, error: isoError },
            ...{ submit: 'Attach', submitKind: 'button' as const },
          },
          [
            {
              ...{ kind: 'select', name: 'iso', label: 'ISO', required: true },
              options: isos.map(({ slug, name }) => ({ value: slug, label: name })),
            },
          ],
          { fault: isoError === undefined ? null : { message: isoError, field: null } },
        )
      : [
          isoError !== undefined && banner({ tone: 'bad', title: 'Nothing was changed', text: isoError }),
          html`<p>${iso.name}</p>`,
          html`<div>${actionButton({
            ...{ action: `${path}/detach-iso`, csrfToken: visitor.csrfToken, label: 'Detach' },
            kind: 'button',
          })}</div>`,
        ],
  ]);
}

function rebuildSection({ server, visitor, images, rebuild }: ServerSettingsOptions): Content {
  const isOffered = images.some((image) => image.slug === server.imageSlug);
  const own = { slug: server.imageSlug, name: `${server.imageName}, as now` };
  return section(
    { title: 'Rebuild', id: 'rebuild' },
    confirm({
      action: `/client/servers/${server.id}/rebuild`,
      csrfToken: visitor.csrfToken,
      name: server.name,
      consequence:
        'Everything on the disk is lost: the server gets a new disk from the image, and a new root password. Its addresses, networks, firewall, SSH keys and price stay.',
      submit: 'Rebuild server',
      content: field({
        kind: 'select',
        name: 'image',
        label: 'Image',
        required: true,
        value: rebuild?.image ?? server.imageSlug,
        options: (isOffered ? images : [own, ...images]).map((image) => ({
          value: image.slug,
          label: image.name,
        })),
      }),
      error: rebuild?.error,
    }),
  );
}

/** The answer to a rebuild and to a new password: the only page that ever shows it. */
function newPasswordPage(
  { visitor, server }: { visitor: Visitor; server: Server },
  rootPassword: string,
  text: string,
): Html {
  const title = `${server.name} gets a new root password`;
  const breadcrumb = [
    { label: 'Servers', href: '/client/' },
    { label: server.name, href: `/client/servers/${server.id}` },
    { label: 'New root password' },
  ];
  return portalFrame({ visitor, title, current: 'servers', breadcrumb, isNarrow: true }, [
    pageHeader({
      title,
      state: { tone: 'info', text },
      actions: link(`/client/servers/${server.id}`, 'Go to the server', { kind: 'primary' }),
    }),
    shownOnce('Root password', rootPassword),
  ]);
}
