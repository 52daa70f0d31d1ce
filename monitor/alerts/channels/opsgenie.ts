/** Opsgenie's Alert API. The end of an alert closes it. https://docs.opsgenie.com/docs/alert-api */
import { type ChannelKind, cut, serverField, shaped } from './channel-kind.ts';

const limits = { message: 130, description: 15_000 };

export const opsgenie: ChannelKind = {
  label: 'Opsgenie',
  hint: 'Add an API integration to a team. A test opens an alert and closes it at once.',
  fields: [
    {
      name: 'key',
      label: 'API key',
      isSecret: true,
      parse: shaped(
        /^[\w-]{30,60}$/,
        'An API key has letters, digits and hyphens, such as eb243592-faa2-4ba2-a551-1afdf565c889.',
      ),
    },
    serverField({
      preset: 'https://api.opsgenie.com',
      hint: 'https://api.eu.opsgenie.com for an account in the EU.',
    }),
  ],
  targetOf: ({ server = '' }) => new URL(server).host,
  async send({ key, server }, notification, { request }) {
    const { id, openedId, transition, summary, severity, source, kind, text, facts } = notification;
    const alias = openedId ?? id;
    const headers = { authorization: `GenieKey ${key}` };
    const post = (path: string, body: object) =>
      request(`${server}/v2/alerts${path}`, { headers, body: JSON.stringify(body) });
    if (transition !== 'resolved') {
      const opened = await post('', {
        message: cut(summary, limits.message),
        alias,
        description: cut(text, limits.description),
        source: 'svc monitor',
        entity: cut(source, 512),
        priority: severity === 'critical' ? 'P1' : severity === 'warning' ? 'P3' : 'P5',
        tags: [kind],
        details: Object.fromEntries(facts),
      });
      if (transition === 'opened' || opened.error !== null) return { error: opened.error };
    }
    const closed = await post(`/${alias}/close?identifierType=alias`, {
      source: 'svc monitor',
      note: cut(summary, 1000),
    });
    return { error: closed.error };
  },
};
