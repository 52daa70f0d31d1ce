/** The explorer without an answer: still reading, stopped, or refused, with its filters and what to change. */
import type { Dimension } from '#monitor/explorer/index.ts';
import { exploreForm } from '#service-kit/explorer/index.ts';
import {
  banner,
  type Content,
  emptyState,
  link,
  pageHeader,
  progress,
  type Range,
  rangePicker,
  withQuery,
} from '#service-kit/pages/index.ts';
import { formOf } from './explore.page.ts';
import type { ExploreView } from './explore-view.ts';

export type Unanswered =
  | { why: 'running'; seconds: number }
  | { why: 'stopped' }
  /** Took too long, or too many wait: the message says what to change. */
  | { why: 'refused'; title: string; message: string };

export function unansweredPage(
  view: ExploreView,
  offered: readonly Dimension[],
  range: Range,
  unanswered: Unanswered,
  nowMs: number,
): Content {
  return [
    pageHeader({
      title: 'Explorer',
      state: stateOf(unanswered),
      actions: rangePicker({ url: view.url, range, nowMs }),
    }),
    exploreForm(view, formOf(offered, view, new Map())),
    bodyOf(view, unanswered),
  ];
}

function stateOf(unanswered: Unanswered) {
  switch (unanswered.why) {
    case 'running':
      return { tone: 'info', text: 'Reading. The answer appears by itself.' } as const;
    case 'stopped':
      return { tone: 'neutral', text: 'Stopped. Nothing is read.' } as const;
    case 'refused':
      return { tone: 'warn', text: 'No answer.' } as const;
  }
}

function bodyOf(view: ExploreView, unanswered: Unanswered): Content {
  switch (unanswered.why) {
    case 'running':
      return [
        progress({
          label: 'Summing the traffic of this range',
          detail: `${unanswered.seconds} s so far; it ends by itself after a few more`,
        }),
        link(withQuery(view.url, { stopped: '1' }), 'Stop and change the filters', { kind: 'button' }),
      ];
    case 'stopped':
      return emptyState({
        title: 'Stopped',
        text: 'A shorter range, or a filter by server, address or application, is answered faster. Change them above and press Show.',
      });
    case 'refused':
      return banner({ tone: 'warn', title: unanswered.title, text: unanswered.message });
  }
}
