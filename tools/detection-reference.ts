/**
 * Writes docs/detection-reference.md from the code: classes, kinds of packets, thresholds, rules and constants.
 *
 * usage: sh tools/with-node tools/detection-reference.ts
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { attackClasses, attackClassRows, type ClassFilter } from '#contracts/attack-classes.ts';
import { protocolTitle } from '#contracts/ip-protocols.ts';
import { metrics, ordinaryRules, thresholdDefaults, triggers } from '#contracts/sensor-api/detection.ts';
import { Kind } from '#sensor/attack-counters/index.ts';
import { kindsByClass, ruleOfKind } from '#sensor/detector/index.ts';
import { constants } from './detection-constants.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const file = `${root}docs/detection-reference.md`;

const table = (headers: readonly string[], rows: readonly (readonly string[])[]) => [
  `| ${headers.join(' | ')} |`,
  `|${headers.map(() => '---').join('|')}|`,
  ...rows.map((row) => `| ${row.join(' | ')} |`),
];
const code = (text: string) => `\`${text}\``;
/** `twoWaySegment`: two-way segment. */
const wordsOf = (name: string) =>
  name
    .replace('twoWay', 'two-way ')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replace('icmp', 'ICMP')
    .replace('  ', ' ');
const kindName = (kind: number) =>
  wordsOf(Object.keys(Kind).find((name) => Kind[name as keyof typeof Kind] === kind)!);

function classRows(): string[][] {
  const kinds = new Map(kindsByClass.map(([name, list]) => [name, list.map(kindName).join(', ')]));
  const others: Readonly<Record<string, string>> = {
    connection_flood: 'completed connections that carry almost nothing',
    high_volume: 'ordinary traffic over a threshold; severity `info`',
    other: 'what has no class of its own; with severity `info` a scan',
  };
  return attackClasses.map((name) => [
    code(name),
    [kinds.get(name), others[name]].filter(Boolean).join('; '),
    filterText(attackClassRows[name].filter),
  ]);
}

const flagNames = { SYN: 0x02, RST: 0x04, ACK: 0x10 };

/** `TCP with SYN and without ACK`. */
function filterText(filter: ClassFilter | undefined): string {
  if (!filter) return '–';
  const { protocol, ofVector, flags, isFragment } = filter;
  const named = (bits: number) =>
    Object.entries(flagNames).flatMap(([name, bit]) => (bits & bit ? [name] : []));
  const words = [
    protocol ? protocolTitle(protocol[0]) : isFragment ? 'fragments' : 'the IP protocols of the vector',
    ofVector === 'source_ports' && 'from the source ports of the vector',
    flags && `with ${named(flags.set).join(' and ')}`,
    flags && flags.clear !== 0 && `and without ${named(flags.clear).join(' and ')}`,
  ];
  return words.filter(Boolean).join(' ');
}

const kindRows = () =>
  Object.values(Kind).map((kind) => [
    kindName(kind),
    ruleOfKind[kind] ? ordinaryRules[ruleOfKind[kind]] : '–',
  ]);

function thresholdRows(): string[][] {
  const text = (value: number | null) => (value === null ? '–' : value.toLocaleString('en-US'));
  return metrics.map((metric) => [
    code(metric),
    text(thresholdDefaults.inbound[metric]),
    text(thresholdDefaults.outbound[metric]),
  ]);
}

/** The value of `const name = value;` in a file of the sensor. */
function readValue(path: string, name: string): string {
  const source = readFileSync(`${root}sensor/${path}`, 'utf8');
  const found = new RegExp(`^(?:export )?const ${name} = ([^;]+);`, 'm').exec(source);
  if (!found)
    throw new Error(`sensor/${path} has no constant ${name}; tools/detection-constants.ts names it`);
  return Number(found[1]!.replaceAll('_', '')).toLocaleString('en-US');
}

function render(): string {
  const lines = [
    '# Tables of attack detection',
    '',
    'Made from the code by `tools/detection-reference.ts`. [detection.md](detection.md) says how they are used.',
    '',
    '## Classes',
    'In the order in which they are considered. `sensor/detector/classify.ts`. A Flowspec rule drops by the filter, beside the address;',
    'with a dash it does not act.',
    '',
    ...table(['Class', 'Packets', 'Filter'], classRows()),
    '',
    '## Kinds of packets',
    'Each packet has one kind (`sensor/attack-counters/packet-kind.ts`). What is taken off is no part of an attack; of a kind with a dash',
    'nothing is.',
    '',
    ...table(['Kind', 'Taken off as'], kindRows()),
    '',
    '## Default thresholds',
    'Packets, bits or connections of one address and second. A dash is not judged.',
    '',
    ...table(['Metric', 'Inbound', 'Outbound'], thresholdRows()),
    '',
    '## Rules',
    'Any of them makes an incident.',
    '',
    ...table(
      ['Rule', 'Seconds'],
      Object.entries(triggers).map(([name, text]) => [code(name), text]),
    ),
    '',
    '## Constants',
    '',
    ...table(
      ['Constant', 'Value', 'Name', 'File in `sensor/`'],
      constants.map(([path, name, meaning]) => [meaning, readValue(path, name), code(name), code(path)]),
    ),
  ];
  return `${lines.join('\n')}\n`;
}

/** What is wrong with docs/detection-reference.md; null if it is current. */
export function checkDetectionTables(): string | null {
  const current = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return current === render()
    ? null
    : 'docs/detection-reference.md is out of date; make it anew: sh tools/with-node tools/detection-reference.ts';
}

if (import.meta.main) writeFileSync(file, render());
