import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';

export type RedisServer = Awaited<ReturnType<typeof startRedisAt>>;

/** Starts a real redis-server without persistence. */
export async function startRedis(...settings: string[]): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    // Below the ports that the system gives to connections, so that it stays free between `kill` and `revive`.
    const port = randomInt(20_000, 32_000);
    try {
      return await startRedisAt(port, settings);
    } catch (error) {
      if (!/Address already in use/.test(String(error)) || attempt === 20) throw error;
    }
  }
}

async function startRedisAt(port: number, settings: readonly string[]) {
  const base = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    '/tmp',
  ];
  const launch = async () => {
    const started = spawn('redis-server', [...base, ...settings], { stdio: ['ignore', 'pipe', 'inherit'] });
    await isReady(started);
    return started;
  };
  let child = await launch();
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  return {
    url: `redis://127.0.0.1:${port}`,
    /** Sends a command through `redis-cli`, like an administrator. */
    async cli(...args: string[]): Promise<string> {
      const cli = spawn('redis-cli', ['-p', String(port), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
      let text = '';
      cli.stdout.on('data', (piece: Buffer) => {
        text += piece;
      });
      await once(cli, 'close');
      return text.trim();
    },
    kill,
    /** Starts it again after `kill`, at the same address and without what it held. */
    async revive() {
      child = await launch();
    },
    [Symbol.asyncDispose]: kill,
  };
}

function isReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout!.on('data', (piece: Buffer) => {
      text += piece;
      if (text.includes('Ready to accept connections')) resolve();
    });
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${text}`)));
  });
}
