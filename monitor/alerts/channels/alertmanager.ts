/**
 * Prometheus Alertmanager (API v2). It forgets an alert that is not repeated, so an open one is: a monitor that is gone leaves
 * none behind for longer than three times this. https://prometheus.io/docs/alerting/latest/clients/
 */
import { type ChannelKind, serverField, shaped } from './channel-kind.ts';

const repeatSeconds = 300;

export const alertmanager: ChannelKind = {
  label: 'Alertmanager',
  hint: 'Alerts have the labels alertname, severity, site and subject, and are repeated every five minutes while they are open.',
  isOwnNetwork: true,
  repeatSeconds,
  fields: [
    serverField({ label: 'URL', placeholder: 'http://alertmanager.example.net:9093' }),
    {
      name: 'token',
      label: 'Bearer token',
      isSecret: true,
      isOptional: true,
      hint: 'Where a proxy before Alertmanager asks for one.',
      parse: shaped(/^[\x21-\x7e]{1,1000}$/, 'A token is one word.'),
    },
  ],
  targetOf: ({ server = '' }) => new URL(server).host,
  async send({ server = '', token }, notification, { nowMs, request }) {
    const { transition, summary, severity, source, kind, site, text, url, openedAtMs, resolvedAtMs } =
      notification;
    const endsAtMs =
      transition === 'resolved'
        ? (resolvedAtMs ?? nowMs)
        : nowMs + (transition === 'test' ? 60_000 : 3 * repeatSeconds * 1000);
    const alert = {
      labels: { alertname: kind, severity, subject: source, ...(site ? { site } : {}), job: 'svc-monitor' },
      annotations: { summary, description: text },
      startsAt: new Date(openedAtMs).toISOString(),
      endsAt: new Date(endsAtMs).toISOString(),
      ...(url ? { generatorURL: url } : {}),
    };
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    const answer = await request(`${server}/api/v2/alerts`, { headers, body: JSON.stringify([alert]) });
    return { error: answer.error };
  },
};
