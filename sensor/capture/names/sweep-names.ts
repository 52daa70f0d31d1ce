/** Removes names that nothing uses any more, and gives the others new numbers everywhere. */
import { Field, Flag, flowWords } from '../flows/flow-record.ts';
import type { FlowTable } from '../flows/flow-table.ts';
import type { Ledger } from '../reports/ledger.ts';
import type { FlowClassifier } from './flow-classifier.ts';
import type { NameTable } from './name-table.ts';

/** Everything that has numbers of names. */
export interface NameUsers {
  flows: FlowTable;
  names: NameTable;
  classifier: FlowClassifier;
  usage: Ledger['usage'];
  /** The second of the current frame. */
  now: number;
}

export function sweepNames({ flows, names, classifier, usage, now }: NameUsers): void {
  const { words, highWater } = flows;
  const marks = new Uint8Array(names.count);
  classifier.markNames(marks, now);
  usage.markNames(marks);
  for (let base = 0; base < highWater; base += flowWords) {
    const name = words[base + Field.name]! - 1;
    if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0) marks[name] = 1;
  }
  const renumbered = names.sweep(marks);
  classifier.renumberNames(renumbered);
  usage.renumberNames(renumbered);
  for (let base = 0; base < highWater; base += flowWords) {
    const name = words[base + Field.name]! - 1;
    if ((words[base + Field.flags]! & Flag.alive) !== 0 && name >= 0)
      words[base + Field.name] = renumbered[name]! + 1;
  }
}
