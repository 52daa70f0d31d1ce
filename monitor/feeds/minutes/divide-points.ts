import { createHash } from 'node:crypto';
import { findImplausible } from '#contracts/admin-api/plausible.ts';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import type { SetAside } from '../round.ts';

/** The points of a visit that are sent, and those that are not. */
export interface DividedPoints {
  sent: TelemetryPoint[];
  setAside: SetAside[];
}

/**
 * Takes out what no link carries, and what operations has refused as it is. One such minute must not keep the others of its
 * allocation from being delivered.
 */
export function dividePoints(points: readonly TelemetryPoint[], known: readonly SetAside[]): DividedPoints {
  const refused = new Map(known.map((one) => [one.part, one]));
  const divided: DividedPoints = { sent: [], setAside: [] };
  for (const point of points) {
    const implausible = findImplausible(point);
    const held = refused.get(minuteOf(point));
    if (implausible) divided.setAside.push(setAsideOf(point, implausible));
    else if (held && held.fingerprint === fingerprintOf(point)) divided.setAside.push(held);
    else divided.sent.push(point);
  }
  return divided;
}

/** A point as one that is not sent again as it is. */
export function setAsideOf(point: TelemetryPoint, reason: string): SetAside {
  return { part: minuteOf(point), reason, fingerprint: fingerprintOf(point) };
}

function minuteOf(point: TelemetryPoint): number {
  return Date.parse(point.timestamp) / 1000;
}

function fingerprintOf(point: TelemetryPoint): string {
  return createHash('sha256').update(JSON.stringify(point)).digest('base64url').slice(0, 22);
}
