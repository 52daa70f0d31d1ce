/** The settings page of single sign-on; each console registers it below its guard. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  banner,
  type Content,
  cellColumn,
  chosenOf,
  code,
  codeBlock,
  emptyState,
  field,
  form,
  html,
  moment,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import type { PeerInput } from './change-peer.ts';
import type { SignOn, SignOnView } from './sign-on.ts';
import type { LinkedAccount } from './store.ts';

export interface SignOnSettingsOptions<Actor extends AuditActor> {
  /** The path below the scope's prefix, such as `/sign-on`. */
  path: string;
  /** The whole path, such as `/console/sign-on`. */
  base: string;
  /** As the other program is called: "the monitor". */
  other: string;
  signOn: SignOn<Actor>;
  clock: Clock;
  /** The person whom the guard let in. */
  visitorOf: (request: FastifyRequest) => {
    actor: Actor;
    person: SignInPerson;
    csrfToken: string;
    canChange: boolean;
  };
  /** Operators who may sign in. */
  listOperators: (actor: Actor) => Promise<readonly SignInPerson[]>;
  /** Sends a page in the frame of its surface. */
  send: (
    request: FastifyRequest,
    reply: FastifyReply,
    page: { title: string; content: Content; toast?: string; status: number },
  ) => FastifyReply;
}

const outcomes: Readonly<Record<string, string>> = {
  key: 'The key is created. Enter it in the other console.',
  peer: 'Saved.',
  linked: 'The accounts are linked.',
  unlinked: 'The accounts are no longer linked. Sessions that were begun by it stay until they are ended.',
};

const id = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const PeerForm = Type.Object({
  address: Type.String({ maxLength: 500 }),
  public_key: Type.String({ maxLength: 100 }),
  is_accepted: Type.Optional(Type.String()),
  is_offered: Type.Optional(Type.String()),
});

export function registerSignOnSettings<Actor extends AuditActor>(
  scope: App,
  options: SignOnSettingsOptions<Actor>,
): void {
  const { path, base, signOn, visitorOf } = options;
  const done = (reply: FastifyReply, outcome: string) => reply.redirect(`${base}/?done=${outcome}`, 303);

  const Query = Type.Object({ done: Type.Optional(Type.String()) });
  scope.get(`${path}/`, { schema: { querystring: Query } }, (request, reply) =>
    show(options, request, reply, 200, { done: request.query.done }),
  );

  scope.post(`${path}/key`, async (request, reply) => {
    await signOn.createKey(visitorOf(request).actor);
    return done(reply, 'key');
  });

  scope.post(`${path}/peer`, { schema: { body: PeerForm } }, async (request, reply) => {
    const { address, public_key: publicKey, is_accepted, is_offered } = request.body;
    const peer = {
      address,
      publicKey,
      isAccepted: is_accepted !== undefined,
      isOffered: is_offered !== undefined,
    };
    const fault = await faultOf(() => signOn.savePeer(visitorOf(request).actor, peer));
    if (fault) return show(options, request, reply, 422, { refused: { ...fault, peer } });
    return done(reply, 'peer');
  });

  const LinkForm = Type.Object({ subject: id, person: id });
  scope.post(`${path}/link`, { schema: { body: LinkForm } }, async (request, reply) => {
    const link = { subjectId: Number(request.body.subject), personId: Number(request.body.person) };
    const refused = await faultOf(() => signOn.linkAccount(visitorOf(request).actor, link));
    if (refused) return show(options, request, reply, 422, { refused });
    return done(reply, 'linked');
  });

  const UnlinkForm = Type.Object({ subject: id });
  scope.post(`${path}/unlink`, { schema: { body: UnlinkForm } }, async (request, reply) => {
    await signOn.unlinkAccount(visitorOf(request).actor, Number(request.body.subject));
    return done(reply, 'unlinked');
  });
}

async function faultOf(change: () => Promise<void>): Promise<RefusedSetting | null> {
  try {
    await change();
    return null;
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'sign_on.invalid') throw error;
    const { field } = error.details;
    return { message: error.message, field: typeof field === 'string' ? field : null };
  }
}

