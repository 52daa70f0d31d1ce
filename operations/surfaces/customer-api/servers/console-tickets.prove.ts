/**
 * `npm run prove -- console-tickets`: `n` tickets, each used by several callers at the same moment, those of several servers at once.
 * One caller gets the console, and it is that of the ticket's server; the others and all later ones are refused.
 */
import { WebSocket } from 'ws';
import { seededRandom } from '#common/random/index.ts';
import { createWorld } from '#operations/testing/create-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { until } from '#service-kit/testing/until.ts';
import { createApiClient } from '../testing/client.ts';

export const name = 'console-tickets';

const patientMs = 30_000;

/** Connects; the status of a refusal. */
export async function connectTo(url: string): Promise<{ socket: WebSocket; text: () => string } | number> {
  const socket = new WebSocket(url);
  let text = '';
  socket.on('message', (data: Buffer) => {
    text += data;
  });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve({ socket, text: () => text }));
    socket.once('unexpected-response', (_request, response) => {
      socket.terminate();
      resolve(response.statusCode!);
    });
    socket.on('error', (error) => reject(error));
  });
}

/** Uses the ticket so often at once, and once more; what was wrong. */
export async function useAtOnce(url: string, serverId: number, callers: number): Promise<string[]> {
  const wrong: string[] = [];
  const results = await Promise.all(Array.from({ length: callers }, () => connectTo(url)));
  const consoles = results.filter((one) => typeof one !== 'number');
  if (consoles.length !== 1) wrong.push(`${consoles.length} of ${callers} callers have the console`);
  for (const refused of results) if (typeof refused === 'number' && refused !== 401) wrong.push(`${refused}`);
  for (const { text } of consoles) {
    await until('the console asks to sign in', patientMs, () => text().includes('login: '));
    if (!text().includes(`vm-${serverId} login: `)) wrong.push(`it is the console of another: ${text()}`);
  }
  const late = await connectTo(url);
  for (const one of [...consoles, late]) if (typeof one !== 'number') one.socket.terminate();
  if (late !== 401) wrong.push('a later caller has the console');
  return wrong;
}

const serverCount = 3;

async function race({ n, seed, report }: { n: number; seed: number; report(line: string): void }) {
  await using world = await createWorld();
  const call = createApiClient(world.url);
  const customer = await world.createCustomer('Racer');
  const key = await world.createKey(customer);
  const serverIds: number[] = [];
  for (let i = 0; i < serverCount; i += 1)
    serverIds.push((await world.deploy(customer.tenant, `racer-${i}`)).serverId);
  const random = seededRandom(seed);
  const faults: string[] = [];
  for (let tried = 0; tried < n; tried += serverCount) {
    const tickets = await Promise.all(
      serverIds.slice(0, n - tried).map(async (serverId) => {
        const { body } = await call('POST', `/api/v2/servers/${serverId}/console`, { key });
        return { serverId, url: body.url as string, callers: 2 + Math.floor(random() * 4) };
      }),
    );
    const wrong = await Promise.all(
      tickets.map(({ url, serverId, callers }) => useAtOnce(url, serverId, callers)),
    );
    for (const one of wrong.flat()) {
      report(`FAULT in a race from ${tried} on: ${one}`);
      faults.push(one);
    }
    if (tried % 300 === 0) report(`${tried} races`);
  }
  return faults;
}

/** Planted fault: a ticket is read beside its deletion, so that callers of one moment all see it. */
const readBeside = (text: string) =>
  text.replace(
    /^\s*delete from console_tickets where digest = (\$\d+)\s+returning ([\s\S]*)$/,
    'with gone as (delete from console_tickets where digest = $1) select $2 from console_tickets where digest = $1 and pg_sleep(0.01) is not null',
  );

const plantedRaces = 15;

export async function prove(options: { n: number; seed: number; report(line: string): void }) {
  const faults = await race(options);
  let caught = 0;
  {
    using planted = plantSql(readBeside);
    const found = await race({ ...options, n: plantedRaces, report: () => {} });
    if (planted.changed > 0 && found.length > 0) caught = 1;
  }
  return {
    claim:
      'of callers who use a ticket at the same moment one gets the console, and it is that of its server',
    tried: options.n,
    failures: faults.length,
    plantedBugsCaught: `${caught} of 1`,
  };
}
