/** Processes started as a container file says, on this machine: addresses, ports and mounted files are replaced. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readImage } from './compose.ts';

export interface ProcessOrder {
  name: string;
  /** Arguments of the image's entry point. */
  args: readonly string[];
  /** What the container is given beside the image's own environment. */
  environment: Readonly<Record<string, string>>;
  /** Text to be replaced in the environment, such as a mounted folder by one of this machine. */
  replaced: Readonly<Record<string, string>>;
  /** Ports of the container → free ports of this machine. */
  ports: Readonly<Record<string, number>>;
}

export interface StartedProcess {
  name: string;
  child: ChildProcess;
  log: string[];
  /** SIGTERM, as every container runtime sends it; resolves with the exit code. */
  end(): Promise<number | null>;
}

/** Starts it in the image's working directory (`layOutImage`); does not wait. */
export function startProcess(image: string, order: ProcessOrder): StartedProcess {
  const { entrypoint, environment } = readImage();
  const [program, ...first] = entrypoint;
  if (program !== 'node') throw new Error(`the entry point is ${program}`);
  const given: Record<string, string> = { ...environment, ...order.environment };
  for (const [key, value] of Object.entries(given)) {
    given[key] = Object.entries(order.replaced).reduce(
      (text, [from, to]) => text.replaceAll(from, to),
      value,
    );
    if (/_PORT$/.test(key)) given[key] = String(order.ports[value] ?? value);
  }
  for (const key of Object.keys(given)) if (given[key] === '0.0.0.0') given[key] = '127.0.0.1';
  // The pages' ports are the programs' defaults, which no file names.
  if (order.ports['8080'] !== undefined) given.SVC_OPERATIONS_PORT = String(order.ports['8080']);
  if (order.ports['8090'] !== undefined) given.SVC_MONITOR_PORT = String(order.ports['8090']);
  const child = spawn(process.execPath, [...first, ...order.args], {
    cwd: image,
    // Without the internet, which tests do not use.
    env: {
      PATH: process.env.PATH,
      // What one process has compiled, those that start after its end need not.
      NODE_COMPILE_CACHE: `${image}-compiled`,
      ...given,
      SVC_NVD_URL: '',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const log: string[] = [];
  child.stderr!.on('data', (piece: Buffer) => log.push(piece.toString()));
  const gone = once(child, 'exit').then(([code]) => code as number | null);
  return {
    name: order.name,
    child,
    log,
    end() {
      child.kill('SIGTERM');
      return gone;
    },
  };
}
