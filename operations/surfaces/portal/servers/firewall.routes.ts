/** `/client/servers/{id}/firewall`: each button is one change of the version that its page showed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { firewallProtocols, firewallProtocolTitle } from '#contracts/ip-protocols.ts';
import type { Features } from '#operations/features.ts';
import type {
  Direction,
  EffectiveFirewall,
  FirewallChange,
  Rule,
  StoredRule,
} from '#operations/firewall/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  askButton,
  badge,
  banner,
  type Content,
  cellColumn,
  code,
  codeColumn,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  html,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  sendPage,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { Id, type Visitor } from '../guard.ts';
import { type FormFault, faultOf } from '../networks/network-frame.ts';
import { addForm, type EditedRule, editRuleForm, type TypedRule } from './firewall-rule-form.ts';
import { findServerOf, serverFrame } from './server-frame.ts';

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

export function registerFirewall(app: App, deps: Features): void {
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
  deps: Features,
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
  deps: Features,
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
  deps: Features,
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

interface FirewallPageOptions {
  visitor: Visitor;
  server: Server;
  firewall: EffectiveFirewall;
  nowMs: number;
  toast?: { tone: Tone; text: Content } | undefined;
  /** A refused rule: what was typed, and why. */
  refused?: { fault: FormFault; typed: TypedRule } | undefined;
  /** The rule that is edited in its row; `typed` and `fault` of a refused change. */
  edit?: EditedRule | undefined;
}

/** `/client/servers/{id}/firewall`: whether anything is filtered, by which rules, and how they change. */
function firewallPage(options: FirewallPageOptions): Html {
  const { visitor, server, firewall, toast } = options;
  const path = `/client/servers/${server.id}/firewall`;
  const header = refreshing(
    { id: 'server-state', url: path, everySeconds: 5 },
    pageHeader({ title: server.name, state: stateOf(options), actions: switchButton(options) }),
  );
  return serverFrame({ visitor, server, tab: 'firewall', toast }, header, [
    !firewall.isSupported &&
      banner({
        tone: 'warn',
        title: 'No firewall outside this server',
        text: 'The hypervisor of this server filters no traffic. Use a firewall inside the server.',
      }),
    offBanner(options),
    ...(['inbound', 'outbound'] as const).map((direction) => rulesSection(options, direction)),
    firewall.isSupported && addSection(options),
    firewall.isSupported && policiesSection(options),
    firewall.implicitRules.length > 0 && implicitSection(firewall),
  ]);
}

/** Rules of a firewall that is off filter nothing, as a reader who has just added the first one must know. */
function offBanner(options: FirewallPageOptions): Content {
  const { firewall } = options;
  if (!firewall.isSupported || firewall.isEnabled || firewall.rules.length === 0) return '';
  const policy = firewall.inboundPolicy === 'drop' ? 'dropped' : 'allowed';
  return banner({
    tone: 'warn',
    title: 'Switch the firewall on to apply these rules',
    text: `It is off, so all traffic passes. Once it is on, inbound traffic that no rule matches is ${policy}.`,
    actions: switchButton(options),
  });
}

function stateOf({ firewall, nowMs }: FirewallPageOptions): { tone: Tone; text: Content } {
  if (!firewall.isSupported) return { tone: 'neutral', text: 'Not filtered.' };
  if (firewall.status === 'failed')
    return { tone: 'bad', text: 'The last change could not be applied. Save it again, or contact support.' };
  if (firewall.status === 'pending') return { tone: 'info', text: 'The last change is being applied.' };
  if (!firewall.isEnabled) return { tone: 'neutral', text: 'Switched off: all traffic passes.' };
  const count = firewall.rules.length;
  return {
    tone: 'good',
    text: [
      `Filtering by ${formatCount(count)} ${count === 1 ? 'rule' : 'rules'}, applied `,
      moment(firewall.appliedAt?.getTime(), nowMs),
      '.',
    ],
  };
}

