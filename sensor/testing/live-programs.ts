/** A running sensor and Debian's FastNetMon on one interface, with the same thresholds: who decides what, and when. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Thresholds } from '#sensor/detector/index.ts';
import { collect, ended, spawnTool } from './tool-link.ts';

/** Where the programs listen. */
export interface ProgramPlace {
  /** Words that run a program there. */
  words: readonly string[];
  interfaceName: string;
  /** For their files. */
  folder: string;
}

export interface ProgramScope {
  prefixes: readonly string[];
  thresholds: Thresholds;
}

const node = [process.execPath, '--disable-warning=ExperimentalWarning'];

/** The sensor's capture and detection, with a plan that has the thresholds. */
export function startSensor(
  { words, interfaceName, folder }: ProgramPlace,
  { prefixes, thresholds }: ProgramScope,
) {
  const file = fileURLToPath(new URL('./live-detector.ts', import.meta.url));
  const state = join(folder, 'state');
  mkdirSync(state);
  const plan = {
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    local_cidrs: [...prefixes],
    protected_targets: [],
    detection_version: 1,
    detection: { additional_cidrs: [...prefixes], ...thresholds, groups: [], drills: [] },
  };
  const child = spawnTool([...words, ...node, file, interfaceName, state, JSON.stringify(plan)]);
  const said = collect(child);
  const begin = async () => {
    while (!said().includes('"listening"')) {
      if (child.exitCode !== null) throw new Error(`the sensor: ${said()}`);
      await wait(50);
    }
  };
  return {
    ready: begin(),
    /** Each attack when it lay in the spool, and again with each change of its class. */
    attacks: () =>
      said()
        .split('\n')
        .filter((line) => line.includes('"target"'))
        .map((line) => JSON.parse(line) as { target: string; class: string; atMs: number }),
    decidedAt(target: string): number | null {
      return this.attacks().find((one) => one.target === target)?.atMs ?? null;
    },
    async close() {
      child.kill('SIGKILL');
      await ended(child);
    },
  };
}

/** FastNetMon of Debian with the same thresholds, and otherwise the settings that its package brings. */
export function startFastNetMon(
  { words, interfaceName, folder }: ProgramPlace,
  { prefixes, thresholds }: ProgramScope,
) {
  const { pps, bps, syn_pps: synPps, udp_pps: udpPps, icmp_pps: icmpPps } = thresholds.inbound;
  const file = (entry: string) => join(folder, entry);
  const calls = file('calls');
  writeFileSync(file('networks'), `${prefixes.join('\n')}\n`);
  writeFileSync(file('whitelist'), '');
  writeFileSync(calls, '');
  writeFileSync(file('notify.sh'), `#!/bin/sh\necho "$(date +%s%3N) $1 $2 $3 $4" >> ${calls}\n`);
  chmodSync(file('notify.sh'), 0o755);
  const own: Record<string, string | number> = {
    disable_usage_report: 'on',
    networks_list_path: file('networks'),
    white_list_path: file('whitelist'),
    notify_script_path: file('notify.sh'),
    pid_path: file('pid'),
    cli_stats_file_path: file('stats'),
    cli_stats_ipv6_file_path: file('stats6'),
    enable_api: 'off',
    prometheus: 'off',
    monitor_local_ip_addresses: 'off',
    mirror_afpacket: 'on',
    interfaces: interfaceName,
    ban_for_bandwidth: 'on',
    threshold_mbps: bps / 1e6,
    threshold_pps: pps,
    ban_for_tcp_pps: 'on',
    threshold_tcp_pps: synPps,
    ban_for_udp_pps: 'on',
    threshold_udp_pps: udpPps,
    ban_for_icmp_pps: 'on',
    threshold_icmp_pps: icmpPps,
  };
  const lines = readFileSync('/etc/fastnetmon.conf', 'utf8').split('\n');
  const isOwn = (line: string) => (line.split('=')[0] ?? '').trim() in own;
  const settings = Object.entries(own).map(([key, value]) => `${key} = ${value}`);
  writeFileSync(file('conf'), [...lines.filter((line) => !isOwn(line)), ...settings, ''].join('\n'));
  const options = ['--configuration_file', file('conf'), '--log_file', file('log'), '--disable_pid_logic'];
  const child = spawnTool([...words, 'fastnetmon', ...options]);
  const said = collect(child);
  const log = () => (existsSync(file('log')) ? readFileSync(file('log'), 'utf8') : '');
  const begin = async () => {
    while (!log().includes('Start AF_PACKET worker process')) {
      if (child.exitCode !== null) throw new Error(`fastnetmon: ${said()} ${log()}`);
      await wait(50);
    }
  };
  return {
    ready: begin(),
    version: spawnSync('fastnetmon', ['--version'], { encoding: 'utf8' }).stdout.trim().split('\n').at(-1),
    /** Each call of its script to ban a target. */
    bans: () =>
      readFileSync(calls, 'utf8')
        .split('\n')
        .filter((line) => line.endsWith(' ban'))
        .map((line) => line.split(' '))
        .map(([atMs, target]) => ({ target: canonicalAddress(target!) ?? target!, atMs: Number(atMs) })),
    /** When its script was called for the target, unix milliseconds. */
    bannedAt(target: string): number | null {
      return this.bans().find((one) => one.target === target)?.atMs ?? null;
    },
    async close() {
      child.kill('SIGKILL');
      await ended(child);
    },
  };
}
