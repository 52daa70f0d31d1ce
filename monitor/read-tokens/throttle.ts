/** Keeps one token from using the monitor alone: requests of a minute, and requests at a time. */
import type { Limits } from '#service-kit/limits/index.ts';

export const requestsPerMinute = 120;
export const underWayMax = 4;

export type Admission =
  | { isAdmitted: true; end: () => Promise<void> }
  | { isAdmitted: false; retryAfterSeconds: number; why: string };

/** Far longer than any request: those of a process that was killed end after it. */
const underWayMs = 60_000;

export function createTokenThrottle(limits: Pick<Limits, 'createLog'>): (id: string) => Promise<Admission> {
  const requests = limits.createLog('read-token', { capacity: requestsPerMinute, windowMs: 60_000 });
  const underWay = limits.createLog('read-token-under-way', { capacity: underWayMax, windowMs: underWayMs });
  return async (id) => {
    const place = await underWay.take(id);
    if (!place.isAllowed)
      return {
        isAdmitted: false,
        retryAfterSeconds: 1,
        why: `This token has ${underWayMax} requests under way. Send the next one when one has ended.`,
      };
    const request = await requests.take(id);
    if (!request.isAllowed) {
      await underWay.giveBack(id, place.event);
      return {
        isAdmitted: false,
        retryAfterSeconds: request.resetSeconds,
        why: `This token made ${requestsPerMinute} requests within a minute. Ask less often, or use one query with two dimensions instead of many.`,
      };
    }
    return { isAdmitted: true, end: () => underWay.giveBack(id, place.event) };
  };
}
