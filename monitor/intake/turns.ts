/**
 * Turns at work that takes more than one slice: a few at a time, one for each sensor, the sensors in the order in which
 * they asked. A sensor with a thousand large uploads delays another's by one upload, not by a thousand.
 */
export interface Turns {
  /** Waits for a turn; call the result to end it. */
  take(sensorId: number): Promise<() => void>;
}

export function createTurns(turnsMax: number): Turns {
  /** By sensor, those that wait; the sensor that had a turn last is the last. */
  const waiting = new Map<number, (() => void)[]>();
  const running = new Set<number>();

  function start(): void {
    for (const [sensorId, queue] of waiting) {
      if (running.size >= turnsMax) return;
      if (running.has(sensorId)) continue;
      const begin = queue.shift()!;
      waiting.delete(sensorId);
      if (queue.length > 0) waiting.set(sensorId, queue);
      running.add(sensorId);
      begin();
    }
  }

  return {
    async take(sensorId) {
      await new Promise<void>((begin) => {
        const queue = waiting.get(sensorId);
        if (queue) queue.push(begin);
        else waiting.set(sensorId, [begin]);
        start();
      });
      return () => {
        running.delete(sensorId);
        start();
      };
    },
  };
}
