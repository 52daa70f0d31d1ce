import { CodedError } from '#common/errors/index.ts';
import { type LiveRequest, liveBucketSeconds } from '#contracts/admin-api/live.ts';
import { findImplausible } from '#contracts/admin-api/plausible.ts';

const bucketMs = liveBucketSeconds * 1000;
/** Buckets that end later than this after our clock are a wrong clock, not telemetry. */
const aheadMsMax = 60_000;

/**
 * Throws `protect_live.invalid` (details: `fields`) for what the schema can't see: timestamps that are no ten-second
 * boundary of UTC, targets or buckets sent twice, buckets still to come, rates that no link carries.
 */
export function checkBuckets(request: LiveRequest, nowMs: number): void {
  const fields: { path: string; message: string }[] = [];
  const targets = new Set<number>();
  for (const [t, target] of request.targets.entries()) {
    if (targets.has(target.id)) fields.push({ path: `targets.${t}.id`, message: 'appears twice' });
    targets.add(target.id);
    const seen = new Set<number>();
    for (const [p, point] of target.series.entries()) {
      const path = `targets.${t}.series.${p}`;
      const ms = Date.parse(point.timestamp);
      const fault = (message: string) => fields.push({ path: `${path}.timestamp`, message });
      if (!Number.isFinite(ms) || ms % bucketMs !== 0 || /\.\d*[1-9]/.test(point.timestamp))
        fault('must be a whole ten seconds of UTC');
      else if (ms + bucketMs > nowMs + aheadMsMax) fault('is a bucket that is not over yet');
      else if (seen.has(ms)) fault('appears twice in one series');
      if (findImplausible({ ...point, applications: [] }) !== null)
        fields.push({ path, message: 'has a rate above 400 Gbit/s' });
      seen.add(ms);
    }
  }
  if (fields.length === 0) return;
  throw new CodedError('protect_live.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}
