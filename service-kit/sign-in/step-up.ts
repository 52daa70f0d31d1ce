/**
 * What asks again: every route of the three consoles that can change something, by whether a session that has not proved
 * who its person is for fifteen minutes is asked to (`confirm-identity.ts`).
 *
 * Sensitive is what moves money or sets prices, gives or takes access, sends data to another place, hands out a secret,
 * acts on the network by itself, or destroys a server. A route that is in no list can't be registered behind a guard.
 */
import type { App } from '#service-kit/http/index.ts';

/** `always`; `with_factor`: only people with a second factor, because the form has everyone's password; `never`. */
export type StepUp = 'always' | 'with_factor' | 'never';

/** The pages of one's own account, which each console has. */
const accounts = ['/client/account', '/console/account', '/account'];

const always = [
  // The portal: `servers/new` orders, and its answer has the root password.
  '/client/servers/new',
  '/client/servers/:id/destroy',
  // Another price, a lost disk, a root password.
  '/client/servers/:id/resize',
  '/client/servers/:id/rebuild',
  '/client/servers/:id/reset-password',
  '/client/servers/:id/rescue',
  '/client/servers/:id/unrescue',
  '/client/servers/:id/snapshots/restore',
  '/client/servers/:id/snapshots/delete',
  // Keyboard and screen, also while it starts.
  '/client/servers/:id/console',
  '/console/clusters/nodes/:id/mend',
  '/client/billing/cards/new',
  '/client/billing/cards/return',
  '/client/billing/cards/test',
  '/client/billing/cards/default',
  '/client/billing/cards/remove',
  '/client/billing/credit',
  '/client/billing/used-up',
  '/client/settings/invitations',
  '/client/settings/members/remove',
  '/client/settings/profile',

  '/client/developer/',
  '/client/developer/rotate',
  '/client/developer/narrow',
  '/client/developer/revoke',
  '/client/developer/ssh-keys/',
  '/client/developer/webhooks/',
  '/client/developer/webhooks/:id',
  '/client/developer/webhooks/:id/rotate',
  // The operators' console.
  '/console/customers/',
  '/console/customers/:id/credit',
  '/console/customers/:id/adjust',
  '/console/customers/:id/status',
  '/console/customers/:id/close',
  '/console/customers/:id/members/active',
  '/console/customers/:id/members/factors',
  '/console/customers/:id/members/link',
  '/console/servers/:id/guard',
  '/console/staff/',
  '/console/staff/active',
  '/console/staff/factors',
  '/console/staff/link',
  '/console/clusters/',
  '/console/clusters/:id/nodes',
  '/console/clusters/nodes/:id',
  '/console/clusters/nodes/:id/open',
  '/console/clusters/nodes/:id/close',
  '/console/clusters/nodes/:id/remove',
  '/console/clusters/:id/pools',
  '/console/clusters/pools/:id/remove',
  '/console/catalog/locations',
  '/console/catalog/locations/:id',
  '/console/catalog/plans',
  '/console/catalog/plans/:id',
  '/console/catalog/images',
  '/console/catalog/images/:id',
  '/console/projects/',
  '/console/projects/:id',
  '/console/projects/:id/tokens',
  '/console/projects/:id/sources',
  '/console/projects/:id/revoke',
  // The monitor's console.
  '/sites',
  '/sites/:siteId/settings/name',
  '/sites/:siteId/settings/local-cidrs',
  '/api/v1/sites/:siteId/application-settings',
  '/sites/:siteId/settings/full-scan',
  '/sites/:siteId/settings/enrolment-tokens',
  '/sites/:siteId/read-tokens',
  '/sites/:siteId/read-tokens/:tokenId/revoke',
  '/sites/:siteId/sensors/:sensorId/revoke',
  '/sites/:siteId/sensors/:sensorId/node',
  '/sites/:siteId/sensors/:sensorId/rotate',
  '/sites/:siteId/protection/additional-cidrs',
  '/sites/:siteId/protection/hand-off/limit',
  '/sites/:siteId/protection/hand-off/rules',
  '/sites/:siteId/protection/hand-off/rules/:ruleId',
  '/sites/:siteId/protection/hand-off/rules/:ruleId/mode',
  '/sites/:siteId/protection/hand-off/rules/:ruleId/delete',
  '/alerts/channels',
  '/alerts/channels/:channelId',
  '/alerts/channels/:channelId/disable',
  '/alerts/channels/:channelId/delete',
  '/operations/connection',
  '/operations/connection/untested',
  '/operations/clusters',
  '/operations/notice-secret',
  '/settings/people',
  '/settings/people/:operatorId',
  '/settings/people/:operatorId/factors',
  '/settings/people/:operatorId/link',
  // Both consoles.
  ...['/console/sign-on', '/settings/sign-on'].flatMap((base) =>
    ['key', 'peer', 'link', 'unlink'].map((what) => `${base}/${what}`),
  ),
  '/sign-on/link',
  ...['/console/account/oidc', '/account/oidc'].flatMap((base) => [`${base}/link`, `${base}/unlink`]),
  ...accounts.flatMap((base) =>
    [
      ...['app/new', 'app/confirm', 'app/remove'],
      ...['passkeys/new', 'passkeys', 'passkeys/remove', 'recovery'],
    ].map((what) => `${base}/${what}`),
  ),
];

