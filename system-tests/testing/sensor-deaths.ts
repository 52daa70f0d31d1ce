/** When a killed sensor did not listen: from its death until its own log says that all its captures listen again. */

export interface Death {
  /** Wall time of the kill. */
  fromMs: number;
  /** How long the log was then. */
  logEnd: number;
}

export interface DeafTime {
  fromMs: number;
  toMs: number;
}

/** Null while the sensor does not listen again after one of the deaths. `log` is the whole log, of all its lives. */
export function findDeafTimes(log: string, deaths: readonly Death[]): DeafTime[] | null {
  const captures = findCaptures(log);
  const times: DeafTime[] = [];
  for (const { fromMs, logEnd } of deaths) {
    const lines = log.slice(logEnd).split('\n');
    const ends = captures.map((name) => {
      const line = lines.find((one) => one.includes('capture listens') && one.endsWith(`capture=${name}`));
      return line ? momentAfter(fromMs, line.slice(0, 8)) : Number.POSITIVE_INFINITY;
    });
    const toMs = Math.max(...ends);
    if (!Number.isFinite(toMs)) return null;
    times.push({ fromMs, toMs });
  }
  return times;
}

/** Names of the captures that the sensor said it runs. */
function findCaptures(log: string): string[] {
  const [, list] = /sensor runs .*captures="?([^\s"]+)/.exec(log) ?? [];
  if (!list) throw new Error(`the log of the sensor does not say which captures it runs:\n${log}`);
  return list.split(',').map((entry) => entry.slice(entry.indexOf(':') + 1));
}

/** The end of the first second after `fromMs` whose time of day, in UTC, is `clockText`. */
function momentAfter(fromMs: number, clockText: string): number {
  const dayMs = 86_400_000;
  const endMs = Date.parse(`1970-01-01T${clockText}Z`) + 1000;
  return fromMs + ((((endMs - fromMs) % dayMs) + dayMs) % dayMs);
}
