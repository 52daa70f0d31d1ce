/**
 * Turns for work of more than one slice: a few at a time, one for each sensor, in the order in which sensors asked. A
 * sensor with a thousand large uploads delays another sensor's upload by one upload.
 */
export function createTurns(turnsMax: number) {
  /** Waiting requests by sensor; the sensor with the last turn is at the end. */
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
    /** Waits for a turn; call the result to end it. */
    async take(sensorId: number): Promise<() => void> {
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
