/** What the checks of untrusted bodies share. */
import { CodedError } from '#common/errors/index.ts';
import { macs } from '../world/networks.ts';

const macPattern = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** The MAC itself when a guest may have it; throws `lab.body_invalid`. */
export function unicastMac(mac: string): string {
  if (!macPattern.test(mac) || Number.parseInt(mac.slice(0, 2), 16) & 1)
    throw invalid(`"mac" must be six lower-case hex pairs of a unicast address, not "${mac}"`);
  if (Object.values<string>(macs).includes(mac)) throw invalid(`${mac} belongs to the world itself`);
  return mac;
}

/** `lab.body_invalid` with what to mend. */
export function invalid(message: string): CodedError {
  return new CodedError('lab.body_invalid', message);
}
