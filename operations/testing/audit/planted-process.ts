/** A process of the proof: judges the routes of operations without one call that writes to the audit trail. */
import { findRecordCalls, removeCall } from '#service-kit/audit/testing/record-calls.ts';

const index = Number(process.argv[2]);
const call = findRecordCalls('operations')[index]!;
removeCall(call);
// Loaded after the hook, or the call would be in already.
const { createStage } = await import('./stage.ts');
const { judgeAll } = await import('./judge.ts');
await using stage = await createStage();
const { faults } = await judgeAll(stage, true);
process.stdout.write(`${JSON.stringify(faults)}\n`);
