/**
 * Notes whether a capture sees both directions of the traffic. Where the other one leaves by another link there is no conversation, so a
 * download looks like a flood of acknowledgements.
 */
import type { AttackClass } from '#contracts/sensor-api/detection.ts';

/** So many seconds with packets of one direction, and none of the other, are a capture of one direction. */
const secondsMin = 60;

/** Classes that rest on missing answers. */
const restOnAnswers: ReadonlySet<AttackClass> = new Set(['ack_flood', 'udp_flood', 'connection_flood']);

export class SeenDirections {
  /** Seconds with packets since the last one of each direction. */
  #sinceInbound = 0;
  #sinceOutbound = 0;

  /** Notes what all protected addresses received and sent in a second. */
  note(inbound: number, outbound: number): void {
    if (inbound + outbound === 0) return;
    this.#sinceInbound = inbound > 0 ? 0 : this.#sinceInbound + 1;
    this.#sinceOutbound = outbound > 0 ? 0 : this.#sinceOutbound + 1;
  }

  get isOne(): boolean {
    return this.#sinceInbound >= secondsMin || this.#sinceOutbound >= secondsMin;
  }
}

/** True for a class that says nothing where only one direction is seen. */
export function restsOnAnswers(name: AttackClass): boolean {
  return restOnAnswers.has(name);
}
