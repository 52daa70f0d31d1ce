/**
 * A monitor that only plans port scans, as a process of its own: answers `GET /agent/v1/port-scans` with one plan and takes every
 * report. Says `{"port"}` first, then each report that it took.
 *
 * usage: plan-monitor.ts PLAN-AS-JSON
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Value } from 'typebox/value';
import { ScanPlan, ScanReport } from '#contracts/sensor-api/port-scans.ts';

const plan = JSON.parse(process.argv[2]!) as unknown;
if (!Value.Check(ScanPlan, plan)) throw new Error('this is no scan plan');
const body = JSON.stringify(plan);
const etag = `"${createHash('sha256').update(body).digest('hex')}"`;
const say = (what: unknown) => process.stdout.write(`${JSON.stringify(what)}\n`);

const server = createServer(async (request, response) => {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  if (request.url !== '/agent/v1/port-scans') {
    response.writeHead(404).end();
    return;
  }
  if (request.method === 'GET') {
    if (request.headers['if-none-match'] === etag) response.writeHead(304).end();
    else response.writeHead(200, { etag, 'content-type': 'application/json' }).end(body);
    return;
  }
  const report = JSON.parse(Buffer.concat(pieces).toString()) as unknown;
  if (!Value.Check(ScanReport, report)) {
    response.writeHead(422).end();
    return;
  }
  say(report);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ scan_id: report.scan_id, receipt: 'accepted' }));
});
server.listen(0, '127.0.0.1', () => say({ port: (server.address() as AddressInfo).port }));
process.stdin.on('end', () => process.exit()).resume();
