/** `/client/servers/{id}/firewall`: each button is one change of the version that its page showed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { hasCode } from '#common/errors/index.ts';
import { firewallProtocols } from '#contracts/ip-protocols.ts';
import type { FirewallChange, Firewalls, Rule } from '#operations/firewall/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { faultOf } from '../networks/network-frame.ts';
import { type FirewallPageOptions, firewallPage } from './firewall.page.ts';
import type { TypedRule } from './firewall-rule-form.ts';
import { findServerOf } from './guard-server.ts';

interface FirewallPagesDeps {
  servers: Servers;
  firewalls: Firewalls;
  clock: Clock;
}

const Id = Type.Object({ id: Type.String() });
// Forms send text.
const Whole = Type.String({ pattern: '^\\d{1,15}$' });
const version = { version: Whole };
const rule = { rule: Whole };
const oneOf = <const T extends readonly string[]>(...values: T) =>
  Type.Unsafe<T[number]>({ type: 'string', enum: [...values] });
const Verdict = oneOf('accept', 'drop');
const Text = Type.Optional(Type.String({ maxLength: 2_000 }));
const SwitchForm = Type.Object({ ...version, enabled: oneOf('yes', 'no') });
const PoliciesForm = Type.Object({ ...version, inbound: Verdict, outbound: Verdict });
const RemoveForm = Type.Object({ ...version, ...rule });
const MoveForm = Type.Object({ ...version, ...rule, by: oneOf('-1', '1') });
const ruleFields = {
  direction: oneOf('inbound', 'outbound'),
  action: Verdict,
  protocol: oneOf(...firewallProtocols),
  ports: Text,
  peers: Text,
  description: Text,
};
const AddForm = Type.Object({ ...version, ...ruleFields });
const EditForm = Type.Object({ ...version, ...rule, ...ruleFields, seen: Type.String({ maxLength: 50 }) });
const ShowQuery = Type.Object({
  done: Type.Optional(Type.String()),
  edit: Type.Optional(Type.String({ maxLength: 20 })),
});

type IdRequest = FastifyRequest<{ Params: { id: string } }>;

export function registerFirewall(app: App, deps: FirewallPagesDeps): void {
  const path = '/servers/:id/firewall';
  app.get(path, { schema: { params: Id, querystring: ShowQuery } }, async (request, reply) => {
    const toast =
      request.query.done === 'saved' ? { tone: 'info' as const, text: 'Saved; being applied.' } : undefined;
    const { edit = '' } = request.query;
    return show(deps, request, reply, 200, {
      toast,
      ...(/^[1-9]\d{0,15}$/.test(edit) ? { edit: { ruleId: Number(edit) } } : {}),
    });
  });
  app.post(`${path}/switch`, { schema: { params: Id, body: SwitchForm } }, (request, reply) =>
    change(deps, request, reply, request.body.version, {
      kind: 'switch',
      isEnabled: request.body.enabled === 'yes',
    }),
  );
  app.post(`${path}/policies`, { schema: { params: Id, body: PoliciesForm } }, (request, reply) => {
    const { inbound, outbound } = request.body;
    return change(deps, request, reply, request.body.version, { kind: 'policies', inbound, outbound });
  });
  app.post(`${path}/remove`, { schema: { params: Id, body: RemoveForm } }, (request, reply) =>
    change(deps, request, reply, request.body.version, { kind: 'remove', ruleId: Number(request.body.rule) }),
  );
  app.post(`${path}/move`, { schema: { params: Id, body: MoveForm } }, (request, reply) =>
    change(deps, request, reply, request.body.version, {
      kind: 'move',
      ruleId: Number(request.body.rule),
      by: request.body.by === '-1' ? -1 : 1,
    }),
  );
  app.post(`${path}/add`, { schema: { params: Id, body: AddForm } }, (request, reply) => {
    const { typed, rule } = readRule(request.body);
    return change(deps, request, reply, request.body.version, { kind: 'add', rule }, typed);
  });
  app.post(`${path}/edit`, { schema: { params: Id, body: EditForm } }, (request, reply) =>
    edit(deps, request, reply),
  );
}

async function change(
  deps: FirewallPagesDeps,
  request: IdRequest,
  reply: FastifyReply,
  at: string,
  wanted: FirewallChange,
  typed?: TypedRule,
): Promise<FastifyReply> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const fault = await faultOf(() =>
    deps.firewalls.changeFirewall(visitor.actor, server.id, Number(at), wanted),
  );
  if (fault === null) return reply.redirect(`/client/servers/${server.id}/firewall?done=saved`, 303);
  return typed === undefined
    ? show(deps, request, reply, 409, { toast: { tone: 'bad', text: fault.message } })
    : show(deps, request, reply, 422, { refused: { fault, typed } });
}

async function show(
  deps: FirewallPagesDeps,
  request: IdRequest,
  reply: FastifyReply,
  status: number,
  state: Pick<FirewallPageOptions, 'toast' | 'refused' | 'edit'>,
): Promise<FastifyReply> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const firewall = await deps.firewalls.readFirewall(visitor.actor, server.tenantId, server.id);
  if (firewall === null) throw noSuchPage();
  const nowMs = deps.clock.nowMs();
  return sendPage(reply, firewallPage({ visitor, server, firewall, nowMs, ...state }), status);
}

/** What was typed, for the form that is shown again, and the rule that it means. */
function readRule(body: Static<typeof AddForm>): { typed: TypedRule; rule: Rule } {
  const { direction, action, protocol, ports = '', peers = '', description = '' } = body;
  const given = peers.split(/[\s,]+/).filter(Boolean);
  return {
    typed: { direction, action, protocol, ports, peers, description },
    rule: { direction, action, protocol, ports: ports.trim() || null, peers: given, description },
  };
}

/** Saves an edited rule; what was typed is never lost: a rule that is gone by now can be added again as it was typed. */
async function edit(
  deps: FirewallPagesDeps,
  request: FastifyRequest<{ Params: { id: string }; Body: Static<typeof EditForm> }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { visitor, server } = await findServerOf(deps.servers, request);
  const { version: at, seen } = request.body;
  const ruleId = Number(request.body.rule);
  const { typed, rule } = readRule(request.body);
  try {
    const wanted = { kind: 'edit', ruleId, seen, rule } as const;
    await deps.firewalls.changeFirewall(visitor.actor, server.id, Number(at), wanted);
  } catch (error) {
    if (hasCode(error, 'firewall.rule_removed')) {
      const message = `${(error as Error).message} What you typed stands below: add it as a new rule, or leave it.`;
      return show(deps, request, reply, 409, { refused: { fault: { message, field: null }, typed } });
    }
    const fault = await faultOf(() => Promise.reject(error));
    const isChanged = hasCode(error, 'firewall.rule_changed');
    const kept = isChanged ? {} : { seen };
    return show(deps, request, reply, isChanged ? 409 : 422, {
      edit: { ruleId, typed, fault: fault!, isChanged, ...kept },
    });
  }
  return reply.redirect(`/client/servers/${server.id}/firewall?done=saved#edit-${ruleId}`, 303);
}