function switchButton({ visitor, server, firewall }: FirewallPageOptions): Content {
  if (!firewall.isSupported) return '';
  const action = `/client/servers/${server.id}/firewall/switch`;
  const { csrfToken } = visitor;
  const fields = (enabled: string) => ({ version: firewall.version, enabled });
  if (!firewall.isEnabled)
    return actionButton({ action, csrfToken, label: 'Switch on', kind: 'primary', fields: fields('yes') });
  return askButton(
    {
      ...{
        id: 'switch-off',
        label: 'Switch off',
        title: 'Switch the firewall off?',
        openKind: 'button' as const,
      },
      ...{ action, csrfToken, fields: fields('no') },
    },
    'All traffic passes until you switch it on again. The rules are kept.',
  );
}

const titles: Record<Direction, string> = { inbound: 'Inbound', outbound: 'Outbound' };
const verdicts = { accept: 'allowed', drop: 'dropped' } as const;

/** In the words of the form. */
const actionBadge = (action: keyof typeof verdicts) =>
  action === 'accept' ? badge('good', 'allow') : badge('warn', 'drop');

function rulesSection(options: FirewallPageOptions, direction: Direction): Html {
  const { firewall } = options;
  const rules = firewall.rules.filter((rule) => rule.direction === direction);
  const policy = direction === 'inbound' ? firewall.inboundPolicy : firewall.outboundPolicy;
  return section(
    {
      title: titles[direction],
      description: `The first matching rule decides. Default action: ${policy === 'accept' ? 'allow' : 'drop'}.`,
    },
    table<StoredRule>({
      caption: `${titles[direction]} rules`,
      card: { title: 'action', line: ['protocol', 'ports', 'peers'], without: ['position'] },
      columns: [
        { key: 'position', header: '#', kind: 'figure', cell: (rule) => formatCount(rule.position) },
        cellColumn('action', 'Action', (rule) => actionBadge(rule.action)),
        cellColumn('protocol', 'Protocol', (rule) => firewallProtocolTitle(rule.protocol)),
        codeColumn('ports', 'Ports', (rule) => rule.ports ?? 'all'),
        codeColumn('peers', direction === 'inbound' ? 'From' : 'To', (rule) => peersOf(rule)),
        { key: 'description', header: 'Description', kind: 'prose', cell: (rule) => rule.description },
        actionsColumn('change', (rule) => (firewall.isSupported ? ruleButtons(options, rule.id) : '')),
      ],
      rows: rules,
      rowForm: (rule) =>
        firewall.isSupported && options.edit?.ruleId === rule.id && editForm(options, rule, options.edit),
      empty: {
        title: 'No rules',
        text: `All ${direction} traffic is ${verdicts[policy]}${firewall.isEnabled ? '' : ' once the firewall is switched on'}.`,
      },
    }),
  );
}

function peersOf(rule: Rule): Content {
  if (rule.peers.length === 0) return 'all addresses';
  return rule.peers.map((peer, index) => [index > 0 && ' ', code(peer)]);
}

function editForm({ visitor, server, firewall }: FirewallPageOptions, rule: StoredRule, edit: EditedRule) {
  const path = `/client/servers/${server.id}/firewall`;
  return editRuleForm({
    action: `${path}/edit`,
    cancelHref: `${path}#edit-${rule.id}`,
    csrfToken: visitor.csrfToken,
    version: firewall.version,
    rule,
    edit,
  });
}

function ruleButtons({ visitor, server, firewall }: FirewallPageOptions, ruleId: number): Html {
  const button = (label: string, fields: Record<string, string | number>, action: string) =>
    actionButton({
      action: `/client/servers/${server.id}/firewall/${action}`,
      csrfToken: visitor.csrfToken,
      label,
      fields: { version: firewall.version, rule: ruleId, ...fields },
    });
  const remove = askButton(
    {
      id: `remove-rule-${ruleId}`,
      label: 'Remove',
      title: 'Remove this rule?',
      openKind: 'button',
      action: `/client/servers/${server.id}/firewall/remove`,
      csrfToken: visitor.csrfToken,
      fields: { version: firewall.version, rule: ruleId },
    },
    'The rules after it then decide about this traffic, also for open connections.',
  );
  const href = `/client/servers/${server.id}/firewall?edit=${ruleId}`;
  return html`<span id="edit-${ruleId}">${link(href, 'Edit', { kind: 'button' })}</span>${button('Up', { by: -1 }, 'move')}${button('Down', { by: 1 }, 'move')}${remove}`;
}

