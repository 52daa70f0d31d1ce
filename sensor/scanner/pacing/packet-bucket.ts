/**
 * Decides when a scan may send, from the packets that it did send, so that no window of ten seconds has more than 80,000
 * (NET-8.3).
 *
 * nmap keeps a rate by itself, but after a stop it catches up on all probes of that time, at 58,000 a second. A window
 * has at most the burst, ten seconds of the rate, and what is sent between two looks at the counter.
 */

/** More than nmap's own rate, so that a scan that was never stopped is never held up. */
export const bucketRate = 7840;
export const bucketBurst = 600;
/** A stopped scan goes on with this many packets in hand: stops are then a few a second, not hundreds. */
const goOnWith = bucketBurst / 2;

export class PacketBucket {
  #tokens = bucketBurst;
  #atMs: number;
  #maySend = true;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Takes what was sent since the last look. Returns whether the scan may send now. */
  take(packets: number, nowMs: number): boolean {
    const earned = (Math.max(0, nowMs - this.#atMs) / 1000) * bucketRate;
    this.#tokens = Math.min(bucketBurst, this.#tokens + earned) - packets;
    this.#atMs = nowMs;
    this.#maySend = this.#tokens >= (this.#maySend ? 1 : goOnWith);
    return this.#maySend;
  }
}
