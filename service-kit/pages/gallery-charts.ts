/** The gallery's charts: with gaps and an attack, with reasons and flags, stacks, flows, many lines, nothing measured. */
import { chart } from './chart.ts';
import { formatBytes } from './format.ts';
import { applicationsOf, explainedTrafficOf, flowsOf, trafficOf } from './gallery-data.ts';
import type { Html } from './html.ts';
import { link } from './link.ts';
import { refreshing } from './navigation.ts';
import { section } from './page-header.ts';
import type { Range } from './range.ts';
import { sankey } from './sankey.ts';
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
