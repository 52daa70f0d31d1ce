/** What the main thread and the pacer's say to each other. */

/** Places in the memory that both threads share for a scan. */
export const SharedState = { isPaused: 0, packets: 1, holds: 2 } as const;
export const sharedBytes = 12;

export type ToPacer =
  | {
      kind: 'open';
      scanId: string;
      interfaceName: string;
      sourceAddress: string;
      address: string;
      shared: SharedArrayBuffer;
    }
  | { kind: 'watch'; scanId: string; processId: number }
  | { kind: 'forget'; scanId: string; processId: number }
  | { kind: 'close'; scanId: string };

/** Answer to `open`; `fault` is a sentence. */
export interface FromPacer {
  kind: 'opened';
  scanId: string;
  fault: string | null;
}
