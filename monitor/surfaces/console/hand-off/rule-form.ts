/** The form of a rule. */
import {
  holdSecondsMax,
  holdSecondsMin,
  prefixesMax,
  type Rule,
  type RuleKind,
} from '#monitor/hand-off/index.ts';
import { type Content, field, form, type Html, hiddenField, html } from '#service-kit/pages/index.ts';
import type { Refused } from './form-body.ts';

export interface RuleForm {
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

export function ruleForm(options: RuleForm): Html {
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
          { value: 'both', label: 'on or by these addresses' },
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
