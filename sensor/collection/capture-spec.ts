/** The captures in a sensor's settings. */
import type { SourceSpec } from '#sensor/packet-source/index.ts';

export type CaptureRole = 'uplink' | 'bridge';

export interface CaptureSpec {
  /** Unique in a sensor; the interface's name. */
  name: string;
  role: CaptureRole;
  source: SourceSpec;
  /** Number of threads that share the interface by fanout; default 1. */
  members?: number;
  /** Public names on the outside of encrypted hellos (ECH); the well-known ones by default. */
  outerNames?: readonly string[];
}

/** Parses `uplink:eth0,bridge:br0`. Throws an `Error` whose message completes "SVC_SENSOR_CAPTURES …". */
export function parseCaptures(text: string): { name: string; role: CaptureRole }[] {
  const captures = text.split(',').map((entry) => {
    const match = /^(uplink|bridge):([^\s/:,]{1,15})$/.exec(entry.trim());
    if (!match) {
      throw new Error(
        `must be a list like uplink:eth0,bridge:br0; "${entry.trim()}" is not a role and an interface`,
      );
    }
    return { role: match[1] as CaptureRole, name: match[2]! };
  });
  const names = new Set(captures.map((capture) => capture.name));
  if (names.size !== captures.length) throw new Error('names an interface twice');
  return captures;
}
