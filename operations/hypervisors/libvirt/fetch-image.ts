/**
 * Brings an image from a URL into the storage pool of a node. It goes through this process piece by piece and is compared with its checksum
 * on the way, so neither the node has to reach the URL nor this host has to have room for it. Under its name there is an image as a whole
 * or none: what arrives is a volume `<image>.part` until then.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { ImageSource } from '../guest.ts';
import { checked } from './domain-xml.ts';
import { type Virsh, virshError } from './run-virsh.ts';
import { deleteVolume, listVolumes } from './volumes.ts';

/** See `HypervisorDriver.fetchImage`. */
export async function fetchImage(
  { call, uri, pool }: { call: Virsh; uri: string; pool: string },
  { file: image, url, checksum }: ImageSource,
  step: (progress: number) => void,
): Promise<void> {
  const part = `${checked('image', image)}.part`;
  const algorithm = algorithms.get(checksum.length);
  if (algorithm === undefined || !/^[0-9a-f]+$/.test(checksum))
    throw refused('A checksum is SHA-256 or SHA-512: 64 or 128 digits of 0-9 and a-f.');
  await call(['pool-refresh', pool]);
  if ((await listVolumes(call, pool)).includes(image))
    throw refused(`The storage pool ${pool} has ${image} already, and disks may stand on it.`);
  const { body, bytes } = await open(url);
  await deleteVolume(call, pool, part);
  try {
    await call(['vol-create-as', pool, part, String(bytes), '--format', 'raw']);
    const hash = createHash(algorithm);
    let passed = 0;
    const watch = new Transform({
      transform(piece: Buffer, _, done) {
        hash.update(piece);
        passed += piece.length;
        step(Math.floor((100 * passed) / bytes));
        done(null, piece);
      },
    });
    await upload(uri, pool, part, body, watch);
    const found = hash.digest('hex');
    if (passed !== bytes) throw failed(`${url} ended after ${passed} of ${bytes} bytes.`);
    if (found !== checksum)
      throw refused(`${url} has another checksum: ${found} instead of ${checksum}. The node did not get it.`);
    await call(['pool-refresh', pool]);
    const isDisk = image.endsWith('.qcow2');
    if (isDisk && !(await call(['vol-dumpxml', '--pool', pool, part])).includes("<format type='qcow2'/>"))
      throw refused(`${url} is not of the format qcow2.`);
    await call(['vol-clone', '--pool', pool, part, image]);
  } finally {
    await deleteVolume(call, pool, part);
  }
}

const algorithms = new Map([
  [64, 'sha256'],
  [128, 'sha512'],
]);

async function open(url: string): Promise<{ body: Readable; bytes: number }> {
  let response: Response;
  try {
    response = await fetch(url);
  } catch (error) {
    throw failed(`${url} can’t be fetched (${describeError(error)}).`);
  }
  // A compressed answer would have another length than what it holds.
  const bytes = Number(response.headers.get('content-encoding') ? 0 : response.headers.get('content-length'));
  if (response.ok && response.body !== null && bytes > 0)
    return { body: Readable.fromWeb(response.body), bytes };
  await response.body?.cancel();
  throw failed(
    response.ok ? `${url} does not say its length.` : `${url} answers with status ${response.status}.`,
  );
}

/** Writes the volume from a stream; virsh itself notices a node that has gone. */
async function upload(uri: string, pool: string, volume: string, body: Readable, watch: Transform) {
  // virsh opens its input by a name, which works for a pipe and not for the socket that a child of this process has.
  const script = 'cat | virsh -q -c "$1" vol-upload --pool "$2" "$3" /dev/stdin';
  const child = spawn('sh', ['-c', script, 'sh', uri, pool, volume], {
    stdio: ['pipe', 'ignore', 'pipe'],
    env: { ...process.env, LC_ALL: 'C', LANGUAGE: 'C' },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = `${said}${text}`.slice(-10_000);
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const fault = await pipeline(body, watch, child.stdin).catch((error: unknown) => error);
  const [code] = await ended;
  if (code !== 0) throw virshError('vol-upload', said);
  if (fault !== undefined) throw failed(`The image broke off (${describeError(fault)}).`);
}

const refused = (message: string) => new CodedError('hypervisor.refused', message);
const failed = (message: string) => new CodedError('hypervisor.failed', message);