async function show<Actor extends AuditActor>(
  options: SignOnSettingsOptions<Actor>,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  shown: { done?: string | undefined; refused?: RefusedSetting },
): Promise<FastifyReply> {
  const { actor, person, csrfToken, canChange } = options.visitorOf(request);
  const [view, operators] = await Promise.all([options.signOn.view(), options.listOperators(actor)]);
  const content = settingsContent({
    ...view,
    base: options.base,
    other: options.other,
    operators,
    viewer: { id: person.id, csrfToken, canChange },
    refused: shown.refused,
    nowMs: options.clock.nowMs(),
  });
  const text = chosenOf(outcomes, shown.done);
  const toast = text === undefined ? {} : { toast: text };
  return options.send(request, reply, { title: 'Single sign-on', content, status, ...toast });
}

/** A refused form, as it was typed. */
interface RefusedSetting {
  message: string;
  /** The field that is wrong; null: none of them. */
  field: string | null;
  peer?: PeerInput;
}

interface SignOnSettings extends SignOnView {
  /** The path of the page, such as `/console/sign-on`. */
  base: string;
  /** As the other program is called: "the monitor". */
  other: string;
  operators: readonly SignInPerson[];
  viewer: { id: number; csrfToken: string; canChange: boolean };
  refused: RefusedSetting | undefined;
  nowMs: number;
}

/** The settings of single sign-on: this program's key, the other program, and linked accounts. */
function settingsContent(page: SignOnSettings): Content {
  const { refused, other } = page;
  return [
    pageHeader({ title: 'Single sign-on', state: stateOf(page) }),
    refused && banner({ tone: 'bad', title: 'Nothing was changed', text: refused.message }),
    section(
      {
        title: 'Key of this program',
        id: 'key',
        description: `Enter it under Single sign-on of ${other}, by which it knows that this console vouches for an operator.`,
        actions: replaceKey(page),
      },
      keyPart(page),
    ),
    section(
      {
        title: 'Other program',
        id: 'peer',
        description: `Where ${other} is, and what it is trusted with. Both directions are off until they are turned on.`,
      },
      peerPart(page),
    ),
    section(
      {
        title: 'Linked accounts',
        id: 'accounts',
        description: `An operator who follows a link from ${other} the first time signs in here once and links the accounts. Accounts aren’t linked by email address.`,
      },
      accountsPart(page),
    ),
  ];
}

function stateOf({ peer, publicKey, other }: SignOnSettings): { tone: Tone; text: string } {
  if (publicKey === null) return { tone: 'neutral', text: 'Off. Create the key of this program first.' };
  if (peer === null || (!peer.isAccepted && !peer.isOffered))
    return { tone: 'neutral', text: `Off. Pages do not link to ${other}.` };
  if (peer.isAccepted && peer.isOffered)
    return { tone: 'good', text: `On in both directions with ${peer.address}.` };
  return peer.isAccepted
    ? { tone: 'info', text: `Operators of ${peer.address} are signed in here, and ours not there.` }
    : { tone: 'info', text: `Our operators are signed in at ${peer.address}, and its operators not here.` };
}

function keyPart({ publicKey, keyCreatedAt, base, viewer, nowMs }: SignOnSettings): Content {
  const action = `${base}/key`;
  const { csrfToken } = viewer;
  if (publicKey === null) {
    if (!viewer.canChange) return emptyState({ title: 'No key yet', text: 'An operator creates it.' });
    return actionButton({ action, csrfToken, label: 'Create the key', kind: 'primary' });
  }
  return [
    codeBlock({ code: publicKey, label: 'Public key' }),
    html`<p class="hint">Created ${moment(keyCreatedAt?.getTime(), nowMs)}. It is no secret; the private half never leaves this program.</p>`,
  ];
}

/** Beside the heading. */
function replaceKey({ publicKey, base, viewer, other }: SignOnSettings): Content {
  if (publicKey === null || !viewer.canChange) return false;
  const action = `${base}/key`;
  const asked = { id: 'ask-key', action, label: 'Replace the key', title: 'Replace the key?' };
  return askButton(
    { ...asked, csrfToken: viewer.csrfToken },
    `Sign-ons to ${other} stop until the new key is entered there. There all linked accounts are removed with it.`,
  );
}

