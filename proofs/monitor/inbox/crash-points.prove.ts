/** `npm run prove -- crash-points`: a crash after each statement of applying uploads, on each engine of facts; `--n` is not used. */
import {
  crashEverywhere,
  doubling,
  engines,
  losing,
  marking,
} from '#monitor/inbox/testing/crash-everywhere.ts';

export const name = 'crash-points';

export async function prove({ report }: { report: (line: string) => void }) {
  let [crashes, failures, caught, planted] = [0, 0, 0, 0];
  const outcomes = new Set<string>();
  const plant = async (what: Promise<{ offences: string[] }>) => {
    planted += 1;
    if ((await what).offences.length > 0) caught += 1;
  };
  for (const [engine, open] of Object.entries(engines)) {
    const found = await crashEverywhere(open);
    for (const line of found.offences) report(`FAULT ${engine}: ${line}`);
    crashes += found.crashes;
    failures += found.offences.length > 0 ? 1 : 0;
    outcomes.add(JSON.stringify(found.outcome));
    await plant(crashEverywhere(open, losing()));
    await plant(crashEverywhere(open, marking, { every: 3 }));
  }
  await plant(crashEverywhere(engines.memory!, doubling, { every: 3 }));
  if (outcomes.size > 1) report('FAULT the engines answer differently');
  return {
    claim:
      'a process that crashes after any statement of applying uploads, and is repeated, leaves what one without a crash does',
    tried: crashes,
    failures: failures + outcomes.size - 1,
    plantedBugsCaught: `${caught} of ${planted}`,
  };
}
