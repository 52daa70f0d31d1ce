/** The settings page of single sign-on; each console registers it below its guard. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';
import { type RefusedSetting, settingsContent } from './settings.page.ts';
import type { SignOn } from './sign-on.ts';

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
  const text = outcomes[shown.done ?? ''];
  const toast = text === undefined ? {} : { toast: text };
  return options.send(request, reply, { title: 'Single sign-on', content, status, ...toast });
}
