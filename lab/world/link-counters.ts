/** What the kernel counts on guests' links on the public bridge, in IP bytes as everything of the lab. */
import type { WorldNames } from './name-world.ts';
import { links } from './networks.ts';
import { runTool } from './run-tool.ts';

export interface LinkCounters {
  receivedBytes: number;
  sentBytes: number;
}

interface Way {
  bytes: number;
  packets: number;
}

const ethernetHeaderBytes = 14;

/** By link name, from the guest's point of view: what the hypervisor's end sent is what the guest received. */
export async function readLinkCounters(names: WorldNames): Promise<Map<string, LinkCounters>> {
  const output = await runTool([
    ...['ip', '-n', names.hypervisorNamespace, '-j', '-s', 'link', 'show', 'master', links.bridge],
  ]);
  const shown = JSON.parse(output || '[]') as { ifname?: string; stats64?: { rx: Way; tx: Way } }[];
  const counters = new Map<string, LinkCounters>();
  for (const { ifname, stats64 } of shown) {
    if (ifname === undefined || stats64 === undefined) continue;
    counters.set(ifname, { receivedBytes: ipBytes(stats64.tx), sentBytes: ipBytes(stats64.rx) });
  }
  return counters;
}

function ipBytes(way: Way): number {
  return Math.max(0, way.bytes - ethernetHeaderBytes * way.packets);
}
