// Slow: kills a monitor that announces routes, and waits for what its router does.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { monitorAs, type Router, startRouter, until } from '../testing/gobgp.ts';
import { createStage, type Stage } from '../testing/stage.ts';

describe('a monitor that is killed', { skip: existsSync('/usr/bin/gobgpd') ? false : 'needs gobgpd' }, () => {
  let router: Router;
  let stage: Stage;
  const children: ChildProcess[] = [];
  const peers: Router['peer'][] = [];
  before(async () => {
    stage = await createStage({ bgp: { peers, ownAs: monitorAs, keepSeconds: 120 } });
  });
  after(() => stage[Symbol.asyncDispose]());
  beforeEach(async () => {
    await stage.reset();
    router = await startRouter();
    peers.splice(0, 1, router.peer);
  });
  afterEach(async () => {
    await Promise.all(children.map(kill));
    await router[Symbol.asyncDispose]();
  });

  async function start(keepSeconds: number): Promise<ChildProcess> {
    const file = fileURLToPath(new URL('../testing/speaker-process.ts', import.meta.url));
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
      env: {
        PATH: process.env.PATH,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
        SVC_LOG_LEVEL: 'error',
        SVC_TEST_DATABASE_URL: stage.world.database.url,
        SVC_HAND_OFF_BGP_PEERS: router.peer.name,
        SVC_HAND_OFF_BGP_AS: String(monitorAs),
        SVC_HAND_OFF_BGP_KEEP_SECONDS: String(keepSeconds),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')]);
    assert.equal(child.exitCode, null);
    return child;
  }
  async function kill(child: ChildProcess): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
  const eventually = (isSo: () => Promise<boolean>) =>
    until(async () => {
      await stage.attemptNow();
      return isSo();
    });
  const attackBlackholed = async () => {
    await stage.addRule({
      ...{ kind: 'blackhole', peer: router.peer.name, nextHop4: '192.0.2.1' },
    });
    const flood = stage.attack();
    await stage.say(flood);
    await eventually(async () => (await stage.states())[0] === '198.51.100.7 active');
    await eventually(async () => (await router.routes('ipv4')).length === 1);
    return flood;
  };

  test('leaves its routes to a successor without a gap, which withdraws them when the attack is over', async () => {
    const first = await start(600);
    const flood = await attackBlackholed();
    await kill(first);
    await eventually(async () => !(await router.isEstablished()));
    const [kept] = await router.routes('ipv4');
    assert.equal(kept?.isStale, true, 'the router keeps it');
    await stage.later(31);
    const second = await start(600);
    await eventually(async () => (await router.routes('ipv4'))[0]?.isStale === false);
    await stage.say(stage.recovered(flood));
    await stage.later(300);
    await eventually(async () => (await router.routes('ipv4')).length === 0);
    await eventually(async () => (await stage.states())[0] === '198.51.100.7 ended');
    await kill(second);
    await stage.later(31);
    await start(600);
    await stage.say(stage.attack({ target: '198.51.100.8' }));
    await eventually(async () => (await router.routes('ipv4')).length === 1);
  });

  test('and has no successor: the router drops the routes after the set time', async () => {
    await stage.later(31);
    const child = await start(1);
    await attackBlackholed();
    await kill(child);
    await eventually(async () => (await router.routes('ipv4')).length === 0);
    assert.deepEqual(await stage.states(), ['198.51.100.7 active']);
  });
});
