/** The gallery's charts: with gaps and an attack, with reasons and flags, stacks, flows, many lines, nothing measured. */
import { chart } from './chart.ts';
import type { ChartData } from './chart-data.ts';
import { coloursOf, REST_COLOUR } from './colours.ts';
import { formatBytes } from './format.ts';
import type { Html } from './html.ts';
import { link } from './link.ts';
import { refreshing } from './navigation.ts';
import { section } from './page-header.ts';
import type { Range } from './range.ts';
import { sankey } from './sankey.ts';
import type { SankeyLink, SankeyNode } from './sankey-layout.ts';
import { segment } from './segment.ts';
import { code } from './text.ts';

/** Charts: mirrored with gaps and an attack, many lines, nothing measured. */
export function galleryCharts(nowMs: number, range: Range): Html {
  return section(
    {
      title: 'Charts',
      description: 'Out is above zero, in below; a gap stays a gap and has a reason.',
      id: 'charts',
    },
    [
      chart({
        id: 'traffic',
        title: 'Traffic',
        unit: 'bit/s',
        data: trafficOf(nowMs, range),
        dataUrl: '/dev/gallery/chart.json',
        refreshSeconds: 60,
        source: 'uplink of node-3, minute by minute',
        csvHref: '/dev/gallery?format=csv',
        canZoom: true,
      }),
      chart({
        id: 'explained',
        title: 'Traffic with reasons, flags and the period before',
        unit: 'bit/s',
        data: explainedTrafficOf(nowMs, range),
        canZoom: true,
      }),
      chart({
        id: 'stacked',
        title: 'Parts of a whole',
        unit: 'bit/s',
        data: { ...applicationsOf(nowMs, range), shape: 'stacked' },
        canZoom: true,
      }),
      sankey({
        id: 'flows',
        title: 'Who talks to whom',
        columns: ['Server', 'Application', 'Peer'],
        ...flowsOf(),
        format: (value) => formatBytes(value),
        emptyText: 'No flows in this range.',
      }),
      refreshing(
        { id: 'live-applications', url: '/dev/gallery', everySeconds: 20 },
        chart({
          id: 'applications',
          title: 'Applications',
          unit: 'bit/s',
          data: applicationsOf(nowMs, range),
          size: 'small',
        }),
      ),
      segment({
        label: 'backend and the servers on it',
        title: code('10.20.0.0/24'),
        note: '249 addresses free, New York 1',
        members: [
          { name: link('/dev/gallery', 'web-1'), detail: '10.20.0.2', tone: 'good', state: 'attached' },
          { name: link('/dev/gallery', 'web-2'), detail: '10.20.0.3', tone: 'info', state: 'attaching' },
          { name: link('/dev/gallery', 'old-1'), detail: '10.20.0.9', tone: 'bad', state: 'not connected' },
        ],
        more: 2,
        emptyText: 'Attached servers appear here.',
      }),
      chart({
        id: 'nothing',
        title: 'Packets',
        unit: 'packets/s',
        data: {
          timesMs: [],
          series: [{ label: 'In', role: 'in', values: [] }],
          reasons: [{ fromMs: range.fromMs, toMs: range.toMs, text: 'sensor not running' }],
        },
      }),
    ],
  );
}

// Time series of the gallery, the same for the same times, so that two pictures can be compared.

/** A day's rhythm with some noise, two gaps and one attack; the same for the same times. */
export function trafficOf(nowMs: number, range: Range): ChartData {
  const stepMs = range.stepSeconds * 1000;
  const timesMs: number[] = [];
  for (let ms = range.fromMs; ms < Math.min(range.toMs, nowMs); ms += stepMs) timesMs.push(ms);
  const count = timesMs.length;
  const attack = { from: Math.floor(count * 0.62), to: Math.floor(count * 0.74) };
  const isGap = (index: number) =>
    (index > count * 0.2 && index < count * 0.25) || (count > 50 && index === Math.floor(count * 0.4));
  const noise = (seed: number) => (Math.sin(seed * 12.9898) * 43_758.5453) % 1;
  const wave = (ms: number, size: number) =>
    size * (1 + 0.35 * Math.sin(ms / 5_200_000) + 0.2 * noise(ms / 60_000));
  const isAttack = (index: number) => index >= attack.from && index < attack.to;
  return {
    timesMs,
    stepMs,
    range,
    series: [
      {
        label: 'In',
        role: 'in',
        values: timesMs.map((ms, index) =>
          isGap(index) ? null : Math.round(wave(ms, 11e6) * (isAttack(index) ? 4.2 : 1)),
        ),
      },
      {
        label: 'Out',
        role: 'out',
        values: timesMs.map((ms, index) => (isGap(index) ? null : Math.round(wave(ms + 9e5, 19e6)))),
      },
      {
        label: 'Suspected attack',
        role: 'attack',
        values: timesMs.map((ms, index) => (isAttack(index) ? Math.round(wave(ms, 11e6) * 3) : null)),
      },
      {
        label: 'Expected in',
        role: 'in',
        isExpected: true,
        values: timesMs.map((ms) => Math.round(11e6 * (1 + 0.35 * Math.sin(ms / 5_200_000)))),
      },
    ],
    areas: [{ fromMs: timesMs[attack.from] ?? nowMs, toMs: timesMs[attack.to], label: 'Attack' }],
  };
}

