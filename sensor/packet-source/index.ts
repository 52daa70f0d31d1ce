import { CodedError, describeError } from '#common/errors/index.ts';
import type { PacketSource } from './packet-source.ts';
import { openReplaySource } from './replay-source.ts';
import { openTcpdumpSource } from './tcpdump-source.ts';

/**
 * Packet input: frames from a live interface or from a replayed capture file.
 *
 * Live frames come through a ring shared with the kernel. When its library can not be loaded, or a setting demands it,
 * they come from a `tcpdump` process, and `fallback` gives the reason.
 */
export type { CaptureMethod, ObserveFrame, PacketSource } from './packet-source.ts';

/** `auto` uses the ring, or tcpdump if this machine can not load the ring's library. */
type CaptureMethodSetting = 'auto' | 'ring' | 'tcpdump';

export type SourceSpec =
  | {
      kind: 'live';
      interfaceName: string;
      ringMiB: number;
      method?: CaptureMethodSetting;
      /** Creates or joins a fanout group. */
      fanout?: 'new' | number | null;
      wantsOffloadHeader?: boolean;
    }
  | { kind: 'replay'; file: string };

interface OpenedSource {
  source: PacketSource;
  /** Why a fallback method is used, or null. */
  fallback: string | null;
}

/** Throws a `CodedError` (`capture.…`) with what is missing. */
export async function openSource(spec: SourceSpec): Promise<OpenedSource> {
  if (spec.kind === 'replay') return { source: openReplaySource(spec.file), fallback: null };
  const method = spec.method ?? 'auto';
  if (method === 'tcpdump') {
    const source = await openTcpdumpSource(spec.interfaceName);
    return { source, fallback: 'SVC_SENSOR_CAPTURE_METHOD asks for tcpdump' };
  }
  const ring = await loadRing();
  if (typeof ring !== 'string') return { source: ring.openLiveSource(spec), fallback: null };
  if (method === 'ring') {
    throw new CodedError(
      'capture.no_ring',
      `The packet ring can not be used: ${ring}. Set SVC_SENSOR_CAPTURE_METHOD=auto to fall back to tcpdump.`,
    );
  }
  const source = await openTcpdumpSource(spec.interfaceName);
  return { source, fallback: `the packet ring can not be used: ${ring}` };
}

/** The ring's module, or why its library can not be loaded (another architecture or libc). */
export async function loadRing(): Promise<typeof import('./live-source.ts') | string> {
  try {
    return await import('./live-source.ts');
  } catch (error) {
    return describeError(error).split('\n')[0]!;
  }
}
