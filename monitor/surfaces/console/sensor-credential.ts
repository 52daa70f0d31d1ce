/** A sensor's credential on its page: until when it is taken, and the button that renews it. */
import { Type } from 'typebox';
import type { SensorState } from '#monitor/sensors/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { drawer, form, formatTime, html } from '#service-kit/pages/index.ts';
import { SiteParams } from './frame.ts';
import { type Viewer, viewerOf } from './guard.ts';
import type { ConsoleDeps } from './index.ts';

export const SensorParams = Type.Object({
  ...SiteParams.properties,
  sensorId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

export function registerSensorRotation(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/rotate',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const { actor } = viewerOf(request);
      if (!(await deps.sensors.requestRotation(actor, siteId, sensorId)))
        throw new HttpError(404, { code: 'not_found', message: 'There is no such sensor.' });
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

/** Until when the sensor's credential is taken, and what becomes of a rotation that was asked for. */
export function credentialText(sensor: SensorState): string {
  const { credentialExpiresAtMs: endsAtMs, credentialIssuedAtMs, rotationRequestedAtMs } = sensor;
  const end =
    endsAtMs === null
      ? 'No end: the sensor has not renewed it yet. Versions that do renew it within a minute.'
      : `Since ${formatTime(credentialIssuedAtMs)}, ends ${formatTime(endsAtMs)}. The sensor renews it at two thirds of that time.`;
  return rotationRequestedAtMs === null
    ? end
    : `${end} Rotation requested ${formatTime(rotationRequestedAtMs)}; the sensor has not finished it.`;
}

export function credentialRotation(siteId: number, sensor: SensorState, viewer: Viewer) {
  return drawer(
    { id: 'rotate', open: 'Rotate credential', title: `Rotate the credential of ${sensor.hostName}` },
    [
      html`<p>The sensor gets a new credential with its next plan, within a minute, and loses nothing. The old one is refused once the new one was used. If the old one is in wrong hands, remove the sensor instead: that counts at once.</p>`,
      form(
        {
          action: `/sites/${siteId}/sensors/${sensor.id}/rotate`,
          csrfToken: viewer.csrfToken,
          submit: 'Rotate credential',
        },
        null,
      ),
    ],
  );
}
