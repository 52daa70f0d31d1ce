/** Writes records by the HTTP API of PowerDNS (`PATCH /api/v1/servers/{server}/zones/{zone}`). */
import { CodedError, describeError } from '#common/errors/index.ts';

const timeoutMs = 10_000;
const ttlSeconds = 3_600;

export async function writeToPowerDns(
  of: { url: string; apiKey: string; serverId: string; zone: string },
  record: string,
  target: string | null,
): Promise<void> {
  const url = `${of.url.replace(/\/$/, '')}/api/v1/servers/${encodeURIComponent(of.serverId)}/zones/${encodeURIComponent(`${of.zone}.`)}`;
  const rrset =
    target === null
      ? { changetype: 'DELETE' }
      : { changetype: 'REPLACE', ttl: ttlSeconds, records: [{ content: `${target}.`, disabled: false }] };
  let status: number;
  try {
    const response = await fetch(url, {
      method: 'PATCH',
      headers: { 'x-api-key': of.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ rrsets: [{ name: `${record}.`, type: 'PTR', ...rrset }] }),
      signal: AbortSignal.timeout(timeoutMs),
      redirect: 'error',
    });
    await response.body?.cancel();
    status = response.status;
  } catch (error) {
    throw new CodedError('reverse_dns.failed', `PowerDNS did not answer: ${describeError(error)}`);
  }
  if (status !== 204)
    throw new CodedError('reverse_dns.failed', `PowerDNS answered ${status} to a change of ${of.zone}.`);
}
