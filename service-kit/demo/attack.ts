/** An attack on a server of the demo, by the command that the demo names: one at a time, of a minute. */
import { type ChildProcess, spawn } from 'node:child_process';
import { CodedError } from '#common/errors/index.ts';

export interface AttackState {
  target: string;
  attackClass: string;
  startedAtMs: number;
  /** What the command said last, once it has ended; null while it runs. */
  end: { isFault: boolean; text: string } | null;
}

export type DemoAttack = ReturnType<typeof createDemoAttack>;

/** What the demo can send, by the name of the class that sensors report. */
export const demoAttackClasses = ['syn_flood', 'amplification', 'icmp_flood'] as const;
export const attackSeconds = 60;

/** `words` are the command, to which the target, the class and the seconds are added. */
export function createDemoAttack(words: readonly string[]) {
  let state: AttackState | null = null;
  return {
    /** The last attack of this process, or null. */
    state: () => state,
    /** Throws `demo.attack_running` while one goes on. */
    start(target: string, attackClass: (typeof demoAttackClasses)[number]): void {
      if (state !== null && state.end === null)
        throw new CodedError(
          'demo.attack_running',
          `An attack on ${state.target} is running. Wait for its end.`,
        );
      const begun: AttackState = { target, attackClass, startedAtMs: Date.now(), end: null };
      state = begun;
      const options = ['--target', target, '--class', attackClass, '--seconds', String(attackSeconds)];
      const child = spawn(words[0]!, [...words.slice(1), ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
      void lastLineOf(child).then((end) => {
        begun.end = end;
      });
    },
  };
}

/** The last line that the command wrote, when it has ended. */
async function lastLineOf(child: ChildProcess): Promise<NonNullable<AttackState['end']>> {
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-4_000);
    });
  return new Promise((done) => {
    child.once('error', (error) => done({ isFault: true, text: error.message }));
    child.once('close', (code) => {
      const text =
        said
          .trim()
          .split('\n')
          .at(-1)
          ?.replace(/^svc: /, '') || 'it said nothing';
      done({ isFault: code !== 0, text });
    });
  });
}
