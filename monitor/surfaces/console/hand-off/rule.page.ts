/** The page of one rule of hand-off, and of a new one. */
import type { FastifyRequest } from 'fastify';
import type { Action, Rule, RuleKind } from '#monitor/hand-off/index.ts';
import type { Site } from '#monitor/sites/index.ts';
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
  formatDuration,
  type Html,
  html,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { actionTable } from './action-table.ts';
import type { Refused } from './form-body.ts';
import { ruleForm } from './rule-form.ts';
import { conditionText, kindNames, targetText } from './rule-text.ts';

export interface RulePage {
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

export function rulePage(request: FastifyRequest, page: RulePage): Content {
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
