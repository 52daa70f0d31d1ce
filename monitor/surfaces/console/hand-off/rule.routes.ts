/** `/sites/{id}/protection/hand-off/rules`: the requests for one rule, and what operators may change about it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import {
  type Action,
  countSecondsMax,
  holdSecondsMax,
  holdSecondsMin,
  maxSecondsDefault,
  maxSecondsMax,
  prefixesMax,
  type Rule,
  type RuleKind,
  ruleKinds,
  ruleModes,
} from '#monitor/hand-off/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  banner,
  type Content,
  code,
  codeBlock,
  confirm,
  definitionList,
  drawer,
  field,
  form,
  formatDuration,
  type Html,
  hiddenField,
  html,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, notFound, requireConfirmed, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { actionTable } from './action-table.ts';
import type { Refused } from './rule-text.ts';
import { conditionText, inputOf, kindNames, Revision, RuleBody, refusalOf, targetText } from './rule-text.ts';

const actionsShown = 50;
const RuleParams = Type.Object({ ...SiteParams.properties, ruleId: Id });
const path = '/sites/:siteId/protection/hand-off/rules';

const done: Readonly<Record<string, string>> = {
  added: 'Rule added. It is off.',
  saved: 'Saved. It applies to further attacks.',
  off: 'Switched off. Its actions end now.',
  dry_run: 'The rule is a dry run now.',
  on: 'The rule is on.',
};

export function registerHandOffRules(app: App, deps: ConsoleDeps): void {
  const NewQuery = Type.Object({ kind: Type.Optional(Type.Enum([...ruleKinds])) });
  app.get(
    `${path}/new`,
    { schema: { params: SiteParams, querystring: NewQuery } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showNew(deps, reply, site, request.query.kind ?? 'command');
    },
  );

  app.post(path, { schema: { params: SiteParams, body: RuleBody } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const { body } = request;
    try {
      const { id, secret } = await deps.handOff.addRule(viewerOf(request).actor, site.id, inputOf(body));
      if (secret === null) return await reply.redirect(`${hrefOf(site.id, id)}?done=added`, 303);
      // Rendered here instead of a redirect: only this answer contains the secret.
      return await showRule(deps, reply, site, id, { secret });
    } catch (error) {
      const refused = refusalOf(error, body);
      return showNew(deps, reply, site, body.kind, refused);
    }
  });

  app.get(
    `${path}/:ruleId`,
    { schema: { params: RuleParams, querystring: DoneQuery } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return showRule(deps, reply, site, request.params.ruleId);
    },
  );

  app.post(`${path}/:ruleId`, { schema: { params: RuleParams, body: RuleBody } }, async (request, reply) => {
    const { siteId, ruleId } = request.params;
    const { body } = request;
    const site = await siteOf(deps.sites, siteId);
    try {
      const { actor } = viewerOf(request);
      const revision = Number(body.revision);
      if (!(await deps.handOff.changeRule(actor, siteId, ruleId, inputOf(body), revision))) throw noRule();
    } catch (error) {
      if (error instanceof HttpError) throw error;
      return showRule(deps, reply, site, ruleId, { refused: refusalOf(error, body) });
    }
    return reply.redirect(`${hrefOf(siteId, ruleId)}?done=saved`, 303);
  });
  registerSwitches(app, deps);
}

function registerSwitches(app: App, deps: ConsoleDeps): void {
  const find = async (siteId: number, ruleId: number) => {
    const { rules } = await deps.handOff.describeSite(siteId);
    const rule = rules.find(({ id }) => id === ruleId);
    if (!rule) throw noRule();
    return rule;
  };

  const Mode = Type.Object({ ...Revision, mode: Type.Enum([...ruleModes]) });
  app.post(`${path}/:ruleId/mode`, { schema: { params: RuleParams, body: Mode } }, async (request, reply) => {
    const { siteId, ruleId } = request.params;
    const { mode, revision } = request.body;
    const site = await siteOf(deps.sites, siteId);
    const rule = await find(siteId, ruleId);
    if (mode === 'on') requireConfirmed(request.body, rule.name);
    try {
      const { actor } = viewerOf(request);
      if (!(await deps.handOff.switchRule(actor, siteId, ruleId, mode, Number(revision)))) throw noRule();
    } catch (error) {
      if (error instanceof HttpError) throw error;
      return showRule(deps, reply, site, ruleId, { refused: refusalOf(error, {}) });
    }
    return reply.redirect(`${hrefOf(siteId, ruleId)}?done=${mode}`, 303);
  });

  app.post(
    `${path}/:ruleId/delete`,
    { schema: { params: RuleParams, body: Type.Object(Revision) } },
    async (request, reply) => {
      const { siteId, ruleId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const rule = await find(siteId, ruleId);
      requireConfirmed(request.body, rule.name);
      try {
        const { actor } = viewerOf(request);
        await deps.handOff.removeRule(actor, siteId, ruleId, Number(request.body.revision));
      } catch (error) {
        return showRule(deps, reply, site, ruleId, { refused: refusalOf(error, {}) });
      }
      return reply.redirect(`/sites/${siteId}/protection/hand-off?done=removed#rules`, 303);
    },
  );
}

const hrefOf = (siteId: number, ruleId: number) => `/sites/${siteId}/protection/hand-off/rules/${ruleId}`;

const noRule = () => notFound('This rule does not exist.');

async function showNew(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  typedKind: string,
  refused?: Refused,
): Promise<FastifyReply> {
  const { request } = reply;
  const viewer = viewerOf(request);
  if (!viewer.canChange) throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
  const kind = ruleKinds.find((known) => known === typedKind) ?? 'command';
  const { commands, peers } = await deps.handOff.describeSite(site.id);
  return sendConsolePage(
    reply,
    {
      title: `New rule: ${kindNames[kind]}`,
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
    },
    rulePage(request, {
      ...{ site, kind, rule: null, actions: [], commands, peers, viewer, refused },
      nowMs: deps.clock.nowMs(),
    }),
  );
}

async function showRule(
  deps: ConsoleDeps,
  reply: FastifyReply,
  site: Site,
  ruleId: number,
  shown: { refused?: Refused; secret?: string } = {},
): Promise<FastifyReply> {
  const { request } = reply;
  const [{ rules, commands, peers }, actions] = await Promise.all([
    deps.handOff.describeSite(site.id),
    deps.handOff.listActions(site.id, ruleId, rowsLimit(request, actionsShown)),
  ]);
  const rule = rules.find(({ id }) => id === ruleId);
  if (!rule) throw noRule();
  return sendConsolePage(
    reply,
    { title: rule.name, site: { site, page: 'protection' }, status: shown.refused?.status ?? 200, done },
    rulePage(request, {
      ...{ site, kind: rule.kind, rule, actions, commands, peers, ...shown },
      viewer: viewerOf(request),
      nowMs: deps.clock.nowMs(),
    }),
  );
}

interface RulePage {
  site: Site;
  kind: RuleKind;
  /** Null: a new one. */
  rule: Rule | null;
  actions: readonly Action[];
  commands: readonly string[];
  peers: readonly string[];
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
  /** Of a webhook that was just added. */
  secret?: string | null | undefined;
}

