/** Starts the demo's copy of the vulnerability database as a process of its own, on a free port. */
import { type AddressInfo, createServer } from 'node:net';
import { type Steps, statusOf, waitFor } from './steps.ts';
import { databasePath } from './vulnerability-database/index.ts';

/** The copy of the vulnerability database, which starts while the lab and operations do. */
export async function startDatabase(steps: Steps): Promise<{ url: string; ready: () => Promise<unknown> }> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}${databasePath}`;
  const database = steps.processes.start({
    name: 'vulnerability-database',
    args: ['demo', 'vulnerability-database', '--port', String(port)],
    env: { SVC_DATA_DIR: steps.settings.dataDir },
  });
  const what = `demo copy, a selection of NVD records, at ${url}`;
  return {
    url,
    ready: () =>
      waitFor(steps, database, 'findings', what, async () => ((await isAnswering(url)) ? true : null)),
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** A request without a product is refused, which is an answer. */
async function isAnswering(url: string): Promise<boolean> {
  return (await statusOf(url)) !== null;
}