/** One hour of traffic with everything that a chart can say: reasons, flags, the period before, the 95th percentile. */
function explainedTrafficOf(nowMs: number, range: Range): ChartData {
  const plain = trafficOf(nowMs, range);
  const [first, second] = plain.series;
  const { timesMs } = plain;
  const at = (share: number) => timesMs[Math.floor(timesMs.length * share)] ?? nowMs;
  const later = (values: readonly (number | null)[]) =>
    values.map((value, index) => values[(index + 40) % values.length] ?? value);
  const side = (role: 'in' | 'out', label: string, values: readonly (number | null)[]) => [
    { label, role, values },
    { label: `${label}, previous`, role, isPrevious: true, values: later(values) },
  ];
  const percentile = (values: readonly (number | null)[]) => {
    const known = values.filter((value) => value !== null).sort((a, b) => a - b);
    return known[Math.ceil(known.length * 0.95) - 1] ?? 0;
  };
  return {
    ...plain,
    series: [...side('in', 'In', first?.values ?? []), ...side('out', 'Out', second?.values ?? [])],
    areas: [],
    lines: [
      { label: '95th percentile in', role: 'in', value: percentile(first?.values ?? []) },
      { label: '95th percentile out', role: 'out', value: percentile(second?.values ?? []) },
    ],
    reasons: [
      { fromMs: range.fromMs, toMs: at(0.04), text: 'before creation', tone: 'neutral' },
      { fromMs: at(0.2), toMs: at(0.25), text: 'sensor not running' },
      { fromMs: at(0.4), toMs: at(0.41), text: 'packets lost' },
      { fromMs: nowMs - 60_000, toMs: nowMs, text: 'minute not finished', tone: 'neutral' },
    ],
    flags: [
      { timeMs: at(0.04), text: 'Server deployed', tone: 'good', href: '/dev/gallery' },
      { timeMs: at(0.62), text: 'SYN flood on 198.51.100.17', tone: 'bad', href: '/dev/gallery' },
      { timeMs: at(0.63), text: 'Thresholds changed', href: '/dev/gallery' },
      { timeMs: at(0.9), text: 'Port scan', tone: 'info', href: '/dev/gallery' },
    ],
  };
}

/** Flows between three columns; the last has more names than a phone shows. */
function flowsOf(): { nodes: SankeyNode[]; links: SankeyLink[] } {
  const servers = ['web-1', 'web-2', 'database-with-a-very-long-name-that-a-program-generated', 'backup'];
  const applications = ['example.com', 'debian.org', 'DNS', 'SSH', 'other applications'];
  const peers = [
    '198.51.100.0/24',
    '203.0.113.9',
    '2001:db8:4f3a:1200::/64',
    '192.0.2.17',
    '192.0.2.128/25',
    '203.0.113.64/26',
    '2001:db8:77::5',
    'other peers',
  ];
  const colours = coloursOf(applications);
  const links: SankeyLink[] = [];
  applications.forEach((application, a) => {
    servers.forEach((server, s) => {
      const value = ((a * 7 + s * 5) % 4) * 1e9 + 2e8 * (a + s);
      links.push({ from: `s:${server}`, to: `a:${application}`, value, colour: colours.get(application) });
    });
    const sum = links
      .filter((link) => link.to === `a:${application}`)
      .reduce((all, link) => all + link.value, 0);
    const shares = [5, 3, a, 2, 1, 1, 0.5, 2];
    const whole = shares.reduce((all, share) => all + share, 0);
    peers.forEach((peer, p) => {
      links.push({ from: `a:${application}`, to: `p:${peer}`, value: (sum * (shares[p] ?? 0)) / whole });
    });
  });
  const nodes = (names: readonly string[], column: number, prefix: string) =>
    names.map((label) => ({
      id: `${prefix}:${label}`,
      label,
      column,
      ...(label.startsWith('other') ? { isRest: true } : { href: '/dev/gallery' }),
      ...(column === 1 && { colour: label.startsWith('other') ? REST_COLOUR : colours.get(label) }),
    }));
  return {
    nodes: [...nodes(servers, 0, 's'), ...nodes(applications, 1, 'a'), ...nodes(peers, 2, 'p')],
    links,
  };
}

/** Eight lines, each with a rhythm of its own. */
function applicationsOf(nowMs: number, range: Range): ChartData {
  const stepMs = range.stepSeconds * 1000;
  const timesMs: number[] = [];
  for (let ms = range.fromMs; ms < Math.min(range.toMs, nowMs); ms += stepMs) timesMs.push(ms);
  const names = ['example.com', 'debian.org', 'github.com', 'DNS', 'SSH', 'wikipedia.org', 'NTP', 'other'];
  const colours = coloursOf(names.filter((name) => name !== 'other'));
  return {
    timesMs,
    stepMs,
    series: names.map((label, index) => ({
      label,
      colour: colours.get(label) ?? REST_COLOUR,
      href: '/dev/gallery',
      values: timesMs.map((ms) =>
        Math.round((8 - index) * 4e5 * (1.2 + Math.sin(ms / (3e6 + index * 7e5) + index))),
      ),
    })),
  };
}
