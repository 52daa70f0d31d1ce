/** The calls of the monitor's feed of minutes to operations, with the demo's token. */
import {
  type AllocationTarget,
  minutesContract,
  type TargetsPage,
  type TelemetryRequest,
  targetsLimitMax,
} from '#contracts/admin-api/schemas.ts';

const timeoutMs = 30_000;

export function createOperationsCalls(operationsUrl: string, token: string, signal: AbortSignal) {
  const call = async (path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${operationsUrl}/api/admin/v1${path}`, {
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
      headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    if (!answer.ok) throw new Error(`operations answered ${answer.status} to ${path}`);
    return answer.json();
  };
  return {
    async listTargets(): Promise<readonly AllocationTarget[]> {
      // A demo has fewer than one page.
      return ((await call(`/protect/targets/?limit=${targetsLimitMax}`)) as TargetsPage).targets;
    },
    async post(request: TelemetryRequest): Promise<void> {
      await call(minutesContract.path, request);
    },
  };
}