function addSection({ visitor, server, firewall, refused }: FirewallPageOptions): Html {
  return section({ title: 'Add a rule', id: 'add' }, [
    presetButtons({ visitor, server, firewall }),
    addForm({
      action: `/client/servers/${server.id}/firewall/add`,
      csrfToken: visitor.csrfToken,
      version: firewall.version,
      ...refused,
    }),
  ]);
}

/** Rules that most servers need. */
const presets = [
  { label: 'SSH', protocol: 'tcp', ports: '22' },
  { label: 'HTTP', protocol: 'tcp', ports: '80' },
  { label: 'HTTPS', protocol: 'tcp', ports: '443' },
  { label: 'Ping', protocol: 'icmp', ports: null },
] as const;

/** One click each; those that are there already are left out. */
function presetButtons({
  visitor,
  server,
  firewall,
}: Pick<FirewallPageOptions, 'visitor' | 'server' | 'firewall'>): Content {
  const missing = presets.filter(
    ({ protocol, ports }) =>
      !firewall.rules.some(
        (rule) =>
          rule.direction === 'inbound' &&
          rule.action === 'accept' &&
          rule.protocol === protocol &&
          rule.ports === ports &&
          rule.peers.length === 0,
      ),
  );
  if (missing.length === 0) return '';
  return html`<div class="actions">${missing.map(({ label, protocol, ports }) =>
    actionButton({
      action: `/client/servers/${server.id}/firewall/add`,
      csrfToken: visitor.csrfToken,
      label: `Allow ${label}`,
      fields: {
        ...{ version: firewall.version, direction: 'inbound', action: 'accept' },
        ...{ protocol, ports: ports ?? '', peers: '', description: label },
      },
    }),
  )}</div>`;
}

function policiesSection({ visitor, server, firewall }: FirewallPageOptions): Html {
  const select = (name: string, label: string, value: string) =>
    field({
      kind: 'select',
      name,
      label,
      required: true,
      value,
      options: [
        { value: 'accept', label: 'Allow' },
        { value: 'drop', label: 'Drop' },
      ],
    });
  return section(
    {
      title: 'Default action',
      id: 'policies',
      description: 'Before you drop incoming traffic, add a rule for your own access, for example SSH.',
    },
    form(
      {
        action: `/client/servers/${server.id}/firewall/policies`,
        csrfToken: visitor.csrfToken,
        submit: 'Save',
        submitKind: 'button',
      },
      [
        hiddenField('version', firewall.version),
        select('inbound', 'Inbound', firewall.inboundPolicy),
        select('outbound', 'Outbound', firewall.outboundPolicy),
      ],
    ),
  );
}

function implicitSection(firewall: EffectiveFirewall): Html {
  return section(
    {
      title: 'Platform rules',
      description: 'Applied before your rules in every firewall that is switched on.',
    },
    table<EffectiveFirewall['implicitRules'][number]>({
      caption: 'Platform rules',
      card: { line: ['direction', 'action'] },
      refreshSeconds: 0,
      columns: [
        { key: 'description', header: 'Rule', kind: 'prose', cell: (rule) => rule.description },
        cellColumn('direction', 'Direction', (rule) => titles[rule.direction]),
        cellColumn('action', 'Action', (rule) => actionBadge(rule.action)),
      ],
      rows: firewall.implicitRules,
      empty: { title: 'None', text: 'The platform adds no rules.' },
    }),
  );
}