/** The page of one rule of hand-off, and of a new one. */
function rulePage(request: FastifyRequest, page: RulePage): Content {
  const { site, kind, rule, viewer, refused, nowMs } = page;
  const path = `/sites/${site.id}/protection/hand-off/rules`;
  const edit = ruleForm({
    ...{ kind, rule, commands: page.commands, peers: page.peers, refused, csrfToken: viewer.csrfToken },
    action: rule ? `${path}/${rule.id}` : path,
  });
  if (!rule)
    return [
      pageHeader({
        title: `New rule: ${kindNames[kind]}`,
        state: { tone: 'neutral', text: `Of ${site.name}. It is off until you switch it to a dry run.` },
      }),
      section({ title: refused ? 'The rule was not added' : 'Rule' }, edit),
    ];
  return [
    pageHeader({
      title: rule.name,
      state: stateOf(rule),
      actions: viewer.canChange && [
        ...switches(rule, viewer, `${path}/${rule.id}/mode`),
        !refused && drawer({ id: 'edit-rule', open: 'Change', title: `Change ${rule.name}` }, edit),
        removeDrawer(rule, viewer, path),
      ],
    }),
    page.secret && secretBanner(page.secret),
    refused && section({ title: 'The rule was not saved' }, edit),
    section({ title: 'Settings' }, settingsOf(rule, nowMs)),
    section(
      { id: 'actions', title: 'Actions' },
      refreshing(
        { id: 'action-list', url: `${path}/${rule.id}`, everySeconds: 10 },
        actionTable(request, { siteId: site.id, actions: page.actions, viewer, nowMs }),
      ),
    ),
  ];
}

