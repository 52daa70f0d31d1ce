/**
 * Refuses production code that spells a closed list of `contracts/` again: at least half of its names, as texts or as keys of a
 * table, in one file. Otherwise a name that is added is missing in the copy.
 */
import { attackClasses } from '#contracts/attack-classes.ts';
import { webhookEvents } from '#contracts/customer-api/webhook-events.ts';
import { findingSeverities, unableReasons } from '#contracts/findings.ts';
import { protocolNames } from '#contracts/ip-protocols.ts';
import { gapReasons, minuteReasons } from '#contracts/minute-reasons.ts';
import { scanNotes } from '#contracts/port-scan/index.ts';
import type { Tree } from '../tree.ts';

interface ClosedList {
  names: readonly string[];
  /** The list itself, and where single names come about. */
  files: readonly string[];
}

export const closedLists: readonly ClosedList[] = [
  {
    names: attackClasses,
    files: [
      'contracts/attack-classes.ts',
      // Which packets a class consists of, and how the lab makes some.
      'sensor/detector/classify.ts',
      'lab/attack/packet-shapes.ts',
    ],
  },
  { names: findingSeverities, files: ['contracts/findings.ts'] },
  { names: unableReasons, files: ['contracts/findings.ts', 'monitor/vulnerabilities/identify-service.ts'] },
  {
    names: protocolNames,
    // The explorer completes the most used ones.
    files: ['contracts/ip-protocols.ts', 'monitor/explorer/complete.ts'],
  },
  { names: gapReasons, files: ['contracts/minute-reasons.ts', 'sensor/records/index.ts'] },
  { names: minuteReasons, files: ['contracts/minute-reasons.ts'] },
  { names: Object.keys(scanNotes), files: ['contracts/port-scan/index.ts', 'sensor/scanner/run-scan.ts'] },
  { names: webhookEvents.map(({ type }) => type), files: ['contracts/customer-api/webhook-events.ts'] },
];

const production = /^(common|contracts|demo|lab|monitor|operations|sensor|service-kit)\/.*\.ts$/;
const tests = /\.(test|bench|prove)\.ts$|\/testing\//;

/** Each file that spells at least three names of a list, and at least half of them. */
export function findCopies(tree: Tree, lists = closedLists): { file: string; names: string[] }[] {
  const files = tree.files.filter((file) => production.test(file) && !tests.test(file));
  return files.flatMap((file) => {
    const text = tree.read(file);
    return lists.flatMap((list) => {
      const names = list.names.filter((name) => spells(text, name));
      const isCopy = names.length >= Math.max(3, list.names.length / 2) && !list.files.includes(file);
      return isCopy ? [{ file, names }] : [];
    });
  });
}

const spells = (text: string, name: string): boolean =>
  text.includes(name) && new RegExp(`'${name}'|^\\s*${name}: ?['{[(]`, 'm').test(text);
