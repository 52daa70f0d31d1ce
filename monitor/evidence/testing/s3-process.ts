/**
 * A store that speaks the S3 wire, as a process of its own: it verifies signatures (AWS Signature Version 4) and the digest
 * of what is sent, and keeps objects in memory. What it can't do: several buckets, lists, parts.
 *
 * usage: s3-process.ts BUCKET ACCESS_KEY SECRET      prints its port; each line of its input is the status of all answers, 0: none
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

const [bucket, accessKey, secret] = process.argv.slice(2) as [string, string, string];
const objects = new Map<string, Buffer>();
let failure = 0;

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
const hmac = (key: Buffer | string, text: string) => createHmac('sha256', key).update(text).digest();

/** The name of an error of the wire; null: this request is signed by the key. */
function findFault(request: IncomingMessage, body: Buffer): string | null {
  const { headers, method, url } = request;
  const parsed =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    );
  if (!parsed) return 'AccessDenied';
  const [, id, day, region, signedHeaders, signature] = parsed as unknown as string[];
  if (id !== accessKey) return 'InvalidAccessKeyId';
  const digest = String(headers['x-amz-content-sha256']);
  if (digest !== sha256(body)) return 'XAmzContentSHA256Mismatch';
  const [path, query = ''] = url!.split('?') as [string, string?];
  const canonical = [
    method,
    path,
    query
      .split('&')
      .map((part) => (part === '' || part.includes('=') ? part : `${part}=`))
      .sort()
      .join('&'),
    ...signedHeaders!
      .split(';')
      .map((name) => `${name}:${String(headers[name]).trim().replaceAll(/ +/g, ' ')}`),
    '',
    signedHeaders,
    digest,
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, sha256(canonical)].join('\n');
  const key = ['s3', 'aws4_request'].reduce(hmac, hmac(hmac(`AWS4${secret}`, day!), region!));
  return timingSafeEqual(hmac(key, text), Buffer.from(signature!, 'hex')) ? null : 'SignatureDoesNotMatch';
}

const statuses: Readonly<Record<string, number>> = {
  NoSuchKey: 404,
  NoSuchBucket: 404,
  MethodNotAllowed: 405,
  XAmzContentSHA256Mismatch: 400,
};

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const refuse = (code: string, status = statuses[code] ?? 403) =>
    response
      .writeHead(status, { 'content-type': 'application/xml' })
      .end(
        `<?xml version="1.0"?><Error><Code>${code}</Code><Message>key ${accessKey} of ${secret}</Message></Error>`,
      );
  if (failure > 0) return refuse(failure === 507 ? 'XMinioStorageFull' : 'InternalError', failure);
  const fault = findFault(request, body);
  if (fault !== null) return refuse(fault);
  const [, name, ...rest] = decodeURIComponent(request.url!.split('?')[0]!).split('/');
  const key = rest.join('/');
  if (name !== bucket) return refuse('NoSuchBucket');
  if (request.method === 'HEAD' && key === '') return response.writeHead(200).end();
  if (request.method === 'PUT') {
    objects.set(key, body);
    return response.writeHead(200, { etag: `"${sha256(body).slice(0, 32)}"` }).end();
  }
  if (request.method === 'GET') {
    const object = objects.get(key);
    return object
      ? response.writeHead(200, { 'content-length': object.length }).end(object)
      : refuse('NoSuchKey');
  }
  if (request.method !== 'DELETE') return refuse('MethodNotAllowed');
  objects.delete(key);
  return response.writeHead(204).end();
});

server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
createInterface({ input: process.stdin })
  .on('line', (line) => {
    failure = Number(line);
    console.log([...objects.keys()].join(' '));
  })
  .on('close', () => process.exit());
