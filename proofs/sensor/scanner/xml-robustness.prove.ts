/**
 * Proof with broken outputs of nmap: no broken document stops the reader, names a port as open that the document does not
 * hold as open, or becomes a finished run with ports of unknown state.
 *
 * Documents are recorded outputs with bytes, tags and attributes changed, cut, repeated and moved. What is open is judged
 * by a reader of its own: regular expressions over the text that the parser took. The same comparison with a planted
 * reader must find each plant, or the proof shows nothing.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { createNmapXmlReader, type NmapReport } from '#sensor/scanner/nmap-xml.ts';
import { corpusFolder } from '#sensor/testing/corpus.ts';

export const name = 'scan-xml-robustness';

type Reader = (text: string, transport: 'tcp' | 'udp') => NmapReport;

const readReport: Reader = (text, transport) => {
  const reader = createNmapXmlReader(transport);
  const middle = Math.floor(text.length / 2);
  reader.write(text.slice(0, middle));
  reader.write(text.slice(middle));
  return reader.report();
};

/** Readers with a fault each. */
const plants: readonly Reader[] = [
  (text, transport) => {
    const report = readReport(text.replaceAll('closed|filtered', 'open'), transport);
    return report;
  },
  (text, transport) => ({ ...readReport(text, transport), isFinished: true }),
  (text, transport) => {
    const report = readReport(text, transport);
    return { ...report, open: report.open.map((one) => ({ ...one, product: '\u001b[2J' })) };
  },
];

export async function prove({
  n,
  seed,
  report,
}: {
  n: number;
  seed: number;
  report: (line: string) => void;
}) {
  const folder = join(corpusFolder(), 'nmap');
  const files = readdirSync(folder).filter((file) => file.endsWith('.xml'));
  const seeds = files.map((file) => readFileSync(join(folder, file), 'utf8'));
  const caught = plants.map(() => false);
  let failures = 0;
  for (let i = 0; i < n; i += 1) {
    const random = seededRandom(seed * 1_000_003 + i);
    const text = mutate(seeds, random);
    const transport = random() < 0.5 ? 'tcp' : 'udp';
    const offence = judge(text, transport, readReport);
    if (offence !== null) {
      failures += 1;
      report(`document ${i}: ${offence}`);
    }
    for (const [at, plant] of plants.entries()) caught[at] ||= judge(text, transport, plant) !== null;
  }
  return {
    claim: `broken outputs of nmap: no crash, nothing wrong called open, no text unbounded, none finished that is not`,
    tried: n,
    failures,
    plantedBugsCaught: `${caught.filter(Boolean).length} of ${plants.length}`,
  };
}

/** What is wrong with how this reader takes the document; null when nothing is. */
function judge(text: string, transport: 'tcp' | 'udp', read: Reader): string | null {
  let report: NmapReport;
  try {
    report = read(text, transport);
  } catch (error) {
    return `the reader failed: ${error}`;
  }
  for (const one of report.open) {
    const state = new RegExp(
      `<port[^<]*portid\\s*=\\s*["']0*${one.port}["'][^<]*>(?:(?!</port>)[\\s\\S])*?<state[^<]*state\\s*=\\s*["']open["']`,
    );
    if (!state.test(text)) return `${one.port} is called open`;
    const answers = [one.service, one.product, one.version, one.extraInfo, one.tunnel, ...one.cpe];
    if (answers.some((answer) => answer !== null && (answer.length > 256 || /\p{Cc}/u.test(answer))))
      return `an answer of ${one.port} is not one bounded line`;
  }
  const counted = report.answered + report.filtered + report.silent;
  const hasEnd = /<finished[^<]*exit\s*=\s*["']success["']/.test(text) && text.includes('</nmaprun>');
  if (report.isFinished && (counted !== report.asked || !hasEnd)) return 'it is called finished';
  return null;
}

/** A recorded document with one to six changes. */
function mutate(seeds: readonly string[], random: () => number): string {
  const below = (limit: number) => Math.floor(random() * limit);
  let text = seeds[below(seeds.length)]!;
  for (let changes = 1 + below(6); changes > 0; changes -= 1) text = change(text, seeds, below);
  return text;
}

const pieces = [
  ...[
    '<',
    '>',
    '"',
    "'",
    '&',
    '&amp;',
    '&#0;',
    '&e;',
    ']]>',
    '<!--',
    '-->',
    '<![CDATA[',
    '\u0000',
    '\ufffe',
    '😀',
  ],
  ...['state="open"', 'state="closed|filtered"', 'state="open|filtered"', 'portid="65536"', 'portid="-1"'],
  ...[
    'count="99999999999"',
    'numservices="1e9"',
    'conf="11"',
    'method="probed"',
    '</nmaprun>',
    '<host endtime="1">',
  ],
  ...['<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>', 'exit="success"', '<cpe>cpe:/a:x</cpe>'],
];

function change(text: string, seeds: readonly string[], below: (limit: number) => number): string {
  const at = below(text.length + 1);
  const end = Math.min(text.length, at + below(80));
  switch (below(7)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + text.slice(end);
    case 2:
      return text.slice(0, at) + pieces[below(pieces.length)] + text.slice(end);
    case 3:
      return text.slice(0, at) + String.fromCharCode(below(0x300)) + text.slice(at + 1);
    case 4:
      return text.slice(0, end) + text.slice(at, end).repeat(1 + below(4)) + text.slice(end);
    case 5: {
      const other = seeds[below(seeds.length)]!;
      const from = below(other.length);
      return text.slice(0, at) + other.slice(from, from + below(600)) + text.slice(at);
    }
    default: {
      const states = ['open', 'closed', 'filtered', 'closed|filtered', 'open|filtered'];
      return text.replace(/state="[^"]*"/, `state="${states[below(states.length)]}"`);
    }
  }
}
