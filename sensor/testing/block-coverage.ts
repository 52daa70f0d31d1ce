/**
 * V8's block coverage of this thread: function bodies, branches and loop iterations of our own modules. Only code
 * compiled after the start is counted, so the counted modules are imported later.
 */
import { Session } from 'node:inspector';

interface Coverage {
  result: { url: string; functions: { ranges: { count: number }[] }[] }[];
}

export type BlockCoverage = ReturnType<typeof startBlockCoverage>;

export function startBlockCoverage() {
  const session = new Session();
  session.connect();

  function ask<T>(method: string, parameters: object = {}): T {
    let answer: T | undefined;
    // In a session of the same thread the callback runs before `post` returns.
    session.post(method, parameters, (error, result) => {
      if (error) throw error;
      answer = result as T;
    });
    return answer as T;
  }

  ask('Profiler.enable');
  ask('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return {
    /** Number of blocks executed since the last call. */
    takeBlocks(): number {
      const { result } = ask<Coverage>('Profiler.takePreciseCoverage');
      let blocks = 0;
      for (const { url, functions } of result) {
        if (!url.startsWith('file:') || url.includes('/node_modules/')) continue;
        for (const { ranges } of functions) for (const { count } of ranges) blocks += count;
      }
      return blocks;
    },
    stop: () => session.disconnect(),
  };
}
