import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { NvdRecord } from './records/index.ts';

/** What happens to a request. */
export type NvdFault =
  | {
      kind:
        | 'none'
        | 'closed'
        | 'cut'
        | 'empty_page'
        | 'foreign_value'
        | 'half_json'
        | 'malformed_record'
        | 'no_total'
        | 'null'
        | 'other_page'
        | 'page_of_html'
        | 'redirect'
        | 'silent'
        | 'slow'
        | 'total_changes';
    }
  | { kind: 'status'; status: number; retryAfter?: string };

export interface AskedNvd {
  /** By the clock that the test gave it. */
  atMs: number;
  url: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  fault: string;
}

export type Nvd = Awaited<ReturnType<typeof startNvd>>;

/** The database as a process of its own. */
export async function startNvd() {
  const program = fileURLToPath(new URL('./nvd-process.ts', import.meta.url));
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const origin = `http://127.0.0.1:${Number(line.toString())}`;
  const arrange = async (what: string, body: object) =>
    (await fetch(`${origin}/testing/${what}`, { method: 'POST', body: JSON.stringify(body) })).json();
  return {
    url: `${origin}/rest/json/cves/2.0`,
    /** Faults of the next requests, in order. */
    plan: (...faults: NvdFault[]) => arrange('plan', { faults }) as Promise<void>,
    /** Pages have at most so many records. */
    limitPages: (recordsMax: number) => arrange('page', { recordsMax }) as Promise<void>,
    setClock: (nowMs: number) => arrange('clock', { nowMs }) as Promise<void>,
    /** Null: the usual ones. */
    setRecords: (records: readonly NvdRecord[] | null) => arrange('records', { records }) as Promise<void>,
    /** Requests since the last call, in order. */
    asked: (): Promise<AskedNvd[]> => arrange('asked', {}) as Promise<AskedNvd[]>,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
