import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { installSystemPackages, type Machine, type SystemPackage } from './system-packages.ts';

const wanted: SystemPackage[] = [
  { name: 'one', file: '/usr/bin/one', use: 'the first thing' },
  { name: 'two', file: '/usr/bin/two', use: 'the second thing' },
];

function machine(change: Partial<Machine> & { answer?: string }) {
  const told: string[] = [];
  const installed: (readonly string[])[] = [];
  const made: Machine = {
    isThere: (file) => file === '/usr/bin/one',
    mayInstall: true,
    isTerminal: true,
    say: (line) => told.push(line),
    async ask(question) {
      told.push(question);
      return change.answer ?? '';
    },
    install(names) {
      installed.push(names);
      return true;
    },
    ...change,
  };
  return { made, told, installed };
}

function withoutBuildMachine(t: TestContext): void {
  const { CI } = process.env;
  delete process.env.CI;
  t.after(() => {
    if (CI !== undefined) process.env.CI = CI;
  });
}

test('what root would install is announced by name and use, and asked for on a terminal', async (t) => {
  withoutBuildMachine(t);
  for (const answer of ['', 'y', 'Yes']) {
    const { made, told, installed } = machine({ answer });
    assert.equal(await installSystemPackages(wanted, made), true);
    assert.deepEqual(told, [
      'these Debian packages are missing, and are installed as root with apt-get:',
      '  two: the second thing',
      'Install them? [Y/n] ',
    ]);
    assert.deepEqual(installed, [['two']]);
  }
});

test('a no installs nothing, and says what is left out', async (t) => {
  withoutBuildMachine(t);
  for (const answer of ['n', 'no', 'what?']) {
    const { made, told, installed } = machine({ answer });
    assert.equal(await installSystemPackages(wanted, made), true);
    assert.deepEqual(installed, []);
    assert.equal(told.at(-1), 'left out without two: the second thing');
  }
});

test('without a terminal it is announced alone; an ordinary user is told what is left out', async (t) => {
  withoutBuildMachine(t);
  const unattended = machine({ isTerminal: false, ask: () => assert.fail('no terminal to answer') });
  assert.equal(await installSystemPackages(wanted, unattended.made), true);
  assert.match(unattended.told[0]!, /installed as root/);
  assert.deepEqual(unattended.installed, [['two']]);
  const user = machine({ mayInstall: false });
  assert.equal(await installSystemPackages(wanted, user.made), true);
  assert.deepEqual([user.told, user.installed], [['left out without two: the second thing'], []]);
  const complete = machine({ isThere: () => true });
  assert.equal(await installSystemPackages(wanted, complete.made), true);
  assert.deepEqual(complete.told, []);
});

test('a package for which another one does is installed where that is possible, and never left out', async (t) => {
  withoutBuildMachine(t);
  process.env.CI = 'true';
  t.after(() => delete process.env.CI);
  const fast: SystemPackage = { name: 'fast', file: '/usr/bin/fast', instead: '/usr/bin/one', use: 'speed' };
  const root = machine({ isTerminal: false });
  assert.equal(await installSystemPackages([fast], root.made), true);
  assert.deepEqual(root.installed, [['fast']]);
  const offline = machine({ isTerminal: false, install: () => false });
  assert.equal(await installSystemPackages([fast], offline.made), true);
  assert.equal(offline.told.at(-1), 'apt-get could not install fast');
  const user = machine({ mayInstall: false });
  assert.equal(await installSystemPackages([fast], user.made), true);
  assert.deepEqual(user.told, []);
  const bare = machine({ mayInstall: false, isThere: () => false });
  assert.equal(await installSystemPackages([fast], bare.made), false);
});
