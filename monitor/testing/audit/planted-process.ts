/** The process of the proof: judges the routes of the monitor without each call that writes to the audit trail. */
import { findRecordCalls } from '#service-kit/audit/testing/record-calls.ts';
import { switchCalls, takeOutCalls } from '#service-kit/audit/testing/take-out-calls.ts';

const calls = findRecordCalls('monitor');
const switches = switchCalls(calls);
// Loaded after the switches, or the calls would be in already.
const { createStage } = await import('./cases.ts');
const { judgeAll, judgeOne, listThings } = await import('./judge.ts');
await using stage = await createStage();
const { routes, faults } = await judgeAll(stage);
const taken = await takeOutCalls({
  ...{ calls, switches, n: Number(process.argv[2]), things: listThings(stage) },
  judge: (thing) => judgeOne(stage, thing),
});
process.stdout.write(`${JSON.stringify({ ...taken, faults: [...faults, ...taken.faults], routes })}\n`);
