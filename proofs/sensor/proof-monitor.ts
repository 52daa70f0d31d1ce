/** A server instead of the monitor that sometimes fails, refuses and loses answers, and keeps what it stored. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';

export interface ProofMonitor {
  url: string;
  /** Stored uploads by identity; each applies once. */
  stored: Map<string, TelemetryUpload>;
  stop(): void;
}

/** Starts it; `random` decides each answer: always 1 for a monitor without failures. */
export async function startProofMonitor(random: () => number): Promise<ProofMonitor> {
  const stored = new Map<string, TelemetryUpload>();
  const server: Server = createServer(async (incoming, response) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const pieces: Buffer[] = [];
    try {
      for await (const piece of incoming) pieces.push(piece as Buffer);
    } catch {
      // The sensor was killed during its request: there is nothing to store.
      return;
    }
    const upload = decodeUpload(
      decompressUpload(Buffer.concat(pieces), incoming.headers['content-encoding']),
    );
    const key = `${upload.spoolId} ${upload.sequence}`;
    const luck = random();
    if (luck < 0.1) return answer(500, {});
    // Gap records are not refused, because nothing could replace them.
    const mayRefuse = upload.minutes.length > 0 && !stored.has(key);
    if (luck < 0.13 && mayRefuse) return answer(422, { error: { code: 'refused', message: 'refused' } });
    const receipt = stored.has(key) ? 'duplicate' : 'accepted';
    if (!stored.has(key)) stored.set(key, upload);
    if (luck < 0.25) return incoming.socket.destroy();
    answer(200, { spool_id: upload.spoolId, sequence: upload.sequence, receipt });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stored,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
