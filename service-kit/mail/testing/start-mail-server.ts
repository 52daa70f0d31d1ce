import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Mail } from './mail-server.ts';

export type MailServer = Awaited<ReturnType<typeof startMailServer>>;

/** Starts a mail server as a process of its own. */
export async function startMailServer() {
  const file = fileURLToPath(new URL('./mail-server.ts', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, 'line')) as [string];
  const mails: Mail[] = [];
  lines.on('line', (line) => {
    if (line === 'mark') child.stdout.emit('mark');
    else mails.push(JSON.parse(line) as Mail);
  });
  const { port } = JSON.parse(first) as { port: number };
  return {
    url: `smtp://monitor:${encodeURIComponent('p@ss word')}@127.0.0.1:${port}`,
    /** All that was taken so far, in order. */
    mails,
    /** Those to one address, with their text as a reader sees it, once the server has written all that it took. */
    async mailsTo(email: string): Promise<Mail[]> {
      // The server answers a mark after every mail that it took before.
      const marked = once(child.stdout, 'mark');
      child.stdin.write('\n');
      await marked;
      return mails
        .filter((mail) => mail.to.includes(email))
        .map((mail) => ({ ...mail, body: plain(mail.body) }));
    },
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit');
      child.kill();
      await exited;
    },
  };
}

/** Undoes quoted-printable. */
function plain(body: string): string {
  return body
    .replaceAll('=\r\n', '')
    .replace(/((?:=[0-9A-F]{2})+)/g, (codes) => Buffer.from(codes.replaceAll('=', ''), 'hex').toString());
}
