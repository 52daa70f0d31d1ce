import { spawnSync } from 'node:child_process';
import { createReporter } from '#common/reporter/index.ts';
import { loadKernel } from '#sensor/kernel/index.ts';
import { captureCapabilities, kernelCapabilities, leaveRoot } from '#sensor/privileges/index.ts';

/**
 * Called before a command opens anything: where root started it, it goes on as the user of the sensor, with no more than
 * capturing takes. `files` are those that it was given; one that is alone captures by itself and needs no running sensor.
 */
export async function dropRoot(name: string, files: readonly (string | undefined)[] = [], isAlone = false) {
  if (process.getuid?.() !== 0) return;
  const given = files.filter((file) => file !== undefined);
  if (name === 'read' || name === 'detect') {
    const reporter = createReporter({ program: 'sensor', level: 'warn' });
    leaveRoot({ stateDirectory: null, state: 'ignores', capabilities: [], files: given, reporter });
    return;
  }
  // Reading a file does without these modules.
  const { readSensorConfig } = await import('#sensor/config.ts');
  const { stateDirectory, captures, replayFile, scans, logFormat, logLevel } = readSensorConfig(process.env);
  // It has nothing to do, and says so.
  if (name === 'run' && captures.length === 0) return;
  const settings = Object.entries(process.env).flatMap(([setting, value]) =>
    value !== undefined && (setting === 'NODE_EXTRA_CA_CERTS' || /^SVC_.*_FILE$/.test(setting))
      ? [value]
      : [],
  );
  const needsGroups = (name === 'run' && scans.isOn) || name === 'scan' || name === 'check';
  const limits = needsGroups ? await import('#sensor/scanner/limits/index.ts') : null;
  const interfaces = captures.flatMap(({ source }) => (source.kind === 'live' ? [source.interfaceName] : []));
  // It gives up the capabilities with its end, and the sensor never has them.
  if (name === 'run' && interfaces.length > 0)
    spawnSync(process.execPath, [...process.execArgv, ...commandWords(name), 'attach'], { stdio: 'inherit' });
  const kernel = name === 'attach' ? await loadKernel().catch(() => null) : null;
  leaveRoot({
    stateDirectory,
    state: name === 'scan' || isAlone ? 'ignores' : name === 'top' ? 'reads' : 'makes',
    capabilities: capabilitiesOf(name),
    files: [...given, ...(replayFile ? [replayFile] : []), ...settings],
    reporter: createReporter({ program: 'sensor', format: logFormat, level: logLevel }),
    ...(limits ? { giveMore: limits.giveScanLimits } : {}),
    ...(kernel ? { giveMore: (user) => kernel.preparePins(interfaces, user) } : {}),
  });
}

/** The command line of this process up to its command. */
const commandWords = (name: string) => process.argv.slice(1, process.argv.lastIndexOf(name));

function capabilitiesOf(name: string): readonly string[] {
  if (name === 'attach') return kernelCapabilities;
  return name === 'count' ? [...captureCapabilities, ...kernelCapabilities] : captureCapabilities;
}
