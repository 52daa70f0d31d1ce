/** `POST /client/servers/{id}/protect/settings`: what is shown and told of a server's protection. */
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import {
  type FindingMailChoice,
  findingMailChoices,
  type ProtectSettings,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  banner,
  field,
  form,
  type Html,
  hiddenField,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { upperFirst } from '../../parts/index.ts';
import { Id, type Visitor } from '../guard.ts';
import { findServerOf, serverFrame } from '../servers/server-frame.ts';

const onOff = Type.Unsafe<'on' | 'off'>({ type: 'string', enum: ['on', 'off'] });
// A box that is not ticked is not sent.
const ticked = Type.Optional(onOff);
const SettingsForm = Type.Object({
  views: onOff,
  attack_mail: ticked,
  attack_webhook: ticked,
  port_mail: ticked,
  port_webhook: ticked,
  finding_mail: Type.Optional(Type.Enum([...findingMailChoices])),
  finding_webhook: ticked,
});

export function registerProtectSettings(app: App, deps: Features): void {
  app.post(
    '/servers/:id/protect/settings',
    { schema: { params: Id, body: SettingsForm } },
    async (request, reply) => {
      const { visitor, server } = await findServerOf(deps.servers, request);
      const { views, attack_mail, attack_webhook, port_mail, port_webhook, finding_mail, finding_webhook } =
        request.body;
      const wanted = {
        viewsOn: views === 'on',
        attackMail: attack_mail === 'on',
        attackWebhook: attack_webhook === 'on',
        portMail: port_mail === 'on',
        portWebhook: port_webhook === 'on',
        findingMail: finding_mail ?? 'off',
        findingWebhook: finding_webhook === 'on',
      };
      try {
        await deps.protectSettings.change(visitor.actor, server.id, wanted);
      } catch (error) {
        throw hasCode(error, 'protect_settings.not_found') ? noSuchPage() : error;
      }
      return reply.redirect(`/client/servers/${server.id}/protect`, 303);
    },
  );
}

interface SettingsOptions {
  visitor: Visitor;
  server: Server;
  settings: ProtectSettings;
}

function mailChoiceLabel(choice: FindingMailChoice): string {
  if (choice === 'off') return 'Off';
  return `${upperFirst(choice)} ${choice === findingMailChoices.at(-1) ? 'only' : 'and above'}`;
}

const actionOf = (server: Server) => `/client/servers/${server.id}/protect/settings`;

/** The protection settings of a server: a section of the Protect page, and the page that is left while the views are off. */
export function settingsSection({ visitor, server, settings }: SettingsOptions): Html {
  return section({ title: 'Settings', id: 'settings', description: 'For this server only.' }, [
    form({ action: actionOf(server), csrfToken: visitor.csrfToken, submit: 'Save', submitKind: 'button' }, [
      hiddenField('views', 'on'),
      field({
        kind: 'checkbox',
        name: 'attack_mail',
        label: 'Mail when an attack starts and ends',
        hint: 'To every member of the organization.',
        checked: settings.attackMail,
      }),
      field({
        kind: 'checkbox',
        name: 'attack_webhook',
        label: 'Webhook events when an attack starts and ends',
        hint: 'server.attack_started, server.attack_ended, server.filter_started and server.filter_ended, to the endpoints that chose them.',
        checked: settings.attackWebhook,
      }),
      field({
        kind: 'checkbox',
        name: 'port_mail',
        label: 'Mail when a port opens',
        hint: 'To every member of the organization, once for each scan that finds newly open ports.',
        checked: settings.portMail,
      }),
      field({
        kind: 'checkbox',
        name: 'port_webhook',
        label: 'Webhook events when a port opens or closes',
        hint: 'server.port_opened and server.port_closed, to the endpoints that chose them.',
        checked: settings.portWebhook,
      }),
      field({
        kind: 'select',
        name: 'finding_mail',
        label: 'Mail about new potential vulnerabilities',
        hint: 'To every member of the organization, once for each check that finds new ones of this severity.',
        value: settings.findingMail,
        options: findingMailChoices.map((value) => ({ value, label: mailChoiceLabel(value) })),
      }),
      field({
        kind: 'checkbox',
        name: 'finding_webhook',
        label: 'Webhook events about new potential vulnerabilities',
        hint: 'server.finding_new, of any severity, to the endpoints that chose it.',
        checked: settings.findingWebhook,
      }),
    ]),
    actionButton({
      action: actionOf(server),
      csrfToken: visitor.csrfToken,
      label: 'Turn off protection views',
      fields: choicesOf(settings, 'off'),
    }),
  ]);
}

/** The Protect tab while the views are off; the choices are kept. */
export function viewsOffPage({ visitor, server, settings }: SettingsOptions): Html {
  const header = pageHeader({
    title: server.name,
    state: { tone: 'neutral', text: 'Protection views are off.' },
  });
  return serverFrame({ visitor, server, tab: 'protect' }, header, [
    banner({
      tone: 'info',
      title: 'Attacks, minutes and applications of this server are not shown',
      text: 'Alerts are off too. Observation and mitigation continue. Turn the views on to see everything observed since.',
    }),
    actionButton({
      action: actionOf(server),
      csrfToken: visitor.csrfToken,
      label: 'Turn on protection views',
      kind: 'primary',
      fields: choicesOf(settings, 'on'),
    }),
  ]);
}

/** The switch changes nothing else. */
function choicesOf(settings: ProtectSettings, views: 'on' | 'off') {
  const { attackMail, attackWebhook, portMail, portWebhook, findingMail, findingWebhook } = settings;
  return {
    views,
    ...(attackMail && { attack_mail: 'on' }),
    ...(attackWebhook && { attack_webhook: 'on' }),
    ...(portMail && { port_mail: 'on' }),
    ...(portWebhook && { port_webhook: 'on' }),
    finding_mail: findingMail,
    ...(findingWebhook && { finding_webhook: 'on' }),
  };
}
