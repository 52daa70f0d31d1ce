/**
 * ntfy. The end of an alert replaces its notification (`sequence_id`, since 2.16; an older server shows a second one).
 * https://docs.ntfy.sh/publish/#publish-as-json
 */
import { type ChannelKind, cut, serverField, shaped } from './channel-kind.ts';

const messageBytesMax = 4096;
const priorities = { bad: 5, warn: 4, good: 3, info: 3 };
const tags = { bad: 'rotating_light', warn: 'warning', good: 'white_check_mark', info: 'information_source' };

export const ntfy: ChannelKind = {
  label: 'ntfy',
  hint: 'Who knows a topic of a public server can read it: choose a name that can’t be guessed, or use a token.',
  isOwnNetwork: true,
  fields: [
    serverField({ preset: 'https://ntfy.sh' }),
    {
      name: 'topic',
      label: 'Topic',
      parse: shaped(/^[-\w]{1,64}$/, 'A topic has up to 64 letters, digits, - and _.'),
    },
    {
      name: 'token',
      label: 'Access token',
      isSecret: true,
      isOptional: true,
      placeholder: 'tk_…',
      parse: shaped(/^tk_\w{10,100}$/, 'An access token of ntfy begins with tk_.'),
    },
  ],
  targetOf: ({ server = '', topic = '' }) => `${topic} of ${new URL(server).host}`,
  async send({ server = '', topic, token }, { id, openedId, summary, facts, url, tone }, { request }) {
    const message = facts.map(([name, value]) => `${name}: ${value}`).join('\n');
    const body = JSON.stringify({
      topic,
      title: cut(summary, 250),
      message: cut(message || summary, messageBytesMax / 4),
      priority: priorities[tone],
      tags: [tags[tone]],
      sequence_id: openedId ?? id,
      ...(url ? { click: url } : {}),
    });
    const headers = token ? { authorization: `Bearer ${token}` } : {};
    return { error: (await request(`${server}/`, { body, headers })).error };
  },
};