function stateOf({ mode }: Rule): { tone: Tone; text: string } {
  if (mode === 'off') return { tone: 'neutral', text: 'Off: it does nothing and notes nothing.' };
  if (mode === 'dry_run')
    return { tone: 'info', text: 'Dry run: it notes what it would do, and does nothing.' };
  return { tone: 'warn', text: 'On: it acts on attacks by itself.' };
}

function secretBanner(secret: string): Content {
  return banner({
    tone: 'info',
    title: 'The signing secret is shown only now',
    text: [
      html`<p>Store it at the receiver. It verifies the header webhook-signature as in Standard Webhooks.</p>`,
      codeBlock({ label: 'Signing secret', code: secret }),
    ],
  });
}

/** The ways from one state to the others. What acts on a network is switched on by typing the name. */
function switches(rule: Rule, { csrfToken }: Viewer, action: string): (Html | false)[] {
  const { revision, name, mode } = rule;
  const fields = (to: string) => ({ mode: to, revision });
  const ends = 'Its actions are undone now, also while an attack goes on.';
  if (mode === 'off')
    return [
      actionButton({ action, csrfToken, label: 'Start dry run', kind: 'primary', fields: fields('dry_run') }),
    ];
  const off = askButton(
    {
      ...{ id: 'switch-off', label: 'Switch off', title: `Switch ${name} off?`, openKind: 'button' as const },
      ...{ action, csrfToken, fields: fields('off') },
    },
    mode === 'on' ? ends : 'It notes no further attacks.',
  );
  if (mode === 'dry_run')
    return [
      drawer(
        { id: 'switch-on', open: 'Switch on', title: `Switch ${name} on`, openKind: 'primary' },
        confirm({
          ...{ action, csrfToken, name, fields: fields('on'), submit: 'Switch on' },
          consequence: html`From now on the monitor acts by itself on ${conditionText(rule)}: it will ${targetText(rule)}. Compare the actions of the dry run first.`,
        }),
      ),
      off,
    ];
  return [
    askButton(
      {
        ...{ id: 'switch-dry', label: 'Back to dry run', title: `Switch ${name} to a dry run?` },
        ...{ openKind: 'button' as const, action, csrfToken, fields: fields('dry_run') },
      },
      ends,
    ),
    off,
  ];
}

function removeDrawer(rule: Rule, { csrfToken }: Viewer, path: string): Html {
  return drawer(
    { id: 'remove-rule', open: 'Remove', title: `Remove ${rule.name}`, openKind: 'danger' },
    confirm({
      action: `${path}/${rule.id}/delete`,
      csrfToken,
      name: rule.name,
      consequence:
        'Its actions are undone now, also while an attack goes on. Ended actions stay in the list.',
      submit: 'Remove rule',
      fields: { revision: rule.revision },
    }),
  );
}

