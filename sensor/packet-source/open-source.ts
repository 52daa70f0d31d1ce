/** Opens the source that a capture's settings name. */
import { openLiveSource } from './live-source.ts';
import type { PacketSource } from './packet-source.ts';
import { openReplaySource } from './replay-source.ts';

export type SourceSpec =
  | { kind: 'live'; interfaceName: string; ringMiB: number }
  | { kind: 'replay'; file: string };

/** Throws a `CodedError` (`capture.…`) that says what is missing. */
export function openSource(spec: SourceSpec): PacketSource {
  return spec.kind === 'live' ? openLiveSource(spec) : openReplaySource(spec.file);
}
