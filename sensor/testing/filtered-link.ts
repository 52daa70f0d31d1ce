/** A hypervisor behind its filter and its clients, joined by a wire, each in a network namespace of its own. Needs root. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { FilterCounts } from '#sensor/kernel/index.ts';
import { victim } from './attack-traffic.ts';
import { insideInterface, insideMac, openToolLink, outsideInterface } from './tool-link.ts';

const hostScript = fileURLToPath(new URL('./filter-host.ts', import.meta.url));
const peersScript = fileURLToPath(new URL('./filter-peers.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning'];
const port = '7000';

/** What the clients of a flood saw. */
export interface ClientCounts {
  /** Of connections that lasted: answers, and how many were cut. */
  answers: number;
  cut: number;
  begun: number;
  completed: number;
}

class Program {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(words: readonly string[]) {
    this.#child = spawn(words[0]!, words.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#lines = createInterface(this.#child.stdout!)[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error('The program has ended.');
    return value as string;
  }

  async ask<Answer>(line: string): Promise<Answer> {
    this.#child.stdin!.write(`${line}\n`);
    return JSON.parse(await this.line()) as Answer;
  }

  end(): void {
    this.#child.stdin!.end();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

export type FilteredLink = Awaited<ReturnType<typeof openFilteredLink>>;

export async function openFilteredLink() {
  const link = openToolLink();
  const host = new Program([...link.inside, ...node, hostScript, insideInterface, port]);
  await host.line();
  const outside = (...words: string[]) => new Program([...link.outside, ...node, peersScript, ...words]);
  return {
    rules: (list: string) => host.ask(`rules ${list}`),
    silence: () => host.ask('silence'),
    counts: () => host.ask<Record<string, FilterCounts>>('counts'),
    /** Clients with so many connections that last, which have conversed, and so many new ones a second; `end` ends them. */
    async clients(lasting: number, perSecond: number) {
      const clients = outside('clients', victim(4), port, String(lasting), String(perSecond));
      await clients.line();
      return { end: () => clients.ask<ClientCounts>('end') };
    },
    /** Sends an attack; 0 kpps: as fast as it goes. */
    async flood(name: string, packets: number, kpps: number): Promise<{ sent: number; seconds: number }> {
      return JSON.parse(
        await outside('flood', outsideInterface, insideMac, name, String(packets), String(kpps)).line(),
      );
    },
    /** Waits as long as a flood takes. */
    async idle(): Promise<{ sent: number; seconds: number }> {
      return JSON.parse(await outside('idle').line());
    },
    /** Takes the filter off: how many there were, and whether it is still there. */
    async remove(): Promise<{ removed: number; isAttached: boolean }> {
      host.end();
      return JSON.parse(await host.line());
    },
    close(): void {
      host.kill();
      link.close();
    },
  };
}
