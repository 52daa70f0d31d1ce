/** Ordinary traffic of real programs that comes near attacks: downloads, scans from outside and crowds of visitors. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeCertificates } from '#common/transport/testing/certificates.ts';
import {
  collect,
  ended,
  insideAddresses,
  insideMac,
  outsideAddresses,
  outsideInterface,
  outsideMac,
  runFor,
  spawnTool,
  type ToolLink,
} from '#sensor/testing/tool-link.ts';

/** What the thresholds are lowered by: what this traffic has much of. */
export type Peak = 'volume' | 'openings';

export interface OrdinaryTraffic {
  what: string;
  /** The program of another package that it needs beside Node, ip and tcpdump. */
  needs: keyof typeof ordinaryPackages | null;
  peak: Peak;
  /** How often it is over the lowered threshold. */
  ratio: number;
  direction: 'in' | 'out';
  /** Frames of up to 64 KiB, as hosts see them with offload. */
  mergesSegments?: boolean;
  /** Begins in the middle of it. */
  isUnderWay?: boolean;
  run: (link: ToolLink, folder: string, seconds: number) => Promise<unknown>;
}

export const ordinaryPackages = {
  curl: 'curl',
  iperf3: 'iperf3',
  nmap: 'nmap',
  masscan: 'masscan',
  nft: 'nftables',
} as const;

const node = [process.execPath, '--disable-warning=ExperimentalWarning'];
const serverFile = fileURLToPath(new URL('./ordinary-server.ts', import.meta.url));
const crowdFile = fileURLToPath(new URL('./ordinary-crowd.ts', import.meta.url));

/** Runs `during` while a web server runs on a side. */
async function serve(
  words: readonly string[],
  folder: string,
  during: () => Promise<unknown>,
): Promise<void> {
  makeCertificates(folder);
  const files = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const server = spawnTool([...words, ...node, serverFile, ...files]);
  const said = collect(server);
  try {
    while (!said().includes('ready')) {
      if (server.exitCode !== null) throw new Error(`ordinary-server.ts: ${said()}`);
      await wait(20);
    }
    await during();
  } finally {
    server.kill('SIGKILL');
    await ended(server);
  }
}

function download(
  version: 4 | 6,
  atOnce: number,
  side: 'inside' | 'outside',
  more: Partial<OrdinaryTraffic> = {},
) {
  const server = side === 'inside' ? outsideAddresses[version] : insideAddresses[version];
  const url = `http://${version === 6 ? `[${server}]` : server}/endless`;
  const what = `${atOnce} curl ${side}, IPv${version}${more.mergesSegments ? ', merged segments' : ''}`;
  return {
    what,
    needs: 'curl',
    peak: 'volume',
    ratio: 3,
    direction: side === 'inside' ? 'in' : 'out',
    ...more,
    run: (link: ToolLink, folder: string, seconds: number) =>
      serve(side === 'inside' ? link.outside : link.inside, folder, () =>
        Promise.all(
          Array.from({ length: atOnce }, () =>
            runFor([...link[side], 'curl', '-s', '-o', '/dev/null', url], seconds),
          ),
        ),
      ),
  } satisfies OrdinaryTraffic;
}

function transfer(what: string, direction: 'in' | 'out', words: readonly string[]): OrdinaryTraffic {
  return {
    what: `iperf3 ${what}`,
    needs: 'iperf3',
    peak: 'volume',
    ratio: 3,
    direction,
    async run({ inside, outside }, _, seconds) {
      const server = spawnTool([...outside, 'iperf3', '-s', '-1', '--forceflush']);
      const said = collect(server);
      while (!said().includes('listening') && server.exitCode === null) await wait(20);
      await runFor(
        [...inside, 'iperf3', '-c', outsideAddresses[4], '-t', String(seconds), ...words],
        seconds + 3,
      );
      server.kill('SIGKILL');
      await ended(server);
    },
  };
}

/**
 * A scan of one address is over the threshold of openings and below the one of all packets, which is five times that:
 * masscan answers each reset with a reset.
 */
function scan(what: string, tool: 'nmap' | 'masscan', words: readonly string[]): OrdinaryTraffic {
  return {
    what: `${tool} ${what}`,
    needs: tool,
    peak: 'openings',
    ratio: what.includes('/24') ? 3 : 2,
    direction: 'in',
    run: ({ outside }, _, seconds) => runFor([...outside, tool, ...words], seconds),
  };
}

