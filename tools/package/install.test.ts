/** The page that says how the servers are installed, run word for word on a root file system of its own. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/operating/install.md'), 'utf8');
const commands = /## Install the servers[\s\S]*?```\n([\s\S]*?)```/.exec(page)![1]!.trim().split('\n');

/** Programs that the page calls and that need a running system; each call is a line. */
const stubs = ['systemctl', 'systemd-run', 'editor', 'sudo'];

test('the commands of the installation page, word for word, make users, settings, units and svc-admin, also a second time', {
  skip: process.getuid?.() === 0 ? false : 'mounting takes root',
}, (t) => {
  assert.ok(commands.length <= 8, `${commands.length} commands`);
  assert.match(commands[0]!, /^git clone … \/opt\/svc$/);
  const scratch = mkdtempSync(join(tmpdir(), 'svc-install-'));
  t.after(() => rmSync(scratch, { recursive: true, force: true }));
  mkdirSync(join(scratch, 'bin'));
  for (const name of stubs)
    writeFileSync(join(scratch, 'bin', name), `#!/bin/sh\necho "${name} $*"\n`, { mode: 0o755 });
  const script = `
    set -eu
    mount -t tmpfs tmpfs /mnt
    for folder in etc opt usr/local; do
      mkdir -p /mnt/$folder/upper /mnt/$folder/work
      mount -t overlay -o lowerdir=/$folder,upperdir=/mnt/$folder/upper,workdir=/mnt/$folder/work overlay /$folder
    done
    rm -rf /opt/svc /etc/svc && mkdir -p /opt/svc
    cp -r ${root}packaging /opt/svc/
    printf '#!/bin/sh\\necho "svc $*"\\n' > /opt/svc/svc && chmod 755 /opt/svc/svc
    export PATH=${scratch}/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
    ${commands.slice(1).join('\n    ')}
    echo SVC_OF_MINE=1 >> /etc/svc/operations.env
    ${commands[1]} > /dev/null
    grep -c SVC_OF_MINE /etc/svc/operations.env
    stat -c '%a %U %G %n' /etc/svc/*.env /usr/local/sbin/svc-admin
    getent passwd svc-operations svc-monitor | cut -d: -f1,7
    ls /etc/systemd/system | grep '^svc-'`;
  const { status, stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  const said = stdout.split('\n');
  for (const line of [
    'svc --version',
    'systemctl daemon-reload',
    'editor /etc/svc/operations.env /etc/svc/monitor.env',
    'systemctl enable --now svc-operations svc-monitor',
    '1',
    '640 root svc-monitor /etc/svc/monitor.env',
    '640 root svc-operations /etc/svc/operations.env',
    '755 root root /usr/local/sbin/svc-admin',
    'svc-operations:/usr/sbin/nologin',
    'svc-monitor:/usr/sbin/nologin',
    'svc-operations.service',
    'svc-monitor@.service',
    'svc-monitor.target',
  ])
    assert.ok(said.includes(line), `${line} is missing in\n${stdout}`);
  const asService = said.filter((line) => line.startsWith('systemd-run'));
  assert.match(
    asService[0]!,
    /--uid=svc-operations .*\/opt\/svc\/svc operations create-operator --email YOU --name NAME$/,
  );
  assert.match(asService[1]!, /--uid=svc-monitor .*\/opt\/svc\/svc monitor add-operator YOU$/);
});
