// Slow: runs commands until they fail, hang and are killed.
// Own process: it sets a variable of its environment.
import assert from 'node:assert/strict';
import { access, chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';
import { listCommands, outputMax, runCommand } from './run-command.ts';
import { createStage, ruleInput, type Stage } from './testing/stage.ts';

let stage: Stage;
let receiver: Receiver;
before(async () => {
  [stage, receiver] = await Promise.all([createStage(), startReceiver()]);
});
after(() => Promise.all([stage[Symbol.asyncDispose](), receiver[Symbol.asyncDispose]()]));
beforeEach(() => stage.reset());

const drain = () => stage.handOff.worker.drain();
const only = async () => (await stage.handOff.listActions(stage.world.siteId, null, 100))[0]!;
const run = (name: string, args: string[] = [], clock = systemClock) =>
  runCommand(stage.folder, name, args, { action: 'ban' }, { clock });

test('a webhook is signed, has a stable id for each step, and is tried again until the receiver accepts it', async () => {
  const { siteId } = stage.world;
  const input = ruleInput({ kind: 'webhook', url: `${receiver.url}/503/200` });
  const { id, secret } = await stage.handOff.addRule(systemActor, siteId, input);
  receiver.learn(secret!);
  await stage.switchTo(id, 'dry_run');
  await stage.switchTo(id, 'on');
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  assert.deepEqual(
    [(await only()).state, (await only()).lastError],
    ['waiting', 'the receiver answered 503'],
  );
  await drain();
  assert.equal(receiver.received.length, 1, 'after a pause');
  await stage.later(2);
  await drain();
  await stage.say(stage.recovered(flood));
  await stage.later(300);
  await drain();
  const [failed, ban, unban] = receiver.received;
  assert.deepEqual([failed!.fitting, ban!.fitting, unban!.fitting], [1, 1, 1]);
  assert.equal(ban!.id, failed!.id);
  assert.notEqual(unban!.id, ban!.id);
  assert.deepEqual([ban!.body.type, unban!.body.type], ['hand_off.ban', 'hand_off.unban']);
  const { address, direction, pps } = ban!.body.data;
  assert.deepEqual([address, direction, pps], ['198.51.100.7', 'incoming', 25_000]);
  assert.equal((await only()).state, 'ended');
  const { rows } = await stage.world.database.pool.query(
    "select operation, after->>'state' as state from audit_entries where operation like 'hand_off.%' order by id desc limit 2",
  );
  assert.deepEqual(rows, [
    { operation: 'hand_off.end', state: 'ended' },
    { operation: 'hand_off.start', state: 'active' },
  ]);
});

test('a command that fails five times is undone, has failed, is logged, and the incident goes on', async () => {
  await stage.addRule({ command: 'fail.sh' });
  const flood = stage.attack();
  await stage.say(flood);
  for (let i = 0; i < 12; i += 1) {
    await drain();
    await stage.later(600);
    await stage.say(stage.next(flood, { revision: i + 2 }));
  }
  const { state, lastError, output, startedAtMs } = await only();
  assert.deepEqual(
    [state, lastError, output, startedAtMs],
    ['failed', 'the command ended with status 3', 'went wrong\n', null],
  );
  assert.deepEqual(await stage.states(), ['198.51.100.7 failed'], 'not begun again for this attack');
  assert.equal(stage.log.filter((line) => line.includes('a hand-off step failed')).length, 1);
  const { rows } = await stage.world.database.pool.query('select state, actions from incidents');
  assert.deepEqual(rows, [{ state: 'active', actions: [] }]);
});

test('an end that fails is never forgotten, until an operator gives it up', async () => {
  const { siteId } = stage.world;
  const marker = join(stage.folder, '.allow');
  await stage.writeCommand('half.sh', `cat > /dev/null\n[ "$4" = ban ] || [ -e ${marker} ]`);
  await stage.addRule({ command: 'half.sh' });
  const floods = [stage.attack({ target: '198.51.100.1' }), stage.attack({ target: '198.51.100.2' })];
  await stage.say(...floods);
  await drain();
  await stage.say(...floods.map(stage.recovered));
  await stage.later(300);
  for (let i = 0; i < 20; i += 1) {
    await drain();
    await stage.later(600);
  }
  assert.deepEqual(await stage.states(), ['198.51.100.1 ending', '198.51.100.2 ending']);
  assert.equal((await only()).attempts, 20);
  assert.equal(await stage.handOff.giveUpAction(systemActor, siteId, (await only()).id), true);
  await writeFile(marker, '');
  await drain();
  assert.deepEqual((await stage.states()).sort(), ['198.51.100.1 ended', '198.51.100.2 failed']);
});

test('a command that hangs is killed with all of its children after the time limit', async () => {
  const pidFile = join(stage.folder, '.pid');
  await rm(pidFile, { force: true });
  await stage.writeCommand('hang.sh', `echo begun\nsleep 1000 &\necho $! > ${pidFile}\nwait`);
  const clock = createTestClock(0);
  const hanging = run('hang.sh', [], clock);
  let pid = 0;
  while (pid === 0) {
    await new Promise((done) => setImmediate(done));
    pid = Number(await readFile(pidFile, 'utf8').catch(() => '0'));
  }
  await clock.advance(20_000);
  const { error, wasStarted } = await hanging;
  assert.deepEqual([error, wasStarted], ['the command did not end within 20 s and was killed', true]);
  // The child of the command is gone, or a zombie that its new parent has not collected.
  let status = 'R';
  while (status !== '' && status !== 'Z')
    status = (await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') ')).split(') ')[1]?.[0] ?? '';
});

