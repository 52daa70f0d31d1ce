import { createReporter } from '#common/reporter/index.ts';
import { readSensorConfig } from '#sensor/config.ts';
import { loadRing } from '#sensor/packet-source/index.ts';
import { dropPrivileges } from '#sensor/privileges/index.ts';
import { findScanLimits } from '#sensor/scanner/index.ts';

/** Called before `run` opens anything: reduces a sensor that root started to the capabilities for capturing. */
export async function dropRoot(environment: Readonly<Record<string, string | undefined>>): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const config = readSensorConfig(environment);
  const { stateDirectory, captures, replayFile, logFormat: format, logLevel: level } = config;
  if (captures.length === 0) return;
  const methods = captures.flatMap(({ source }) => (source.kind === 'live' ? [source.method ?? 'auto'] : []));
  const usesTcpdump =
    methods.includes('tcpdump') || (methods.includes('auto') && typeof (await loadRing()) === 'string');
  // Makes the groups that scans get theirs below, while this is still allowed.
  if (config.scans.isOn) findScanLimits();
  const authority = environment.NODE_EXTRA_CA_CERTS;
  dropPrivileges({
    stateDirectory,
    files: [...(replayFile ? [replayFile] : []), ...(authority ? [authority] : [])],
    usesTcpdump,
    reporter: createReporter({ program: 'sensor', format, level }),
  });
}
