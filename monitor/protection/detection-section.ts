/** The plan's section `detection`: what a sensor judges attacks by. */
import { parseAddress, parsePrefix, prefixContains, prefixesOverlap } from '#common/ip/index.ts';
import { drillsMax, type PlanDetection, thresholdGroupsMax } from '#contracts/sensor-api/detection.ts';
import type { PlanNode, PlanScope, PlanSection, PlanSubject, SectionCount } from '#monitor/sensors/index.ts';
import { listAddressesOfServers, listProtectedAddresses } from '#monitor/views/address-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { compileGroups, type PlanGroup, scopeGroups, toWire } from './compile-plan.ts';
import type { ProtectionDeps } from './index.ts';
import type { Settings } from './settings.ts';
import { listOpenDrills, readSettings } from './store.ts';
import { resolveSite, valuesOf } from './thresholds.ts';

const name = 'detection';

/** Thresholds of one site before a node's bound applies. */
interface SitePlan {
  settings: Settings;
  groups: PlanGroup[];
}

export function createDetectionSection({ db, reader, sites, takesEvidence }: ProtectionDeps): PlanSection {
  const targetsOf = async (of: Queryable, { siteId, node }: PlanScope) => {
    const clusters = (await sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
    return listProtectedAddresses(
      of,
      clusters.map(({ clusterId }) => clusterId),
      node,
    );
  };
  /** A site within the bound sends every sensor the same groups, so that a server may move before the plan does. */
  const groupsFor = async (of: Queryable, plan: SitePlan, siteId: number, node: PlanNode | null) => {
    if (plan.groups.length <= thresholdGroupsMax || node === null) return plan.groups;
    const additional = plan.settings.site.additionalCidrs.map((cidr) => parsePrefix(cidr)!);
    const overlaps = (prefix: string) => {
      const parsed = parsePrefix(prefix)!;
      return additional.some((cidr) => prefixesOverlap(cidr, parsed));
    };
    return scopeGroups(plan.groups, await targetsOf(of, { siteId, node }), overlaps);
  };
  /** Of a site that has any: those of addresses that the node protects. */
  const drillsFor = async ({ settings }: SitePlan, scope: PlanScope): Promise<PlanDetection['drills']> => {
    const open = await listOpenDrills(reader(), scope.siteId);
    if (open.length === 0) return [];
    const targets = new Set(await targetsOf(reader(), scope));
    const additional = settings.site.additionalCidrs.map((cidr) => parsePrefix(cidr)!);
    const isWatched = (address: string) =>
      targets.has(address) || additional.some((cidr) => prefixContains(cidr, parseAddress(address)!));
    return open
      .filter(({ address }) => isWatched(address))
      .slice(0, drillsMax)
      .map(({ id, address, direction, class: of, pps, bps, startsAtMs, seconds }) => ({
        ...{ id, target: address, direction, class: of, pps, bps, seconds },
        started_at: new Date(startsAtMs).toISOString(),
      }));
  };
  return {
    name,
    async read(scope) {
      const { siteId, node } = scope;
      const plan = await readSitePlan(reader(), siteId);
      const groups = await groupsFor(reader(), plan, siteId, node);
      const detection: PlanDetection = {
        additional_cidrs: plan.settings.site.additionalCidrs,
        ...toWire(valuesOf(resolveSite(plan.settings.site.thresholds))),
        groups: groups.slice(0, thresholdGroupsMax),
        takes_evidence: takesEvidence,
        drills: await drillsFor(plan, scope),
      };
      return { detection_version: 1, detection };
    },
    async count(subjects) {
      const counts = new Map<number, SectionCount>();
      for (const siteId of new Set(subjects.map((subject) => subject.siteId))) {
        const plan = await readSitePlan(db(), siteId);
        for (const subject of subjects.filter((one) => one.siteId === siteId))
          counts.set(subject.sensorId, await countFor(plan, subject));
      }
      return counts;
    },
  };

  /** Asks for the targets of a node only where the site's groups do not fit. */
  async function countFor(plan: SitePlan, { siteId, node }: PlanSubject): Promise<SectionCount> {
    const groups = await groupsFor(db(), plan, siteId, node);
    return {
      section: name,
      label: 'groups of thresholds',
      entries: groups.length,
      entriesMax: thresholdGroupsMax,
      advice:
        'Give servers of this node the same thresholds, or remove groups. Left out are the shortest prefixes.',
    };
  }
}

async function readSitePlan(db: Queryable, siteId: number): Promise<SitePlan> {
  const settings = await readSettings(db, siteId);
  const own = settings.servers.flatMap(({ clusterId, serverId }) =>
    clusterId === null || serverId === null ? [] : [{ clusterId, serverId }],
  );
  return { settings, groups: compileGroups(settings, await listAddressesOfServers(db, own)) };
}
