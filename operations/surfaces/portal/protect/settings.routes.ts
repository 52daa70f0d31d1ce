/** `POST /client/servers/{id}/protect/settings`: what is shown and told of a server's protection. */
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { findingMailChoices } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { findServerOf } from '../servers/guard-server.ts';
import type { ProtectGuardDeps } from './guard-protect.ts';

const Id = Type.Object({ id: Type.String() });
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

export function registerProtectSettings(app: App, deps: ProtectGuardDeps): void {
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
