/** BGP peers of the settings, and how the session with each goes. */
import type { FastifyRequest } from 'fastify';
import type { PeerState } from '#monitor/hand-off/index.ts';
import { age, badge, type Content, isoTime, refreshing, section } from '#service-kit/pages/index.ts';
import { countColumn, dataTable, textColumn } from '#service-kit/web/index.ts';

const badges: Readonly<Record<PeerState['session'], () => Content>> = {
  established: () => badge('good', 'established'),
  down: () => badge('bad', 'down'),
  unknown: () => badge('warn', 'unknown'),
  unused: () => badge('neutral', 'not needed'),
};

const texts: Readonly<Record<PeerState['session'], string>> = {
  established: '',
  down: '',
  unknown: 'No process of this monitor holds the session. Check that one runs with these settings.',
  unused: 'No rule that is on announces to it.',
};

const remarkOf = ({ problem, session }: PeerState) => problem ?? texts[session];

/** Nothing where the settings name no peers. */
export function peerSection(
  request: FastifyRequest,
  sessions: readonly PeerState[],
  path: string,
  nowMs: number,
): Content {
  if (sessions.length === 0) return '';
  return section(
    {
      id: 'peers',
      title: 'BGP peers',
      description:
        'Routers of SVC_HAND_OFF_BGP_PEERS, with the routes of all sites. A session is kept while a rule needs it.',
    },
    refreshing(
      { id: 'peer-list', url: path, everySeconds: 10 },
      dataTable<PeerState>(request, {
        id: 'peers',
        caption: 'BGP peers',
        card: { line: ['session', 'since'] },
        rows: sessions,
        isComplete: true,
        columns: [
          { key: 'peer', header: 'Peer', kind: 'code', cell: (row) => row.name, value: (row) => row.name },
          textColumn('session', 'Session', (row) => row.session, { show: (session) => badges[session]() }),
          {
            key: 'since',
            header: 'Since',
            kind: 'figure',
            cell: (row) => (row.sinceMs === null ? '' : age(row.sinceMs, nowMs)),
            value: (row) => isoTime(row.sinceMs),
          },
          countColumn('routes', 'Routes announced', (row) => row.routes, { field: 'routes' }),
          { key: 'remark', header: 'Remark', kind: 'prose', cell: remarkOf, value: remarkOf },
        ],
        empty: { title: 'No peers', text: 'SVC_HAND_OFF_BGP_PEERS names none.' },
      }),
    ),
  );
}