function settingsOf(rule: Rule, nowMs: number): Content {
  return definitionList([
    { term: 'Does', value: targetText(rule) },
    ...hopsOf(rule),
    { term: 'For', value: conditionText(rule) },
    { term: 'Allowed addresses', value: rule.prefixes.map((prefix) => html`${code(prefix)} `) },
    { term: 'Ends', value: `${formatDuration(rule.holdSeconds)} after the attack has recovered` },
    { term: 'Changed', value: html`${moment(rule.changedAtMs, nowMs)} by ${rule.changedBy}` },
  ]);
}

function hopsOf({ target: { nextHop4, nextHop6 } }: Rule) {
  const hops = [nextHop4, nextHop6].filter((hop) => hop !== undefined);
  return hops.length > 0 ? [{ term: 'Next hop', value: hops.map((hop) => html`${code(hop)} `) }] : [];
}

// The form of a rule.

interface RuleForm {
  action: string;
  csrfToken: string;
  kind: RuleKind;
  /** Null: a new one. */
  rule: Rule | null;
  /** Programs that rules may start. */
  commands: readonly string[];
  /** BGP peers that rules may announce routes to. */
  peers: readonly string[];
  refused: Refused | undefined;
}

function ruleForm(options: RuleForm): Html {
  const { action, csrfToken, kind, rule, refused } = options;
  const hasFields = refused !== undefined && Object.keys(refused.fields).length > 0;
  const typed = (name: string, stored: string) => refused?.typed[name] ?? stored;
  const errorOf = (name: string) => ({ error: refused?.fields[name] });
  return form(
    {
      action,
      csrfToken,
      submit: rule ? 'Save rule' : 'Add rule',
      error: refused && !hasFields ? refused.message : undefined,
    },
    [
      hiddenField('revision', rule?.revision ?? 0),
      hiddenField('kind', kind),
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 80,
        value: typed('name', rule?.name ?? ''),
        ...errorOf('name'),
      }),
      targetField(options, typed),
      field({
        kind: 'textarea',
        name: 'prefixes',
        label: 'Allowed addresses',
        required: true,
        hint: `Prefixes, one per line, such as 192.0.2.0/24; at most ${prefixesMax}. The rule never acts on another address.`,
        rows: Math.max(3, Math.min(12, (rule?.prefixes.length ?? 0) + 1)),
        isCode: true,
        value: typed('prefixes', rule?.prefixes.join('\n') ?? ''),
        ...errorOf('prefixes'),
      }),
      field({
        kind: 'select',
        name: 'direction',
        label: 'Attacks',
        value: typed('direction', rule?.direction ?? 'inbound'),
        options: [
          { value: 'inbound', label: 'on these addresses' },
          { value: 'outbound', label: 'by these addresses' },
          ...(kind === 'filter' ? [] : [{ value: 'both', label: 'on or by these addresses' }]),
        ],
        ...errorOf('direction'),
      }),
      peakFields(rule, typed, errorOf),
      field({
        name: 'hold_seconds',
        label: 'Hold time in seconds',
        required: true,
        hint: `${holdSecondsMin} to ${holdSecondsMax}. The action ends when the attack has been over for so long.`,
        value: typed('hold_seconds', String(rule?.holdSeconds ?? 300)),
        ...errorOf('hold_seconds'),
      }),
    ],
  );
}

type Typed = (name: string, stored: string) => string;

function peakFields(
  rule: Rule | null,
  typed: Typed,
  errorOf: (name: string) => { error: string | undefined },
): Content {
  return [
    field({
      name: 'min_pps',
      label: 'Minimum peak (packets/s)',
      hint: 'Such as 200k. Leave both peaks empty for every attack; with both, one of them is enough.',
      value: typed('min_pps', rule?.minPps?.toString() ?? ''),
      ...errorOf('min_pps'),
    }),
    field({
      name: 'min_bps',
      label: 'Minimum peak (bit/s)',
      hint: 'Such as 1.5G.',
      value: typed('min_bps', rule?.minBps?.toString() ?? ''),
      ...errorOf('min_bps'),
    }),
  ];
}

