/**
 * A process that rotates its credential and kills itself in between.
 *
 * It counts the calls with lasting effects: requests, and writes to its directory. It ends itself after call number
 * `killAfter` (0: before the first). With a number that is never reached it prints `rotated` and ends.
 *
 * usage: node rotating-sensor.ts '{"url", "stateDirectory", "killAfter"}'
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { systemClock } from '#common/clock/index.ts';

interface Orders {
  url: string;
  stateDirectory: string;
  killAfter: number;
}

const { url, stateDirectory, killAfter } = JSON.parse(process.argv[2]!) as Orders;
let calls = 0;

function die(): void {
  if (calls === killAfter) process.kill(process.pid, 'SIGKILL');
}

function counted<Arguments extends unknown[], Result>(call: (...given: Arguments) => Result) {
  return (...given: Arguments): Result => {
    die();
    const result = call(...given);
    calls += 1;
    die();
    return result;
  };
}

// Loaded before counting starts, so that only the rotation's own calls count.
const { createReporter } = await import('#common/reporter/index.ts');
const { readIdentity } = await import('#sensor/enrolment/index.ts');
const { createMonitorClient } = await import('#sensor/monitor-client/index.ts');
const { Rotation } = await import('#sensor/rotation/index.ts');
const identity = readIdentity(stateDirectory)!;

for (const name of ['openSync', 'chmodSync', 'writeSync', 'fsyncSync', 'closeSync', 'renameSync'] as const)
  Object.assign(fs, { [name]: counted(fs[name] as (...given: unknown[]) => unknown) });
syncBuiltinESMExports();
const send = globalThis.fetch;
globalThis.fetch = async (...given) => {
  die();
  const response = await send(...given);
  // The whole answer has arrived, and was not used yet.
  const whole = new Response(await response.arrayBuffer(), response);
  calls += 1;
  die();
  return whole;
};

const rotation = new Rotation({
  client: createMonitorClient(url),
  identity,
  stateDirectory,
  clock: systemClock,
  reporter: createReporter({
    program: 'sensor',
    write(line) {
      if (line.includes('the credential was rotated'))
        process.stdout.write(`rotated ${calls}\n`, () => process.exit(0));
    },
  }),
});
rotation.follow(true);
await rotation.start();
