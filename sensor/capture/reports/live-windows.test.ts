import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MinuteReport, WindowReport } from '#sensor/capture/index.ts';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  ethernet,
  ip,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';
import type { MinuteCapture as Capture } from '../minute-capture.ts';

const startMs = testMinute * 1000;
const talk: SegmentOptions = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };

/** Plays a minute of many conversations; returns its ten-second windows and the minute. */
function playMinute(capture: Capture): { windows: WindowReport[]; minutes: MinuteReport[] } {
  const windows: WindowReport[] = [];
  for (let second = 0; second < 60; second += 0.25) {
    const host = 1 + (Math.floor(second * 7) % 40);
    const there = { ...talk, from: `192.0.2.${host}`, fromPort: 30_000 + Math.floor(second) };
    offer(capture, ethernet(udp(there, new Uint8Array(100 + host))), second);
    if (host % 3 === 0) offer(capture, ethernet(udp(reverse(there), new Uint8Array(900))), second);
    if (host % 5 === 0)
      offer(
        capture,
        ethernet(ip(new Uint8Array(10), { from: '192.0.2.7', to: '192.0.2.7', protocol: 47 })),
        second,
      );
    windows.push(...capture.closeWindows(startMs + second * 1000));
  }
  const minutes = capture.closeMinutes(startMs + 60_000);
  windows.push(...capture.closeWindows(startMs + 60_000));
  return { windows, minutes };
}

test('NET-2.5.1: live windows are exact differences of exact addresses; six of them are the minute', () => {
  const capture = testCapture({ windowMs: 10_000 });
  const { windows, minutes } = playMinute(capture);
  assert.deepEqual(
    windows.map((window) => [window.startedAtMs - startMs, window.observedMs]),
    [0, 10_000, 20_000, 30_000, 40_000, 50_000].map((start) => [start, 10_000]),
  );
  for (const { hosts, totals } of windows) {
    assert.ok(hosts.length > 5 && totals.ipBytes > 0, 'each window has the traffic of its own ten seconds');
  }
  const summed = new Map<string, number[]>();
  for (const host of windows.flatMap((window) => window.hosts)) {
    const sums = summed.get(host.address) ?? [0, 0, 0];
    summed.set(host.address, [sums[0]! + host.rxBytes, sums[1]! + host.txBytes, sums[2]! + host.packets]);
  }
  const local = minutes[0]!.hosts.filter((host) => host.isLocal);
  assert.ok(local.length > 30);
  for (const { address, rxBytes, txBytes, packets } of local) {
    assert.deepEqual(summed.get(address), [rxBytes, txBytes, packets], address);
  }
  assert.equal(summed.size, local.length, 'no remote address is in a window');
  for (const field of ['packets', 'ipBytes', 'parserDropped'] as const) {
    const sum = windows.reduce((all, window) => all + window.totals[field], 0);
    assert.equal(sum, minutes[0]!.totals[field], field);
  }
});

test('windows do not change their minute', () => {
  const withWindows = testCapture({ windowMs: 10_000, windowApplicationsMax: 10 });
  const without = testCapture();
  const observed = [withWindows, without].map((capture) => playMinute(capture).minutes);
  assert.deepEqual(observed[0], observed[1]);
  assert.deepEqual(without.closeWindows(startMs + 120_000), []);
});

test('NET-2.5.1: the first window has the time it was observed; an idle address is left out, not zero', () => {
  const capture = testCapture({ windowMs: 10_000 });
  capture.listeningSince(startMs + 4000);
  offer(capture, ethernet(udp(talk, ascii('x'))), 5);
  capture.addKernelDropped(3);
  const windows = capture.closeWindows(startMs + 20_000);
  assert.deepEqual(
    windows.map((window) => [window.observedMs, window.hosts.length, window.totals.kernelDropped]),
    [
      [6000, 1, 3],
      [10_000, 0, 0],
    ],
  );
});

test('a window lists the largest applications, by the present name of their flow', () => {
  const capture = testCapture({ windowMs: 10_000, windowApplicationsMax: 2 });
  offer(capture, ethernet(tcp(talk, Tcp.ack, 2, clientHello({ host: 'www.example.com' }))), 1);
  offer(capture, ethernet(tcp(reverse(talk), Tcp.ack, 2, new Uint8Array(1000))), 2);
  offer(
    capture,
    ethernet(ip(new Uint8Array(500), { from: '192.0.2.7', to: '203.0.113.1', protocol: 47 })),
    3,
  );
  offer(capture, ethernet(udp({ ...talk, toPort: 53 }, ascii('x'))), 4);
  offer(capture, ethernet(tcp(reverse(talk), Tcp.ack, 1002, new Uint8Array(100))), 12);
  const windows = capture.closeWindows(startMs + 20_000);
  const shown = windows.map((window) =>
    window.applications.map((row) => [row.name, row.protocol, row.serverPort]),
  );
  assert.deepEqual(shown, [
    [
      ['example.com', 6, 443],
      ['GRE', 47, null],
    ],
    [['example.com', 6, 443]],
  ]);
  assert.equal(windows[1]!.applications[0]!.serverBytes, 140);
});
