/**
 * The signed VM-destroyed notice that operations sends to the monitor (NET-2.8).
 *
 * The signature is hex HMAC-SHA256 over `<timestamp>.` and the raw body. Nothing in the body is read before both
 * the timestamp and the signature hold (NET-5.4).
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Id, Timestamp } from '../scalars.ts';

export const timestampHeader = 'x-operations-timestamp';
export const signatureHeader = 'x-operations-signature';
export const noticePath = '/integrations/operations/vm-destroyed';
export const noticeBytesMax = 64 * 1024;
export const noticeToleranceSeconds = 300;

export const DestroyNotice = Type.Object({
  cluster_id: Id,
  destroyed_at: Type.Optional(Timestamp),
  virtual_machines: Type.Array(
    Type.Object({
      id: Id,
      mac_addresses: Type.Optional(Type.Array(Type.String({ maxLength: 17 }), { maxItems: 64 })),
    }),
    { maxItems: 100 },
  ),
});
export type DestroyNotice = Static<typeof DestroyNotice>;

export const DestroyNoticeResult = Type.Object({
  destroyed_applied: Type.Integer(),
  devices_archived: Type.Integer(),
  destroyed_skipped: Type.Integer(),
  duplicates: Type.Integer(),
});
export type DestroyNoticeResult = Static<typeof DestroyNoticeResult>;

/** The value of `X-Operations-Signature` for this timestamp text and raw body. */
export function signNotice(secret: string, timestamp: string, body: Uint8Array): string {
  return `sha256=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`;
}

/**
 * True when the timestamp is within five minutes of `nowSeconds` (both ends included) and the signature fits.
 *
 * Header texts are matched exactly: no other spelling of a number or of hex digits is taken. The raw text of the
 * timestamp is what is signed, so that no re-formatting can stand between the check and the proof.
 */
export function verifyNotice(
  secret: string,
  timestamp: string,
  signature: string,
  body: Uint8Array,
  nowSeconds: number,
): boolean {
  if (!isFreshTimestamp(timestamp, nowSeconds)) return false;
  if (!/^sha256=[0-9a-f]{64}$/.test(signature)) return false;
  const expected = Buffer.from(signNotice(secret, timestamp, body), 'ascii');
  return timingSafeEqual(expected, Buffer.from(signature, 'ascii'));
}

/** True for whole Unix seconds in plain decimal within the tolerance; can be asked before the body has arrived. */
export function isFreshTimestamp(timestamp: string, nowSeconds: number): boolean {
  if (!/^(0|[1-9][0-9]{0,11})$/.test(timestamp)) return false;
  return Math.abs(nowSeconds - Number(timestamp)) <= noticeToleranceSeconds;
}
