import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monitorRoles } from '#monitor/roles.ts';
import { operationsRoles } from '#operations/roles.ts';

const folder = fileURLToPath(new URL('../../packaging/servers', import.meta.url));
const units = readdirSync(folder).filter((name) => name.endsWith('.service'));
const textOf = (name: string) => readFileSync(join(folder, name), 'utf8');

test('every unit of the servers runs in the same sandbox, and stops the program before its PostgreSQL', () => {
  assert.ok(units.length >= 4);
  const sandboxes = new Set(
    units.map((name) => textOf(name).split('# PostgreSQL is a child')[1]!.split('[Install]')[0]),
  );
  assert.equal(sandboxes.size, 1);
  assert.match([...sandboxes][0]!, /^KillMode=mixed$/m);
  assert.match([...sandboxes][0]!, /^CapabilityBoundingSet=$/m);
});

test('the targets start a process for each role, and templates run the role that an instance is named after', () => {
  for (const [name, words] of [
    ['operations', operationsRoles],
    ['monitor', monitorRoles],
  ] as const) {
    const wanted = /^Wants=(.*)$/m.exec(textOf(`svc-${name}.target`))![1]!.split(' ');
    assert.deepEqual(
      wanted,
      Object.keys(words).map((role) => `svc-${name}@${role}.service`),
    );
    const template = textOf(`svc-${name}@.service`);
    assert.match(template, /^Environment=ROLES=%i$/m);
    assert.match(template, new RegExp(`^ExecStart=/opt/svc/svc ${name} serve --only \\$\\{ROLES\\}$`, 'm'));
    assert.match(template, new RegExp(`^Conflicts=svc-${name}\\.service$`, 'm'));
  }
});

test('systemd understands the units of the servers and finds them little exposed', (t) => {
  if (!existsSync('/usr/bin/systemd-analyze')) {
    assert.ok(!process.env.CI, 'this test needs systemd-analyze');
    t.diagnostic('left out: needs systemd-analyze');
    return;
  }
  const scratch = mkdtempSync(join(tmpdir(), 'svc-units-'));
  t.after(() => rmSync(scratch, { recursive: true }));
  // The project is not installed below /opt here.
  const copies = units.map((name) => join(scratch, name.replace('@', '@1')));
  for (const [i, name] of units.entries()) {
    const text = textOf(name).replace('/opt/svc/svc', '/bin/true');
    writeFileSync(copies[i]!, text);
    // Targets name instances of their templates.
    if (name.includes('@')) writeFileSync(join(scratch, name), text);
  }
  const targets = readdirSync(folder).filter((name) => name.endsWith('.target'));
  for (const name of targets) {
    writeFileSync(join(scratch, name), textOf(name));
    copies.push(join(scratch, name));
  }
  const verified = spawnSync('systemd-analyze', ['verify', '--man=no', ...copies], { encoding: 'utf8' });
  assert.deepEqual([verified.status, verified.stderr], [0, '']);
  const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', '--no-pager', copies[0]!], {
    encoding: 'utf8',
  });
  const exposure = Number(/Overall exposure level[^:]*: ([\d.]+)/.exec(stdout)?.[1]);
  assert.ok(exposure <= 1.4, stdout);
});
