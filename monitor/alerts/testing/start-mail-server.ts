import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Mail } from './mail-server.ts';

export interface MailServer extends AsyncDisposable {
  url: string;
  /** All that was taken so far, in order. */
  mails: Mail[];
}

/** Starts a mail server as a process of its own. */
export async function startMailServer(): Promise<MailServer> {
  const file = fileURLToPath(new URL('./mail-server.ts', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, 'line')) as [string];
  const mails: Mail[] = [];
  lines.on('line', (line) => mails.push(JSON.parse(line) as Mail));
  const { port } = JSON.parse(first) as { port: number };
  return {
    url: `smtp://monitor:${encodeURIComponent('p@ss word')}@127.0.0.1:${port}`,
    mails,
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}
