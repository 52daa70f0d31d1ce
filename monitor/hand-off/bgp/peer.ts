/** BGP peers that the settings of this installation name. */
import { isIP } from 'node:net';
import { CodedError } from '#common/errors/index.ts';

export interface BgpPeer {
  /** As rules name it: `64512@127.0.0.1:179`. */
  name: string;
  host: string;
  port: number;
  /** Its autonomous system. */
  as: number;
}

const asMax = 4_294_967_295;

/** Peers of a text such as `64512@127.0.0.1:1790, 64512@[2001:db8::1]`. Throws an error that names the wrong one. */
export function parsePeers(text: string): BgpPeer[] {
  const parts = text.split(',').map((part) => part.trim());
  const peers = parts.filter((part) => part !== '').map(parsePeer);
  return [...new Map(peers.map((peer) => [peer.name, peer])).values()];
}

function parsePeer(text: string): BgpPeer {
  const found = /^(\d{1,10})@(?:\[([0-9a-f:.]+)\]|([0-9.]+))(?::(\d{1,5}))?$/i.exec(text);
  const host = found?.[2] ?? found?.[3] ?? '';
  const as = Number(found?.[1]);
  const port = Number(found?.[4] ?? 179);
  if (!found || isIP(host) === 0 || as < 1 || as > asMax || port < 1 || port > 65_535)
    throw new CodedError('config.invalid', `must be like 64512@127.0.0.1:179, not ${text.slice(0, 80)}`);
  const address = host.includes(':') ? `[${host}]` : host;
  return { name: `${as}@${address}:${port}`, host, port, as };
}
