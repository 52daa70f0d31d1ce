/**
 * The rest around each UTC minute: no packet of a guest from half a second before to half a second after it.
 *
 * So that a minute's counters are unambiguous however the counting programs round their clocks. New exchanges stop a
 * second ahead, and what is still open shortly before the half second is cut.
 */

const minuteMs = 60_000;
/** Within the minute, milliseconds: exchanges begin from here … */
const beginsMs = 700;
/** … to here; */
const endsMs = 58_900;
/** what is still open now is cut. */
const cutMs = 59_250;

/** Milliseconds to wait until an exchange may begin, 0 when it may now. */
export function msUntilExchange(nowMs: number): number {
  const at = nowMs % minuteMs;
  if (at < beginsMs) return beginsMs - at;
  return at < endsMs ? 0 : minuteMs + beginsMs - at;
}

/** Milliseconds until connections that are still open are cut. */
export function msUntilCut(nowMs: number): number {
  const at = nowMs % minuteMs;
  return at < cutMs ? cutMs - at : minuteMs + cutMs - at;
}
