/**
 * `./svc sensor top`: shows live traffic in the terminal.
 *
 * It shows the windows of the sensor that runs on this host, as sent to the monitor. With `--interface` it captures by
 * itself, without enrolment or monitor, and every address is local by default. Without a terminal it prints lines.
 */
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createCollection, createUnkeptMinutes, type LocalWindow } from '#sensor/collection/index.ts';
import { readSensorConfig, type SensorConfig } from '#sensor/config.ts';
import { followSensor } from '#sensor/local-status/index.ts';
import {
  renderPlain,
  renderPlainIncidents,
  renderTop,
  type Sorting,
  sortings,
  type TopState,
} from './top-view.ts';

/** Shorter than the monitor's windows, for interactive use. */
const ownWindowMs = 2000;

export interface TopOptions {
  interface?: string;
  local: string[];
  /** Ends after this many windows. */
  count?: number;
}

interface Screen {
  show(window: LocalWindow): void;
  update(change: Partial<TopState>): void;
  close(): void;
}

/** Runs until the person quits. Resolves with the exit code. */
export async function top(options: TopOptions, environment: Readonly<Record<string, string | undefined>>) {
  if (options.count !== undefined && !(Number.isInteger(options.count) && options.count > 0)) {
    throw new CodedError('config.invalid', '--count takes a whole number of windows, such as 5.');
  }
  const config = readSensorConfig(environment);
  let end: (code: number) => void = () => {};
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end(0));
  const screen = process.stdout.isTTY ? openScreen(() => end(0)) : openLines();
  // A reader like `head` that closes the pipe is not an error.
  process.stdout.on('error', () => end(0));
  let left = options.count ?? Number.POSITIVE_INFINITY;
  const show = (window: LocalWindow) => {
    // The stop closes one more, truncated window.
    if (left <= 0) return;
    screen.show(window);
    left -= 1;
    if (left <= 0) end(0);
  };
  try {
    const stop = options.interface
      ? await captureHere(options.interface, options.local, config.captures[0]?.source, show, screen)
      : await followRunning(config, show, screen, () => end(1));
    const code = await ended;
    await stop();
    return code;
  } finally {
    screen.close();
  }
}

async function followRunning(
  { stateDirectory, commandName }: SensorConfig,
  show: (window: LocalWindow) => void,
  screen: Screen,
  onEnd: () => void,
): Promise<() => Promise<void>> {
  const connection = await followSensor(
    stateDirectory,
    (line) => {
      if (line.kind === 'status') screen.update({ status: line.status });
      else show(line.window);
    },
    onEnd,
  );
  if (!connection) {
    throw new CodedError(
      'top.no_sensor',
      `No sensor runs with the state directory ${stateDirectory}, or you may not access it. Start one, set ` +
        `SVC_SENSOR_STATE_DIR, or watch an interface by itself: ${commandName} top --interface eth0`,
    );
  }
  return async () => connection.close();
}

async function captureHere(
  name: string,
  local: readonly string[],
  configured: { kind: string; method?: 'auto' | 'ring' | 'tcpdump' } | undefined,
  show: (window: LocalWindow) => void,
  screen: Screen,
): Promise<() => Promise<void>> {
  const prefixes = local.map((text) => {
    const prefix = parsePrefix(text);
    if (!prefix)
      throw new CodedError('config.invalid', `--local ${text} is not a prefix such as 192.0.2.0/24.`);
    return formatPrefix(prefix);
  });
  const note = (line: string) => screen.update({ note: line.slice(line.indexOf('top') + 3).trim() });
  const collection = createCollection({
    captures: [
      {
        name,
        role: 'uplink',
        source: { kind: 'live', interfaceName: name, ringMiB: 32, method: configured?.method ?? 'auto' },
      },
    ],
    // Minutes are not stored: this command only displays.
    spool: createUnkeptMinutes(),
    reporter: createReporter({ program: 'top', level: 'warn', write: note }),
    clock: systemClock,
    windowMs: ownWindowMs,
    onCommitted: () => {},
    onWindow: show,
  });
  await collection.start();
  collection.follow({
    localPrefixes: prefixes.length > 0 ? prefixes : ['0.0.0.0/0', '::/0'],
    protectedAddresses: [],
    owners: [],
    takesClaims: true,
    takesUsage: true,
    takesProtocolNames: true,
    takesLive: false,
    probes: [],
    detection: null,
    filterRules: null,
    omissions: [],
  });
  return () => collection.stop();
}

/** Lines for pipes and logs. */
function openLines(): Screen {
  let running: TopState['status'] = null;
  return {
    show(window) {
      for (const line of [renderPlain(window), ...renderPlainIncidents(running, window.capture)])
        process.stdout.write(`${line}\n`);
    },
    update({ note, status }) {
      if (status !== undefined) running = status;
      if (note) process.stderr.write(`${note}\n`);
    },
    close() {},
  };
}

/** The alternate screen of the terminal, so that the previous content is restored afterwards. */
function openScreen(onQuit: () => void): Screen {
  const { stdin, stdout } = process;
  const windows = new Map<string, LocalWindow>();
  let state: TopState = { windows, status: null, sorting: 'total', isPaused: false, note: null };

  const draw = () => {
    const lines = renderTop(state, stdout.columns ?? 80, stdout.rows ?? 24);
    stdout.write(`\x1b[H${lines.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
  };
  const onKey = (key: Buffer) => {
    const text = key.toString('latin1');
    if (text === 'q' || text === '\x03' || text === '\x1b') return onQuit();
    if (text === 'p' || text === ' ') state = { ...state, isPaused: !state.isPaused };
    if (text === 's') state = { ...state, sorting: nextSorting(state.sorting) };
    draw();
  };
  stdout.write('\x1b[?1049h\x1b[?25l');
  stdout.on('resize', draw);
  if (stdin.isTTY) {
    stdin.setRawMode(true);
    stdin.on('data', onKey);
  }
  draw();
  return {
    show(window) {
      if (state.isPaused) return;
      windows.set(window.capture, window);
      draw();
    },
    update(change) {
      state = { ...state, ...change };
      draw();
    },
    close() {
      stdout.write('\x1b[?25h\x1b[?1049l');
      if (!stdin.isTTY) return;
      stdin.setRawMode(false);
      stdin.pause();
    },
  };
}

function nextSorting(sorting: Sorting): Sorting {
  return sortings[(sortings.indexOf(sorting) + 1) % sortings.length]!;
}
