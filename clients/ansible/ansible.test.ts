// Slow: Ansible takes seconds to start.
/** The Ansible collection as it is downloaded, by Debian's ansible-core; what it does to servers is in `clients/story.test.ts`. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { buildDownloads } from '../downloads.ts';
import { cases, faultsOf, playCases } from '../testing/faults.ts';

const key = `svc_${'k'.repeat(16)}_${'S'.repeat(43)}`;

test('what was reported of other providers’ clients fails a task in its own words, without the key', {
  skip: existsSync('/usr/bin/ansible-playbook') ? false : 'needs ansible-core',
}, async () => {
  // Those that end in an error of a read: the module reads the list of servers first.
  const failing = [...cases.entries()].filter(
    ([, { call, throws, seconds }]) => throws && call.id === 'readServer' && seconds === undefined,
  );
  const played = await playCases();
  const folder = mkdtempSync(join(tmpdir(), 'ansible-'));
  try {
    const document = readOpenApi<Parameters<typeof buildDownloads>[0]>(buildOpenApi());
    const { bytes } = buildDownloads(document).find(({ kind }) => kind === 'ansible')!;
    const collection = join(folder, 'ansible_collections/virtual_servers/cloud');
    mkdirSync(collection, { recursive: true });
    execFileSync('tar', ['-xzf', '-', '-C', collection], { input: bytes });
    const hosts = failing.map(([index]) => `case${index}`);
    const task = {
      'virtual_servers.cloud.server': {
        url: `http://127.0.0.1:${new URL(played.urlOf(0)).port}/{{ inventory_hostname[4:] }}`,
        id: 1,
      },
      ignore_errors: true,
    };
    const book = { hosts: 'all', connection: 'local', gather_facts: false, tasks: [task] };
    writeFileSync(join(folder, 'faults.json'), JSON.stringify([book]));
    const python = ['-e', 'ansible_python_interpreter=/usr/bin/python3', '-f', String(hosts.length)];
    const env = {
      ...{ PATH: '/usr/bin:/bin', HOME: folder, LC_ALL: 'C.UTF-8', ANSIBLE_COLLECTIONS_PATH: folder },
      // One result after the other, as JSON.
      ...{ SVCCTL_KEY: key, ANSIBLE_NOCOLOR: '1', ANSIBLE_STDOUT_CALLBACK: 'minimal' },
    };
    const words = [...python, '-i', `${hosts.join(',')},`, 'faults.json'];
    const { stdout: told } = await promisify(execFile)('ansible-playbook', words, { env, cwd: folder });
    assert.ok(!told.includes(key), 'the key is printed');
    const results = new Map(
      [...told.matchAll(/^(case\d+) \| FAILED! => (\{[\s\S]*?^\})/gm)].map((match) => [match[1]!, match[2]!]),
    );
    for (const [place, [index, { title, throws, requests }]] of failing.entries()) {
      const result = JSON.parse(results.get(hosts[place]!)!);
      const faults = faultsOf(index, played.received[index]!);
      assert.deepEqual(faults, [], `${title}: ${JSON.stringify(result)}`);
      assert.ok(result.msg.length > 10 && !/Traceback|MODULE FAILURE/.test(JSON.stringify(result)), title);
      assert.equal('code' in result, throws !== 'Connection', `${title}: ${result.msg}`);
      assert.ok(requests !== undefined, title);
    }
    assert.ok(failing.length >= 4);
  } finally {
    played.close();
    rmSync(folder, { recursive: true });
  }
});
