/** A capture of many UDP exchanges between different sockets, written frame by frame so that any number is possible. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { pcapFile } from './capture-files.ts';

const header = 16;
const frameBytes = 14 + 20 + 8 + 32;
/** IP total length of each packet. */
export const exchangePacketBytes = frameBytes - 14;

export interface ExchangeOptions {
  /** Packets of each exchange: 2 with an answer, 1 without. */
  packets?: 1 | 2;
  /** Number of remote addresses; by default the number of exchanges. */
  remotes?: number;
  /** Offset of the first remote address in 11.0.0.0/8. */
  firstRemote?: number;
  perSecond?: number;
}

/** Writes `count` exchanges of 192.0.2.1 with addresses of 11.0.0.0/8 on port 7000. */
export function writeExchanges(path: string, count: number, options: ExchangeOptions = {}): void {
  const { packets = 2, remotes = count, firstRemote = 0, perSecond = 20_000 } = options;
  const file = openSync(path, 'w');
  writeSync(file, pcapFile([]));
  const record = Buffer.alloc(header + frameBytes);
  record.writeUInt32LE(frameBytes, 8);
  record.writeUInt32LE(frameBytes, 12);
  record.writeUInt16BE(0x0800, header + 12);
  record[header + 14] = 0x45;
  record.writeUInt16BE(exchangePacketBytes, header + 16);
  record[header + 22] = 64;
  record[header + 23] = 17;
  record.writeUInt16BE(8 + 32, header + 38);
  const pieces: Buffer[] = [];
  for (let i = 0; i < count; i += 1) {
    record.writeUInt32LE(1_700_000_000 + Math.floor(i / perSecond), 0);
    record.writeUInt32LE(Math.floor(((i % perSecond) / perSecond) * 1e6), 4);
    const remote = 0x0b000000 + firstRemote + (i % remotes);
    // Ephemeral ports without a known service, which would be considered the server.
    const port = 52_000 + (i % 11_987);
    for (let packet = 0; packet < packets; packet += 1) {
      record.writeUInt32BE(packet === 0 ? 0xc0000201 : remote, header + 26);
      record.writeUInt32BE(packet === 0 ? remote : 0xc0000201, header + 30);
      record.writeUInt16BE(packet === 0 ? port : 7000, header + 34);
      record.writeUInt16BE(packet === 0 ? 7000 : port, header + 36);
      pieces.push(Buffer.from(record));
    }
    if (pieces.length >= 8192) writeSync(file, Buffer.concat(pieces.splice(0)));
  }
  writeSync(file, Buffer.concat(pieces));
  closeSync(file);
}
