/** PagerDuty's Events API v2. The end of an alert resolves its incident. https://developer.pagerduty.com/docs/events-api-v2-overview */
import { type ChannelKind, cut, serverField, shaped } from './channel-kind.ts';

const summaryMax = 1024;

export const pagerduty: ChannelKind = {
  label: 'PagerDuty',
  hint: 'Add the integration “Events API V2” to a service. A test opens an incident and resolves it at once.',
  fields: [
    {
      name: 'key',
      label: 'Integration key',
      isSecret: true,
      parse: shaped(/^[a-zA-Z0-9]{32}$/, 'An integration key has 32 letters and digits.'),
    },
    serverField({
      preset: 'https://events.pagerduty.com',
      hint: 'https://events.eu.pagerduty.com for an account in the EU.',
    }),
  ],
  targetOf: ({ server = '' }) => new URL(server).host,
  async send({ key, server }, notification, { request }) {
    const { id, openedId, transition, summary, severity, source, kind, site, facts, url, timestamp } =
      notification;
    const event = { routing_key: key, dedup_key: openedId ?? id };
    const enqueue = (body: object) =>
      request(`${server}/v2/enqueue`, { body: JSON.stringify({ ...event, ...body }) });
    if (transition !== 'resolved') {
      const payload = {
        summary: cut(summary, summaryMax),
        source,
        severity,
        timestamp,
        ...(site ? { group: site } : {}),
        class: kind,
        custom_details: Object.fromEntries(facts),
      };
      const links = url ? { client: 'svc monitor', client_url: url } : {};
      const opened = await enqueue({ event_action: 'trigger', payload, ...links });
      if (transition === 'opened' || opened.error !== null) return { error: opened.error };
    }
    return { error: (await enqueue({ event_action: 'resolve' })).error };
  },
};