test('a command gets its arguments as they are, no shell, no settings of this process, and need not read its input', async () => {
  await stage.writeCommand('show.sh', 'printf "%s|" "$@"; env | cut -d= -f1 | sort | tr "\\n" " "; pwd');
  process.env.SVC_SECRET_OF_TEST = 'x';
  const { output, error } = await run('show.sh', ['a b', '$(id)', '; reboot']);
  delete process.env.SVC_SECRET_OF_TEST;
  assert.deepEqual([output, error], ['a b|$(id)|; reboot|LANG PATH PWD /\n', null]);
});

test('output is kept up to a bound and without control characters; a child left behind does not delay the end', async () => {
  await stage.writeCommand('loud.sh', 'head -c 1000000 /dev/zero | tr "\\0" a; sleep 30 &');
  const clock = createTestClock(0);
  const running = run('loud.sh', [], clock);
  while (clock.waiting() < 2) await new Promise((done) => setImmediate(done));
  await clock.advance(1000);
  const { output, error } = await running;
  assert.equal(error, null);
  assert.match(output, /^a+\n… \(1000000 bytes in all\)$/);
  assert.equal(output.indexOf('\n'), outputMax);
  await stage.writeCommand('odd.sh', `printf 'a\\000b\\033[31mc\\377'`);
  assert.equal((await run('odd.sh')).output, 'a\ufffdb\ufffd[31mc\ufffd');
});

test('only executable files of the folder that not every user can change are started', async () => {
  await stage.writeCommand('good', 'true');
  await stage.writeCommand('shared', 'true');
  await chmod(join(stage.folder, 'shared'), 0o757);
  await writeFile(join(stage.folder, 'text'), 'no program');
  const names = await listCommands(stage.folder);
  assert.ok(names.includes('good'));
  for (const name of ['shared', 'text', '.log', '../etc/passwd', 'missing', '-rf']) {
    assert.ok(!names.includes(name), name);
    const { error, wasStarted } = await run(name);
    assert.match(error!, /^the command was not started: /, name);
    assert.equal(wasStarted, false, name);
  }
  await writeFile(join(stage.folder, 'broken'), '#!/no/such/interpreter\n', { mode: 0o755 });
  assert.equal((await run('broken')).wasStarted, false);
  assert.deepEqual(await listCommands(null), []);
  await access(stage.folder);
});
