// Slow: starts commands beside two monitors, each with a PostgreSQL of its own.
/** The key of the database's secrets from an operator's view: first start, backups, commands. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { silentReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { backUp, restore } from '#service-kit/postgres/backup.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));

test('the key file is created beside the database and is not in its backup; commands rotate it while the monitor runs', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-secrets-key-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const openIn = (name: string) => {
    const config = readConfig({ SVC_DATA_DIR: join(folder, name), SVC_LOG_LEVEL: 'error' });
    const { programDir } = config;
    const urlSetting = 'SVC_MONITOR_DATABASE_URL';
    const target = { program: 'monitor', urlSetting, url: null, programDir, reporter: silentReporter };
    return { monitor: compose(config), target, key: join(programDir, 'secrets.key') };
  };
  const run = async (name: string, args: readonly string[], settings: Record<string, string> = {}) => {
    const env = { ...process.env, SVC_DATA_DIR: join(folder, name), SVC_LOG_LEVEL: 'error', ...settings };
    const child = spawn(process.execPath, [program, 'monitor', ...args], { env });
    const [out, said, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { code, out, said };
  };

  const first = openIn('first');
  await first.monitor.database.start();
  t.after(() => first.monitor.database.stop());
  assert.ok(!existsSync(first.key), 'a command that needs no secret creates no key');
  await first.monitor.secrets.part.start();
  const secret = await first.monitor.connection.createNoticeSecret(systemActor);
  const rotated = await run('first', ['rotate-secrets-key']);
  assert.deepEqual([rotated.code, rotated.said], [0, '']);
  assert.match(rotated.out, /^data key 2: 1 secrets sealed anew, 1 former keys deleted\n$/);
  assert.equal(await first.monitor.connection.readNoticeSecret(), secret, 'the running monitor continues');

  // The backup contains neither the secrets nor the key, and is usable with the key alone.
  const file = join(folder, 'monitor.backup');
  await backUp(first.target, file);
  const second = openIn('second');
  await restore(second.target, file);
  assert.deepEqual(readdirSync(join(folder, 'second', 'monitor')), ['postgres']);
  const refused = await run('second', ['serve'], { SVC_MONITOR_PORT: '0' });
  assert.equal(refused.code, 1);
  assert.ok(refused.said.includes(second.key), refused.said);
  assert.match(refused.said, /Put its copy back, or set SVC_MONITOR_SECRETS_KEY_FILE/);
  assert.deepEqual(readdirSync(join(folder, 'second', 'monitor')), ['postgres'], 'no key was created');

  // A new wrapping key: the previous file is refused from then on, the new one works.
  const next = join(folder, 'next.key');
  const rewrapped = await run('first', ['rewrap-secrets-key', '--file', next]);
  assert.equal(rewrapped.code, 0, rewrapped.said);
  assert.match(
    rewrapped.out,
    /^1 data keys are wrapped by the key file .*next\.key now\.\nSet SVC_MONITOR_SECRETS_KEY_FILE=/,
  );
  const wrong = await run('first', ['rotate-secrets-key']);
  assert.equal(wrong.code, 1);
  assert.match(
    wrong.said,
    /secrets\.key holds the key file:\w+, but the secrets of this database need the key file:\w+/,
  );
  renameSync(next, first.key);
  await first.monitor.secrets.rotate({ kind: 'system' });
  assert.equal(await first.monitor.connection.readNoticeSecret(), secret);
});
