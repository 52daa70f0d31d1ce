/** The forms of a firewall rule: one that adds it, and one in its row that edits it. */
import { firewallProtocols, firewallProtocolTitle } from '#contracts/ip-protocols.ts';
import { markOf, type Rule, type StoredRule } from '#operations/firewall/index.ts';
import { type Content, field, form, type Html, hiddenField, html, link } from '#service-kit/pages/index.ts';
import { upperFirst } from '../../parts/index.ts';
import type { FormFault } from '../networks/network-frame.ts';

/** A rule as it was typed. */
export type TypedRule = ReturnType<typeof typedOf>;

/** What is edited: nothing but its id at first, what was typed and why it was refused afterwards. */
export interface EditedRule {
  ruleId: number;
  typed?: TypedRule;
  fault?: FormFault;
  /** The mark of the rule that the editor saw; the present one when absent. */
  seen?: string;
  /** Another person has changed it meanwhile. */
  isChanged?: boolean;
}

const directions = [
  ['inbound', 'Inbound'],
  ['outbound', 'Outbound'],
] as const;
const verdicts = [
  ['accept', 'Allow'],
  ['drop', 'Drop'],
] as const;
const protocols = [...firewallProtocols.filter((name) => name !== 'any'), 'any' as const].map(
  (name) => [name, upperFirst(firewallProtocolTitle(name))] as const,
);

/** Faults of these stand beside their field. */
const ownFaults = ['ports', 'peers', 'description'];

interface Given {
  typed?: Partial<TypedRule> | undefined;
  fault?: FormFault | undefined;
}

const formError = ({ fault }: Given) =>
  fault && !ownFaults.includes(fault.field ?? '') ? fault.message : undefined;

/** The fields of a rule. In a row there is room for one line, so hints are left to the form that adds. */
function ruleFields(prefix: string, { typed = {}, fault }: Given, isRow: boolean): Content {
  const errorOf = (name: string) => (fault?.field === name ? fault.message : undefined);
  const id = (name: string) => `${prefix}-${name}`;
  const select = (name: keyof TypedRule, label: string, options: readonly (readonly [string, string])[]) =>
    field({
      kind: 'select',
      id: id(name),
      name,
      label,
      required: true,
      value: typed[name],
      options: options.map(([value, text]) => ({ value, label: text })),
    });
  const peers = { id: id('peers'), name: 'peers', label: 'Source or destination', isCode: true } as const;
  const given = { value: typed.peers, error: errorOf('peers') };
  return [
    select('direction', 'Direction', directions),
    select('action', 'Action', verdicts),
    select('protocol', 'Protocol', protocols),
    field({
      id: id('ports'),
      name: 'ports',
      label: 'Ports',
      ...(isRow
        ? { autofocus: fault === undefined, placeholder: 'all' }
        : { hint: 'Destination port such as 443, or a range such as 8000-9000. Leave empty for all ports.' }),
      isCode: true,
      maxLength: 11,
      value: typed.ports,
      error: errorOf('ports'),
    }),
    isRow
      ? field({ ...peers, ...given, placeholder: 'all addresses' })
      : field({
          ...peers,
          ...given,
          kind: 'textarea',
          hint: 'Addresses or prefixes, one per line. Leave empty for all addresses.',
          rows: 2,
        }),
    field({
      id: id('description'),
      name: 'description',
      label: 'Description',
      maxLength: 80,
      value: typed.description,
      error: errorOf('description'),
    }),
  ];
}

/** Adds a rule after all others. */
export function addForm(options: Given & { action: string; csrfToken: string; version: number }): Html {
  const { action, csrfToken, version } = options;
  return form({ action, csrfToken, submit: 'Add rule', error: formError(options) }, [
    hiddenField('version', version),
    ruleFields('field', options, false),
  ]);
}

export interface EditRuleOptions {
  action: string;
  cancelHref: string;
  csrfToken: string;
  version: number;
  rule: StoredRule;
  edit: EditedRule;
}

/** Edits a rule in its row: Enter saves, Escape leaves. It carries what its reader saw of the rule. */
export function editRuleForm({ action, cancelHref, csrfToken, version, rule, edit }: EditRuleOptions): Html {
  const typed = edit.typed ?? typedOf(rule);
  const error = edit.isChanged
    ? `This rule was changed while you edited it. It is now: ${inWords(rule)}. What you typed is kept; save to replace it.`
    : formError(edit);
  return html`<div id="edit-${rule.id}">${form(
    {
      action,
      csrfToken,
      layout: 'inline',
      submit: 'Save',
      cancel: html`<span data-cancel>${link(cancelHref, 'Cancel', { kind: 'button' })}</span>`,
      error,
    },
    [
      hiddenField('version', version),
      hiddenField('rule', rule.id),
      hiddenField('seen', edit.seen ?? markOf(rule)),
      ruleFields('edit', { typed, fault: edit.fault }, true),
    ],
  )}</div>`;
}

function typedOf(rule: Rule) {
  const { direction, action, protocol, ports, peers, description } = rule;
  return { direction, action, protocol, ports: ports ?? '', peers: peers.join(' '), description };
}

/** `allow TCP 443 from all addresses`. */
function inWords(rule: Rule): string {
  const verb = rule.action === 'accept' ? 'allow' : 'drop';
  const protocol = rule.protocol === 'any' ? 'any protocol' : rule.protocol.toUpperCase();
  const peers = rule.peers.length === 0 ? 'all addresses' : rule.peers.join(' ');
  return `${verb} ${protocol}${rule.ports === null ? '' : ` ${rule.ports}`} ${rule.direction === 'inbound' ? 'from' : 'to'} ${peers}`;
}
