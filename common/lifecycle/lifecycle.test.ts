// Own process: the program in its text sets its exit code.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

/** Runs a program of one part under a supervisor whose pipe stays open; resolves with its exit code. */
async function runSupervised(start: string): Promise<{ code: number | null; said: string }> {
  const module = new URL('./index.ts', import.meta.url).href;
  const errors = new URL('../errors/index.ts', import.meta.url).href;
  const reporter = new URL('../reporter/index.ts', import.meta.url).href;
  const program = `
    import { runUntilSignal } from '${module}';
    import { CodedError } from '${errors}';
    import { silentReporter } from '${reporter}';
    const part = { name: 'part', async start() { ${start} }, async stop() {} };
    process.exitCode = await runUntilSignal([part], silentReporter, () => process.kill(process.pid, 'SIGTERM'));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: { ...process.env, SVC_SUPERVISED: '1' },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (piece: Buffer) => {
    said += piece.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, said };
}

test('a supervised program that can not start says why and ends, instead of waiting for its supervisor', async () => {
  const result = await runSupervised(`throw new CodedError('port.taken', 'The port is taken.');`);
  assert.deepEqual(result, { code: 1, said: 'svc: The port is taken.\n' });
});

test('a supervised program that is told to stop ends, though its supervisor lives', async () => {
  assert.deepEqual(await runSupervised(''), { code: 0, said: '' });
});

test('a program that has stopped ends, also when something still holds it', async () => {
  // The clock of timers runs a thousand times as fast, so that nothing waits.
  const hurry =
    'const later = globalThis.setTimeout; globalThis.setTimeout = (work, ms) => later(work, ms / 1000);';
  const hold = 'setInterval(() => {}, 3_600_000);';
  assert.deepEqual(await runSupervised(`${hurry} ${hold}`), { code: 0, said: '' });
  const failed = await runSupervised(
    `${hurry} ${hold} throw new CodedError('port.taken', 'The port is taken.');`,
  );
  assert.deepEqual(failed, { code: 1, said: 'svc: The port is taken.\n' });
});
