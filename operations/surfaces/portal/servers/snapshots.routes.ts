/** Snapshots from the Settings tab, by the same operations that the API uses. */
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { Id } from '../guard.ts';
import { refusalOf } from '../networks/network-frame.ts';
import { findServerOf } from './server-frame.ts';
import { showSettings } from './server-settings.routes.ts';

const CreateForm = Type.Object({ name: Type.String({ maxLength: 1_000 }) });
const ChosenForm = Type.Object({ snapshot: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });

export function registerSnapshots(app: App, deps: Features): void {
  const { servers } = deps;
  /** The snapshot that a form names, of the server of its page; any other is the 404 of none. */
  const find = async (of: Awaited<ReturnType<typeof findServerOf>>, id: string) => {
    const snapshots = await servers.listSnapshots(of.visitor.actor, null, of.server.id);
    const found = snapshots.find((one) => one.id === Number(id));
    if (found === undefined) throw noSuchPage();
    return found.id;
  };
  app.post('/servers/:id/snapshots', { schema: { params: Id, body: CreateForm } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const name = request.body.name.trim();
    const error = await refusalOf(() =>
      servers.createSnapshot(of.visitor.actor, null, of.server.id, name === '' ? undefined : name),
    );
    if (error === null)
      return reply.redirect(`/client/servers/${of.server.id}/settings?done=snapshot#snapshots`, 303);
    return showSettings(deps, of, reply, 409, { snapshot: { form: 'create', error, name } });
  });

  app.post(
    '/servers/:id/snapshots/restore',
    { schema: { params: Id, body: ChosenForm } },
    async (request, reply) => {
      const of = await findServerOf(servers, request);
      const { snapshot } = request.body;
      const id = await find(of, snapshot);
      const isMeant = isConfirmed(request.body, of.server.name);
      const error = isMeant
        ? await refusalOf(() => servers.restoreSnapshot(of.visitor.actor, null, id))
        : `Nothing was restored: the name typed is not ${of.server.name}.`;
      if (error === null) return reply.redirect(`/client/servers/${of.server.id}?done=restore`, 303);
      const state = { form: 'restore', error, snapshot } as const;
      return showSettings(deps, of, reply, isMeant ? 409 : 422, { snapshot: state });
    },
  );

  app.post(
    '/servers/:id/snapshots/delete',
    { schema: { params: Id, body: ChosenForm } },
    async (request, reply) => {
      const of = await findServerOf(servers, request);
      const id = await find(of, request.body.snapshot);
      const error = await refusalOf(() => servers.deleteSnapshot(of.visitor.actor, null, id));
      if (error === null)
        return reply.redirect(`/client/servers/${of.server.id}/settings?done=deleted#snapshots`, 303);
      return showSettings(deps, of, reply, 409, { snapshot: { form: 'delete', error } });
    },
  );
}
