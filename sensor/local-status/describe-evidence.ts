import type { EvidenceStatus } from '#sensor/evidence/index.ts';

/** `2 capture files of attacks wait (1.5 MiB), 1 is recorded`. */
export function describeEvidence({ waitingFiles, waitingBytes, recording }: EvidenceStatus): string {
  const files =
    waitingFiles === 1
      ? '1 capture file of an attack waits'
      : `${waitingFiles} capture files of attacks wait`;
  const size = waitingFiles === 0 ? '' : ` (${(waitingBytes / 1024 / 1024).toFixed(1)} MiB)`;
  const now = recording === 0 ? '' : `, ${recording} ${recording === 1 ? 'is' : 'are'} recorded`;
  return `${files}${size}${now}`;
}