function peerPart({ peer, base, viewer, refused, other }: SignOnSettings): Content {
  if (!viewer.canChange)
    return peer === null
      ? emptyState({ title: 'Not set up', text: 'An operator enters the address and the key.' })
      : [codeBlock({ code: peer.publicKey, label: peer.address })];
  const shown = refused?.peer ?? peer;
  const errorOf = (name: string) => (refused?.field === name ? refused.message : undefined);
  return form({ action: `${base}/peer`, csrfToken: viewer.csrfToken, submit: 'Save' }, [
    field({
      kind: 'url',
      name: 'address',
      label: 'Address',
      required: true,
      maxLength: 500,
      value: shown?.address,
      placeholder: 'https://',
      error: errorOf('address'),
    }),
    field({
      name: 'public_key',
      label: 'Public key',
      hint: `Copied from Single sign-on of ${other}. Another key removes all linked accounts.`,
      required: true,
      maxLength: 100,
      isCode: true,
      value: shown?.publicKey,
      error: errorOf('public_key'),
    }),
    field({
      kind: 'checkbox',
      name: 'is_offered',
      label: `Link to ${other}, and sign our operators in there`,
      checked: shown?.isOffered ?? false,
    }),
    field({
      kind: 'checkbox',
      name: 'is_accepted',
      label: `Sign operators of ${other} in here`,
      checked: shown?.isAccepted ?? false,
    }),
  ]);
}

function accountsPart(page: SignOnSettings): Content {
  const { accounts, operators, base, viewer, nowMs, peer, other } = page;
  const nameOf = (personId: number) => operators.find(({ id }) => id === personId);
  return [
    table<LinkedAccount>({
      caption: 'Linked accounts',
      card: { line: ['subject', 'used'] },
      isStacked: true,
      columns: [
        cellColumn(
          'person',
          'Operator',
          ({ personId }) => nameOf(personId)?.email ?? `operator ${personId}, without access`,
        ),
        cellColumn(
          'subject',
          `Account in ${other}`,
          ({ subjectEmail }) => subjectEmail ?? 'named by the first sign-on',
        ),
        { key: 'id', header: 'Its id', kind: 'figure', cell: ({ subjectId }) => String(subjectId) },
        cellColumn('linked', 'Linked', ({ linkedAt }) => moment(linkedAt.getTime(), nowMs)),
        cellColumn('used', 'Last used', ({ lastUsedAt }) =>
          lastUsedAt === null ? 'never used' : moment(lastUsedAt.getTime(), nowMs),
        ),
        {
          key: 'act',
          header: 'Actions',
          kind: 'actions',
          cell: ({ subjectId }) =>
            viewer.canChange &&
            askButton(
              {
                id: `unlink-${subjectId}`,
                action: `${base}/unlink`,
                csrfToken: viewer.csrfToken,
                label: 'Unlink',
                title: 'Unlink the accounts?',
                fields: { subject: subjectId },
              },
              `Links from ${other} sign this operator in no more, until the accounts are linked anew.`,
            ),
        },
      ],
      rows: accounts,
      empty: { title: 'No linked accounts', text: 'Accounts appear here when their operators link them.' },
    }),
    viewer.canChange && peer !== null && linkForm(page),
    html`<p class="hint">Your own id here is ${code(String(viewer.id), true)}</p>`,
  ];
}

function linkForm({ accounts, operators, base, viewer, other, refused }: SignOnSettings): Content {
  const linked = new Set(accounts.map(({ personId }) => personId));
  const free = operators.filter(({ id }) => !linked.has(id));
  if (free.length === 0) return '';
  return form(
    {
      action: `${base}/link`,
      csrfToken: viewer.csrfToken,
      submit: 'Link',
      submitKind: 'button',
      layout: 'inline',
    },
    [
      field({
        kind: 'number',
        name: 'subject',
        label: `Id in ${other}`,
        required: true,
        min: 1,
        error: refused?.field === 'subject' ? refused.message : undefined,
      }),
      field({
        kind: 'select',
        name: 'person',
        label: 'Operator here',
        options: free.map(({ id, email }) => ({ value: String(id), label: `${email} (id ${id})` })),
      }),
    ],
  );
}
