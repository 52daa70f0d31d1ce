/** What a chart says without its script: why values are missing, what happened; and which colours names have. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type ChartData, chart, chartJson, coloursOf, REST_COLOUR, sankey } from './index.ts';

const startMs = Date.UTC(2026, 10, 21, 10, 0);
const minute = 60_000;
const at = (index: number) => startMs + index * minute;

function dataOf(values: readonly (number | null)[], more: Partial<ChartData> = {}): ChartData {
  return {
    timesMs: values.map((_value, index) => at(index)),
    stepMs: minute,
    series: [{ label: 'In', role: 'in', values }],
    ...more,
  };
}

const textOf = (html: unknown) =>
  String(html)
    .replaceAll(/<script.*?<\/script>/gs, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ');

const page = (data: ChartData) => chart({ id: 'c', title: 'Traffic', unit: 'bit/s', data });

describe('reasons', () => {
  test('a run of times without values is one row with its reason', () => {
    const reasons = [{ fromMs: at(1), toMs: at(4), text: 'sensor not running' }];
    const text = textOf(page(dataOf([1e6, null, null, null, 2e6], { reasons })));
    assert.match(text, /2026-11-21 10:01 to 10:03 UTC, 3 points sensor not running no data/);
    assert.match(text, /10:04 UTC 2\.00 Mbit\/s/);
    assert.equal(text.match(/sensor not running/g)?.length, 1);
  });

  test('two reasons beside each other are two rows, and a gap without a reason names none', () => {
    const reasons = [
      { fromMs: at(0), toMs: at(2), text: 'before creation' },
      { fromMs: at(2), toMs: at(3), text: 'packets lost' },
    ];
    const text = textOf(page(dataOf([null, null, null, null, 1], { reasons })));
    assert.match(text, /10:00 to 10:01 UTC, 2 points before creation/);
    assert.match(text, /10:02 UTC packets lost no data/);
    assert.match(text, /10:03 UTC no data/);
  });

  test('the first of several reasons for a time is told', () => {
    const reasons = [
      { fromMs: at(0), toMs: at(1), text: 'capture failed' },
      { fromMs: at(0), toMs: at(1), text: 'minute not finished' },
    ];
    assert.match(textOf(page(dataOf([null, 5], { reasons }))), /10:00 UTC capture failed no data/);
  });

  test('a chart without any value says why', () => {
    const reasons = [{ fromMs: at(0), toMs: at(2), text: 'kept no longer' }];
    const text = textOf(page(dataOf([null, null], { reasons })));
    assert.match(
      text,
      /Nothing was measured in this range\. Why: kept no longer \(2026-11-21 10:00 to 10:02 UTC\)\./,
    );
    const short = [{ fromMs: at(0), toMs: at(0) + 20_000, text: 'not delivered yet' }];
    assert.match(
      textOf(page(dataOf([null, null], { reasons: short }))),
      /not delivered yet \(2026-11-21 10:00:00 to 10:00:20 UTC\)/,
    );
  });

  test('a ghost of the period before is no value of the time', () => {
    const data = dataOf([null, null]);
    const previous = { label: 'In, previous', role: 'in' as const, isPrevious: true, values: [7, 8] };
    const reasons = [{ fromMs: at(0), toMs: at(2), text: 'sensor not running' }];
    const text = textOf(page({ ...data, series: [...data.series, previous], reasons }));
    assert.match(text, /10:00 to 10:01 UTC, 2 points sensor not running/);
  });
});

test('flags are a list of links, newest first, and travel to the script in order', () => {
  const flags = [
    { timeMs: at(0), text: 'Deployed', href: '/servers/1' },
    { timeMs: at(1), text: 'SYN flood', tone: 'bad' as const },
  ];
  const data = dataOf([1, 2], { flags });
  const html = String(page(data));
  assert.match(html, /What happened \(2\)/);
  assert.ok(html.indexOf('SYN flood</li>') < html.indexOf('<a href="/servers/1" class="link">Deployed</a>'));
  assert.deepEqual(chartJson('bit/s', data).flags, [
    { timeMs: at(0), text: 'Deployed', tone: 'neutral', href: '/servers/1' },
    { timeMs: at(1), text: 'SYN flood', tone: 'bad', href: null },
  ]);
  assert.throws(() => page(dataOf([1], { flags: [{ timeMs: at(0), text: 'x', href: 'javascript:x' }] })));
});

describe('what is drawn', () => {
  const range = { fromMs: at(0), toMs: at(30) };
  const late = Array.from({ length: 30 }, (_, index) => (index < 18 ? null : index));
  const json = (data: ChartData) =>
    chartJson('bit/s', data) as {
      times: { startMs: number; count: number };
      range: { fromMs: number };
      isBars: boolean;
      summary: string;
      series: { label: string; colour?: number }[];
    };

  test('a range begins at the first value, unless something is missing before it', () => {
    const young = json(
      dataOf(late, { range, reasons: [{ fromMs: at(0), toMs: at(18), text: 'x', tone: 'neutral' }] }),
    );
    assert.deepEqual([young.range.fromMs, young.times.startMs, young.times.count], [at(18), at(18), 12]);
    const lost = json(
      dataOf(late, { range, reasons: [{ fromMs: at(9), toMs: at(18), text: 'capture failed' }] }),
    );
    assert.deepEqual([lost.range.fromMs, lost.times.startMs], [at(9), at(9)]);
    const days = json(dataOf(late, { range, shape: 'bars' }));
    assert.equal(days.range.fromMs, at(0), 'all days of a month stay');
    const text = textOf(
      page(dataOf(late, { range, reasons: [{ fromMs: at(0), toMs: at(18), text: 'x', tone: 'neutral' }] })),
    );
    assert.match(text, /12 points\./);
  });

  test('a step that began before the range is within the axis', () => {
    const within = { fromMs: at(1) - 20_000, toMs: at(30) };
    assert.equal(json(dataOf([1, ...late], { range: within })).range.fromMs, at(0));
  });

  test('fewer than ten steps are bars, lines of more than two names are not', () => {
    const few = { fromMs: at(0), toMs: at(9) };
    assert.equal(json(dataOf([1, 2, 3], { range: few })).isBars, true);
    assert.equal(json(dataOf([1, 2, 3], { range })).isBars, false);
    const series = ['a', 'b', 'c'].map((label) => ({ label, values: [1, 2, 3] }));
    assert.equal(json(dataOf([1, 2, 3], { range: few, series })).isBars, false);
    assert.equal(json(dataOf([1, 2, 3], { range: few, series, shape: 'stacked' })).isBars, true);
  });

  test('lines have the colour of their names, and never those of in and out beside them', () => {
    const named = ['github.com', 'DNS'].map((label) => ({ label, values: [1, 2] }));
    const colours = coloursOf(['github.com', 'DNS']);
    assert.deepEqual(
      json(dataOf([1, 2], { series: named })).series.map(
        ({ label, colour }) => colour === colours.get(label),
      ),
      [true, true],
    );
    const [, ...beside] = json(
      dataOf([1, 2], { series: [{ label: 'In', role: 'in', values: [1, 2] }, ...named] }),
    ).series;
    assert.ok(beside.every(({ colour }) => colour !== 1 && colour !== 2));
  });

  test('its name for screen readers says least, most and gaps', () => {
    assert.equal(
      json(dataOf([null, 5, 2e6, null, null, 7])).summary,
      'least 5 bit/s, most 2.00 Mbit/s, 2 gaps',
    );
    assert.equal(json(dataOf([3, 4])).summary, 'least 3 bit/s, most 4 bit/s, no gaps');
  });
});

describe('colours of names', () => {
  const names = ['github.com', 'DNS', 'SSH', 'example.com', 'NTP'];
  test('are the same in any order, all different up to twelve, and never the grey of the rest', () => {
    const colours = coloursOf(names);
    assert.deepEqual([...coloursOf(names.toReversed())].sort(), [...colours].sort());
    assert.equal(new Set(colours.values()).size, names.length);
    const twelve = coloursOf(Array.from({ length: 12 }, (_, index) => `server-${index}`));
    assert.equal(new Set(twelve.values()).size, 12);
    const many = coloursOf(Array.from({ length: 40 }, (_, index) => `name-${index}`));
    assert.equal(many.size, 40);
    assert.ok([...many.values()].every((colour) => colour >= 1 && colour <= 13 && colour !== REST_COLOUR));
  });

  test('a name that leaves the list changes the colour of few others', () => {
    const all = coloursOf(names);
    const kept = names.slice(1);
    const changed = kept.filter((name) => coloursOf(kept).get(name) !== all.get(name));
    assert.ok(changed.length <= 2, changed.join());
  });
});

describe('flows', () => {
  const flows = (links: { from: string; to: string; value: number }[]) =>
    sankey({
      id: 'flows',
      title: 'Flows',
      columns: ['Server', 'Peer'],
      nodes: [
        { id: 'a', label: 'web-1', column: 0, href: '/a' },
        { id: 'b', label: '198.51.100.0/24', column: 1 },
        { id: 'c', label: 'unused', column: 1 },
      ],
      links,
      format: (value) => `${value} B`,
      emptyText: 'No flows.',
    });

  test('are a picture of links with a table as its text; nodes without flows are left out', () => {
    const html = String(flows([{ from: 'a', to: 'b', value: 12 }]));
    assert.match(
      html,
      /<a class="sankey-node series-8" data-node="a" href="\/a" aria-label="Server web-1, 12 B">/,
    );
    assert.match(textOf(html), /web-1 198\.51\.100\.0\/24 12 B/);
    assert.doesNotMatch(html, /unused|NaN/);
  });

  test('a phone sees the largest names of a column with their links, the others as one node, and no traffic less', () => {
    const peers = Array.from({ length: 9 }, (_, i) => ({ id: `p${i}`, label: `peer-${i}`, column: 1 }));
    const isRest = (i: number) => i === 4;
    const html = String(
      sankey({
        ...{ id: 'flows', title: 'Flows', columns: ['Server', 'Peer'], emptyText: 'No flows.' },
        nodes: [
          { id: 'a', label: 'web-1', column: 0, href: '/a' },
          ...peers.map((peer, i) =>
            isRest(i)
              ? { ...peer, label: 'other peers', isRest: true }
              : { ...peer, href: `/${peer.id}`, colour: 3 },
          ),
        ],
        links: peers.map(({ id }, i) => ({
          from: 'a',
          to: id,
          value: isRest(i) ? 1_000 : 10 + i,
          colour: i,
        })),
        format: (value) => `${value} B`,
      }),
    );
    const [wide, narrow] = [...html.matchAll(/<svg class="sankey-(?:wide|narrow)".*?<\/svg>/gs)].map(String);
    const namesIn = (svg: string) =>
      [...svg.matchAll(/(?:<a |<g )class="sankey-node[^>]*><title>([^<]*)</g)].map((match) => match[1]);
    assert.equal(namesIn(wide!).length, 10);
    // 10 B, 11 B and 12 B are of the rest.
    assert.deepEqual(namesIn(narrow!).sort(), [
      'Peer other peers, 1033 B',
      'Peer peer-3, 13 B',
      'Peer peer-5, 15 B',
      'Peer peer-6, 16 B',
      'Peer peer-7, 17 B',
      'Peer peer-8, 18 B',
      'Server web-1, 1112 B',
    ]);
    const links = [...narrow!.matchAll(/<a [^>]*href="([^"]*)" aria-label="([^"]*)"/g)];
    assert.deepEqual(
      links.map(([, href, name]) => [name, href]).find(([name]) => name === 'Peer peer-8, 18 B'),
      ['Peer peer-8, 18 B', '/p8'],
    );
    assert.equal(links.length, 6);
    assert.match(narrow!, /class="series-8"[^>]*><title>web-1 to other peers, 1033 B</, 'of several colours');
  });

  test('none at all say so', () => {
    assert.match(textOf(flows([{ from: 'a', to: 'b', value: 0 }])), /No flows\./);
  });
});