const withFactor = accounts.map((base) => `${base}/password`);

const never = [
  // Of a demo on this machine.
  '/client/demo/attack',
  '/demo/attack',
  // Daily work on one's own servers.
  '/client/servers/new/check',
  '/client/servers/:id/resize/check',
  '/client/servers/:id/actions',
  '/client/servers/:id/snapshots',
  '/client/servers/:id/attach-iso',
  '/client/servers/:id/detach-iso',
  '/client/servers/:id/words',
  '/client/networks/',
  '/client/networks/:id',
  '/client/networks/:id/sync',
  '/client/networks/:id/attach',
  '/client/networks/:id/detach',
  '/client/networks/:id/delete',
  '/client/servers/:id/reverse-dns',
  '/client/addresses/',
  '/client/addresses/attach',
  '/client/addresses/detach',
  '/client/addresses/release',
  '/client/servers/:id/networks/attach',
  '/client/servers/:id/networks/detach',
  '/client/servers/:id/firewall/switch',
  '/client/servers/:id/firewall/policies',
  '/client/servers/:id/firewall/remove',
  '/client/servers/:id/firewall/move',
  '/client/servers/:id/firewall/add',
  '/client/servers/:id/firewall/edit',
  '/client/servers/:id/protect/scan',
  '/client/servers/:id/protect/findings/:address/:service/:cve/ignore',
  '/client/servers/:id/protect/findings/ignore',
  '/client/servers/:id/protect/findings/:address/:service/:cve/end-ignore',
  '/client/servers/:id/protect/settings',
  '/client/settings/organization',
  '/client/settings/workspaces',
  '/client/settings/invitations/revoke',
  // They send to the address that is stored, or stop sending.
  '/client/developer/ssh-keys/delete',
  '/client/developer/webhooks/:id/delete',
  '/client/developer/webhooks/:id/enable',
  '/client/developer/webhooks/:id/disable',
  '/client/developer/webhooks/:id/test',
  '/client/developer/webhooks/:id/replay',
  '/console/clusters/nodes/:id/check',
  '/console/reconciliation/retry',
  '/console/servers/:id/retry',
  '/console/servers/:id/resolve',
  '/console/servers/:id/actions',
  // Work under an attack, and what only pages show.
  '/sites/:siteId/devices/:deviceId/name',
  '/sites/:siteId/vulnerabilities/servers/:clusterId/:serverId/ignore',
  '/sites/:siteId/vulnerabilities/servers/:clusterId/:serverId/ignores/:ignoreId/end',
  '/sites/:siteId/availability',
  '/sites/:siteId/availability/:probeId',
  '/sites/:siteId/availability/:probeId/delete',
  '/sites/:siteId/protection/thresholds',
  '/sites/:siteId/protection/groups',
  '/sites/:siteId/protection/groups/:groupId',
  '/sites/:siteId/protection/groups/:groupId/delete',
  '/sites/:siteId/protection/groups/:groupId/what-if',
  '/sites/:siteId/protection/groups/:groupId/what-if/:replayId/cancel',
  '/sites/:siteId/protection/addresses/:address',
  '/sites/:siteId/protection/servers/:clusterId/:serverId',
  '/sites/:siteId/protection/addresses/:address/drills',
  '/sites/:siteId/protection/addresses/:address/drills/:drillId/stop',
  '/sites/:siteId/protection/hand-off/actions/:actionId/approve',
  '/sites/:siteId/protection/hand-off/actions/:actionId/drop',
  '/sites/:siteId/protection/hand-off/actions/:actionId/end',
  '/sites/:siteId/protection/hand-off/actions/:actionId/give-up',
  '/alerts/:episodeId/acknowledge',
  '/alerts/:episodeId/mute',
  '/alerts/channels/:channelId/test',
  '/alerts/channels/:channelId/enable',
  '/operations/test',
  '/operations/import',
  ...['/client/traffic', '/console/traffic', '/sites/:siteId/explore'].flatMap((base) => [
    `${base}/views`,
    `${base}/views/:viewId/remove`,
  ]),
  // Ending one's sessions takes access away from others only.
  ...accounts.flatMap((base) => [`${base}/sessions/end`, `${base}/sessions/end-others`]),
];

/** Every path with its answer. */
export const stepUpOf: ReadonlyMap<string, StepUp> = new Map([
  ...always.map((url) => [url, 'always'] as const),
  ...withFactor.map((url) => [url, 'with_factor'] as const),
  ...never.map((url) => [url, 'never'] as const),
]);

/** Refuses the start of a program whose guarded routes are not all in the table. For the scope of a guard, before its routes. */
export function requireStepUp(scope: App): void {
  scope.addHook('onRoute', ({ method, url }) => {
    const isUnsafe = [method].flat().some((one) => !['GET', 'HEAD', 'OPTIONS'].includes(one));
    if (isUnsafe && !stepUpOf.has(url))
      throw new Error(`${url} is not in service-kit/sign-in/step-up.ts: say whether it asks for proof`);
  });
}