const nmap = (what: string, ...words: string[]) =>
  scan(what, 'nmap', [
    '-n',
    '-Pn',
    '--disable-arp-ping',
    '--max-retries',
    '1',
    '--min-rate',
    '3000',
    ...words,
  ]);
const masscan = (what: string, ...words: string[]) =>
  scan(what, 'masscan', [
    ...['--router-mac', insideMac, '--adapter-mac', outsideMac, '--adapter', outsideInterface],
    ...['--adapter-ip', outsideAddresses[4], '--wait', '0', '--rate', '8000', ...words],
  ]);

/** Visitors by TLS from 65,000 addresses; as many processes as make the machine busy. */
function crowd(atOnce: number): OrdinaryTraffic {
  const visitors = ['198.18', '198.18'];
  return {
    what: `${atOnce * visitors.length} visitors at once, TLS`,
    needs: null,
    peak: 'openings',
    ratio: 3,
    direction: 'in',
    run: ({ inside, outside }, folder, seconds) =>
      serve(inside, folder, () =>
        Promise.all(
          visitors.map((prefix) => {
            const words = [insideAddresses[4], String(seconds), String(atOnce), prefix];
            // It ends by itself; a busy machine may take long to start it.
            return runFor([...outside, ...node, crowdFile, ...words], seconds + 60);
          }),
        ),
      ),
  };
}

/** The same with openssl at both ends, which is faster; the kernel gives each visitor another address. */
function opensslCrowd(atOnce: number, words: readonly string[]): OrdinaryTraffic {
  return {
    what: `${atOnce} openssl s_time ${words.join(' ')}`,
    needs: 'nft',
    peak: 'openings',
    ratio: 3,
    direction: 'in',
    async run({ inside, outside }, folder, seconds) {
      makeCertificates(folder);
      const rules = join(folder, 'rules.nft');
      writeFileSync(rules, manyAddresses);
      await runFor([...outside, 'nft', '-f', rules], 5);
      const files = ['-key', join(folder, 'key.pem'), '-cert', join(folder, 'cert.pem')];
      const server = spawnTool([
        ...inside,
        'openssl',
        's_server',
        '-accept',
        '443',
        ...files,
        '-www',
        '-quiet',
      ]);
      server.stdout!.resume();
      await wait(500);
      const ask = ['-connect', `${insideAddresses[4]}:443`, '-www', '/', '-time', String(seconds), ...words];
      await Promise.all(
        Array.from({ length: atOnce }, () => runFor([...outside, 'openssl', 's_time', ...ask], seconds + 2)),
      );
      server.kill('SIGKILL');
      await ended(server);
    },
  };
}

const manyAddresses = `table ip crowd {
  chain visitors {
    type nat hook postrouting priority 100
    snat to 198.18.0.2-198.18.255.254 random
  }
}
`;

export const ordinaryTraffic: readonly OrdinaryTraffic[] = [
  download(4, 1, 'inside'),
  download(6, 1, 'inside'),
  download(4, 8, 'inside'),
  download(4, 1, 'outside'),
  download(6, 8, 'outside'),
  download(4, 1, 'inside', { isUnderWay: true }),
  download(4, 1, 'inside', { mergesSegments: true }),
  download(4, 4, 'outside', { mergesSegments: true }),
  transfer('from outside', 'in', ['-R', '-P', '4']),
  transfer('to outside', 'out', ['-P', '4']),
  transfer('both ways', 'in', ['--bidir']),
  nmap('-sS -p-', '-sS', '-p-', insideAddresses[4]),
  nmap('-sT -p-', '-sT', '-p-', insideAddresses[4]),
  nmap('-sS -p- by IPv6', '-6', '-sS', '-p-', insideAddresses[6]),
  nmap('of a /24', '-sS', '192.0.2.0/24'),
  masscan('of all ports', '-p0-65535', insideAddresses[4]),
  masscan('of a /24', '-p0-65535', '192.0.2.0/24'),
  masscan('of 100 ports of a /24', '-p1-100', '192.0.2.0/24'),
  crowd(10),
  crowd(100),
  opensslCrowd(4, ['-new']),
  opensslCrowd(4, ['-reuse']),
];

/** What needs no other packages than the tests have. */
export const ordinaryInTests: readonly OrdinaryTraffic[] = [download(4, 1, 'inside'), crowd(10)];
