/** Resize, rebuild and a new root password from the Settings tab, by the same operations that the API uses. */
import { Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import { formatMoney, isConfirmed, sendPage } from '#service-kit/pages/index.ts';
import { findServerOf } from './guard-server.ts';
import { newPasswordPage } from './machine.page.ts';
import { faultOf } from './server.routes.ts';
import { type SettingsDeps, showSettings } from './server-settings.routes.ts';

const Id = Type.Object({ id: Type.String() });
const ResizeForm = Type.Object({
  plan: Type.String({ maxLength: 64 }),
  keep_disk: Type.Optional(Type.String({ maxLength: 10 })),
  on_timeout: Type.Union([Type.Literal('fail'), Type.Literal('stop')]),
});
const RebuildForm = Type.Object({ image: Type.String({ maxLength: 64 }) });

export function registerMachine(app: App, deps: SettingsDeps): void {
  const { servers } = deps;
  for (const isDryRun of [false, true])
    app.post(
      `/servers/:id/resize${isDryRun ? '/check' : ''}`,
      { schema: { params: Id, body: ResizeForm } },
      async (request, reply) => {
        const of = await findServerOf(servers, request);
        const { plan, keep_disk: keep, on_timeout: onTimeout } = request.body;
        const held = { plan, keepDisk: keep !== undefined, onTimeout };
        let forecast = '';
        const fault = await faultOf(async () => {
          const resize = await servers.resizeServer(of.visitor.actor, null, of.server.id, held, { isDryRun });
          forecast = forecastText(resize);
        });
        if (fault !== null) return showSettings(deps, of, reply, 409, { resize: { ...held, error: fault } });
        if (!isDryRun) return reply.redirect(`/client/servers/${of.server.id}?done=resize`, 303);
        return showSettings(deps, of, reply, 200, { resize: { ...held, forecast } });
      },
    );

  app.post('/servers/:id/rebuild', { schema: { params: Id, body: RebuildForm } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const { image } = request.body;
    let password = '';
    const isMeant = isConfirmed(request.body, of.server.name);
    const fault = isMeant
      ? await faultOf(async () => {
          const { rootPassword } = await servers.rebuildServer(of.visitor.actor, null, of.server.id, {
            image,
          });
          password = rootPassword;
        })
      : `Nothing was rebuilt: the name typed is not ${of.server.name}.`;
    if (fault !== null)
      return showSettings(deps, of, reply, isMeant ? 409 : 422, { rebuild: { image, error: fault } });
    const text = 'The server is being rebuilt. The password is valid when it runs again.';
    return sendPage(reply, newPasswordPage(of, password, text));
  });

  app.post('/servers/:id/reset-password', { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    let password = '';
    const resetError = await faultOf(async () => {
      password = (await servers.resetPassword(of.visitor.actor, null, of.server.id)).rootPassword;
    });
    if (resetError !== null) return showSettings(deps, of, reply, 409, { resetError });
    const text =
      'It is valid when the server’s activity shows that it was set, or from the next boot where it says so.';
    return sendPage(reply, newPasswordPage(of, password, text));
  });
}

function forecastText(resize: Awaited<ReturnType<SettingsDeps['servers']['resizeServer']>>): string {
  const { action, hourlyQuanta, monthlyCapQuanta, dueQuanta, isRestarted } = resize;
  if (!action.changed) return 'The server has this plan already.';
  const due = dueQuanta > 0 ? ` ${formatMoney(dueQuanta)} is charged for the hour that has begun.` : '';
  const restart = isRestarted
    ? 'The server is shut down and started again.'
    : 'The server is off and stays off.';
  return `${formatMoney(hourlyQuanta)} an hour, at most ${formatMoney(monthlyCapQuanta)} a month.${due} ${restart}`;
}
