/** What saving and removing views of the explorer leaves in the audit trail, in the portal and in the console. */
import type { Actor } from '#operations/accounts/index.ts';
import type { Case, Cases } from './case.ts';
import type { Stage } from './stage.ts';

const surfaces = {
  '/client': {
    visitor: ({ owned }: Stage) => owned,
    actor: ({ world, owner }: Stage) => world.accounts.customerActorOf(owner.id),
  },
  '/console': {
    visitor: ({ operated }: Stage) => operated,
    actor: ({ world, staff }: Stage) => world.accounts.staffActorOf(staff.id),
  },
} as const;

const saves = (prefix: keyof typeof surfaces): Case => [
  'saved_view.save',
  (stage) =>
    surfaces[prefix]
      .visitor(stage)
      .post(`${prefix}/traffic/views`, { name: `view ${stage.next()}`, query: 'by=server' }),
];

const removes = (prefix: keyof typeof surfaces): Case => [
  'saved_view.remove',
  async (stage) => {
    const actor = (await surfaces[prefix].actor(stage)) as Actor;
    const view = { name: `view ${stage.next()}`, query: '', isShared: false };
    const { id } = await stage.world.savedViews.save(actor, view);
    return surfaces[prefix].visitor(stage).post(`${prefix}/traffic/views/${id}/remove`, {});
  },
];

export const savedViewCases: Cases = {
  'POST /client/traffic/views': saves('/client'),
  'POST /client/traffic/views/:viewId/remove': removes('/client'),
  'POST /console/traffic/views': saves('/console'),
  'POST /console/traffic/views/:viewId/remove': removes('/console'),
};