function targetField(options: RuleForm, typed: Typed): Content {
  const { kind, rule, commands, refused } = options;
  if (kind === 'blackhole' || kind === 'flowspec') return bgpFields(options, typed);
  if (kind === 'filter') return filterFields(options, typed);
  if (kind === 'webhook')
    return field({
      kind: 'url',
      name: 'url',
      label: 'URL',
      required: true,
      isCode: true,
      placeholder: 'https://example.com/hook',
      hint: 'Must be https and on the public internet. Calls are signed as in Standard Webhooks; the secret is shown once.',
      value: typed('url', rule?.target.url ?? ''),
      error: refused?.fields.url,
    });
  const chosen = typed('command', rule?.target.command ?? commands[0] ?? '');
  const known = commands.includes(chosen) || chosen === '' ? commands : [chosen, ...commands];
  return [
    commands.length === 0 &&
      html`<p class="hint">There are no commands: set SVC_HAND_OFF_COMMANDS to a folder with executable files.</p>`,
    field({
      kind: 'select',
      name: 'command',
      label: 'Command',
      hint: 'A file of the folder of commands. It is started with the address, the direction, packets a second, and ban or unban.',
      value: chosen,
      options: known.map((name) => ({ value: name, label: name })),
      error: refused?.fields.command,
    }),
  ];
}

function filterFields({ rule, refused }: RuleForm, typed: Typed): Content {
  const number = (name: string, label: string, stored: number | undefined, hint: string) =>
    field({
      ...{ kind: 'number', name, label, hint },
      value: typed(name, stored === undefined ? '' : String(stored)),
      error: refused?.fields[name],
    });
  const { countSeconds, maxSeconds, lengthMin, lengthMax } = rule?.target ?? {};
  return [
    html`<p class="hint">Sensors with SVC_SENSOR_FILTER=1 drop the attack at their uplinks. Addresses that had exchanged data with the server before the attack still get through.</p>`,
    number(
      ...(['count_seconds', 'Count before dropping (seconds)', countSeconds] as const),
      `0 to ${countSecondsMax}. Leave empty to drop only when an operator chooses to.`,
    ),
    number(
      ...(['max_seconds', 'Time limit in seconds', maxSeconds ?? maxSecondsDefault] as const),
      `${holdSecondsMin} to ${maxSecondsMax}. The action ends then, also while the attack goes on.`,
    ),
    number('length_min', 'Minimum packet length (bytes)', lengthMin, 'Leave empty for any.'),
    number('length_max', 'Maximum packet length (bytes)', lengthMax, 'Leave empty for any.'),
  ];
}

function bgpFields({ kind, rule, peers, refused }: RuleForm, typed: Typed): Content {
  const chosen = typed('peer', rule?.target.peer ?? peers[0] ?? '');
  const known = peers.includes(chosen) || chosen === '' ? peers : [chosen, ...peers];
  const hop = (name: string, label: string, stored: string | undefined, placeholder: string) =>
    field({
      ...{ name, label, placeholder, isCode: true, maxLength: 64 },
      value: typed(name, stored ?? ''),
      error: refused?.fields[name],
      hint: 'Needed where the list has such prefixes. Routers must drop what goes to it.',
    });
  return [
    peers.length === 0 &&
      html`<p class="hint">There are no BGP peers: set SVC_HAND_OFF_BGP_PEERS, such as 64512@127.0.0.1:179.</p>`,
    field({
      kind: 'select',
      name: 'peer',
      label: 'BGP peer',
      hint:
        kind === 'blackhole'
          ? 'It is told the address with the community 65535:666 (RFC 7999).'
          : 'It is told filters of the attack, which drop (Flowspec, RFC 8955).',
      value: chosen,
      options: known.map((name) => ({ value: name, label: name })),
      error: refused?.fields.peer,
    }),
    kind === 'blackhole' && [
      hop('next_hop4', 'Next hop, IPv4', rule?.target.nextHop4, '192.0.2.1'),
      hop('next_hop6', 'Next hop, IPv6', rule?.target.nextHop6, '100::1'),
    ],
  ];
}
