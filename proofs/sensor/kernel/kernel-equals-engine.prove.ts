/**
 * Proof that the counting program in the kernel gives the engine's numbers: `n` frames, most of them broken, of both kinds of link,
 * counted by both. Planted errors are changes of the program's source; each must show.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { frameBatches, KernelComparison } from '#sensor/testing/kernel-runs.ts';
import { compileKernel, kernelSources, sourceText } from '#tools/compile-kernel.ts';

export const name = 'kernel-equals-engine';

const source = kernelSources[0]!;
const text = sourceText(source);
const framesOfPlanted = 20_000;

/** What is planted: a text of the source, and what takes its place. */
const plantedErrors: readonly (readonly [string, string])[] = [
  ['total < header ||', ''],
  ['at + header > end ?', '0 ?'],
  ['next == TCP && on_wire >= 60', 'next == TCP'],
  ['i < owner->count', 'i < 1'],
  ['if (is_same(&p->source, &p->target))', 'if (!now && is_same(&p->source, &p->target))'],
  ['LINK_BYTES_MAX 1024', 'LINK_BYTES_MAX 32'],
  ['return skb->gso_segs', 'return 1'],
  ['link->at = at + 4;\n\t} else', '} else'],
  ['nibble == 0', 'nibble == 1'],
  ['flags & 16 ? OPENING_ANSWER', '0 ? OPENING_ANSWER'],
  ['bits >> 13 & 1', '0'],
  ['kind == DATAGRAM ?', 'kind == GROUP ?'],
  ['room->length = p->length', 'room->length = 0'],
  ['*bits >> (start & 63)', '*bits >> (start & 31)'],
  ['*known >> 32 == last', '*known'],
  ['t->length - 20)', 't->length)'],
];

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  const difference = findDifference(n, seed);
  if (difference !== null) report(difference);
  const folder = mkdtempSync(join(tmpdir(), 'svc-kernel-'));
  let caught = 0;
  try {
    for (const [from, to] of plantedErrors) {
      if (!text.includes(from)) throw new Error(`the source has no ${from}`);
      const object = join(folder, 'planted.o');
      compileKernel(source, object, text.replace(from, to));
      const shown = findDifference(framesOfPlanted, seed, object);
      report(`planted ${JSON.stringify([from, to])}: ${shown === null ? 'NOT NOTICED' : 'noticed'}`);
      if (shown !== null) caught += 1;
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return {
    claim: 'the kernel counts every frame as the engine does, to the byte',
    tried: n,
    failures: difference === null ? 0 : 1,
    plantedBugsCaught: `${caught} of ${plantedErrors.length}`,
  };
}

/** The first difference in `count` frames, a tenth of them without a link header. */
export function findDifference(count: number, seed: number, object?: string): string | null {
  const random = seededRandom(seed);
  for (const linkType of [1, 101] as const) {
    const comparison = new KernelComparison(linkType, object);
    try {
      const share = linkType === 1 ? 0.9 : 0.1;
      for (const frames of frameBatches({ linkType, count: count * share, random })) {
        const difference = comparison.findDifference(frames);
        if (difference !== null) return difference;
      }
    } finally {
      comparison.close();
    }
  }
  return null;
}
