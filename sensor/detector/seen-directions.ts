/**
 * Notes whether a capture sees both directions of the traffic. Where the other one leaves by another link there is no conversation, so a
 * download looks like a flood of acknowledgements. A server that is down or answers nothing sends nothing either: only segments of TCP
 * connections, which their other end must have opened, show that answers exist and are not seen.
 */
import { Kind } from '#sensor/attack-counters/index.ts';
import { type Counts, totalOf } from './traffic.ts';

/** So many seconds with segments of one direction, and no packet of the other, are a capture of one direction. */
const secondsMin = 60;

export class SeenDirections {
  /** Seconds that should have had packets of a direction since its last one. */
  #sinceInbound = 0;
  #sinceOutbound = 0;

  /** Notes what all protected addresses received and sent in a second. */
  note(received: Counts, sent: { packets: number; segments: number }): void {
    if (totalOf(received).packets > 0) this.#sinceInbound = 0;
    else if (sent.segments > 0) this.#sinceInbound += 1;
    if (sent.packets > 0) this.#sinceOutbound = 0;
    else if (received[Kind.segment]! > 0) this.#sinceOutbound += 1;
  }

  get isOne(): boolean {
    return this.#sinceInbound >= secondsMin || this.#sinceOutbound >= secondsMin;
  }
}
