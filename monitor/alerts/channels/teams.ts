/**
 * Microsoft Teams, by a workflow's webhook that posts an Adaptive Card. Such a webhook does not say which message it made, so
 * the end of an alert is a message of its own. https://learn.microsoft.com/connectors/teams/, https://adaptivecards.io
 */
import { type ChannelKind, cut } from './channel-kind.ts';

const titleMax = 1000;

export const teams: ChannelKind = {
  label: 'Microsoft Teams',
  hint: 'In Teams: the channel’s Workflows, then “Send webhook alerts to a channel”. Its webhook can’t reply in a thread, so the end of an alert is a message of its own.',
  fields: [
    {
      name: 'url',
      label: 'Webhook URL',
      kind: 'url',
      isSecret: true,
      hint: 'It holds the key to the channel, so no page shows it again.',
    },
  ],
  targetOf: () => 'a workflow of Teams',
  async send({ url: target = '' }, { summary, facts, url, tone }, { request }) {
    const card = {
      $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
      type: 'AdaptiveCard',
      version: '1.4',
      body: [
        {
          type: 'TextBlock',
          text: cut(summary, titleMax),
          weight: 'Bolder',
          size: 'Medium',
          wrap: true,
          color: { bad: 'Attention', warn: 'Warning', good: 'Good', info: 'Accent' }[tone],
        },
        { type: 'FactSet', facts: facts.map(([title, value]) => ({ title, value })) },
      ],
      ...(url ? { actions: [{ type: 'Action.OpenUrl', title: 'Open the alert', url }] } : {}),
    };
    const attachment = {
      contentType: 'application/vnd.microsoft.card.adaptive',
      contentUrl: null,
      content: card,
    };
    const body = JSON.stringify({ type: 'message', attachments: [attachment] });
    return { error: (await request(target, { body })).error };
  },
};
