import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeUserCommand } from './index.ts';

const user = 'svc-example';

test('first starts at once make the system user once, with one number', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-identity-'));
  try {
    const passwd = join(folder, 'passwd');
    writeFileSync(passwd, 'root:x:0:0::/root:/bin/sh\n');
    writeFileSync(join(folder, 'calls'), '');
    mkdirSync(join(folder, 'bin'));
    // As the real one: it looks, waits, and gives a new number to a user that came meanwhile.
    const useradd = `#!/bin/sh
grep -q '^${user}:' ${passwd} && exit 9
while ! mkdir ${folder}/lock 2>/dev/null; do :; done
number=$((999 - $(grep -c ${user} ${folder}/calls 2>/dev/null || true)))
echo ${user} $number >> ${folder}/calls
grep -v '^${user}:' ${passwd} > ${passwd}.new
echo "${user}:x:$number:$number::/nonexistent:/usr/sbin/nologin" >> ${passwd}.new
mv ${passwd}.new ${passwd}
rmdir ${folder}/lock
`;
    writeFileSync(join(folder, 'bin/useradd'), useradd, { mode: 0o755 });
    const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
    const [command, ...words] = makeUserCommand(folder, user, 'a user of this test');
    const all = Array.from({ length: 20 }, () => spawn(command!, words, { env, stdio: 'ignore' }));
    await Promise.all(all.map((child) => once(child, 'exit')));
    assert.equal(readFileSync(join(folder, 'calls'), 'utf8'), `${user} 999\n`);
    assert.equal(spawnSync('grep', ['-c', `^${user}:x:999:`, passwd], { encoding: 'utf8' }).stdout, '1\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
