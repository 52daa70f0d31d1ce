/** What the process of a proof does: judges a program's changes without each call that writes to the audit trail. */
import { findRecordCalls } from './record-calls.ts';
import { switchCalls, takeOutCalls } from './take-out-calls.ts';

/** A program's changes, and what is wrong with what each of them leaves. */
interface Judges<Stage extends AsyncDisposable> {
  createStage(): Promise<Stage>;
  judgeAll(stage: Stage): Promise<{ routes: number; faults: string[] }>;
  judgeOne(stage: Stage, thing: string): Promise<string[]>;
  listThings(stage: Stage): string[];
}

/** Prints the outcome as a line of JSON. `load` imports the program, which must not be loaded before. */
export async function runPlanted<Stage extends AsyncDisposable>(
  program: string,
  load: () => Promise<Judges<Stage>>,
): Promise<void> {
  const calls = findRecordCalls(program);
  const switches = switchCalls(calls);
  // Loaded after the switches, or the calls would be in already.
  const { createStage, judgeAll, judgeOne, listThings } = await load();
  await using stage = await createStage();
  const { routes, faults } = await judgeAll(stage);
  const n = Number(process.argv[2]);
  const judge = (thing: string) => judgeOne(stage, thing);
  const taken = await takeOutCalls({ calls, switches, n, things: listThings(stage), judge });
  process.stdout.write(`${JSON.stringify({ ...taken, faults: [...faults, ...taken.faults], routes })}\n`);
}
