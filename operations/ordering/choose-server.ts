import type { Location } from '#operations/catalog/index.ts';
import { listClusters } from '#operations/clusters/index.ts';
import { type FieldFault, invalidServer } from '#operations/servers/index.ts';
import type { OrderingDeps } from './deps.ts';
import type { Choice, CreateServerInput } from './order-request.ts';

/** What the input names in the catalog. Throws `servers.invalid` with these faults and the ones that were found before. */
export async function chooseServer(
  deps: OrderingDeps,
  input: CreateServerInput,
  faultsBefore: readonly FieldFault[] = [],
): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
  ]);
  const faults = [...faultsBefore];
  const plan = pick(plans, input.plan, 'plan', faults);
  const image = pick(images, input.image, 'image', faults);
  const location = pickLocation(locations, input.location, faults);
  if (faults.length > 0 || !plan || !image || !location) {
    throw invalidServer(faults);
  }
  return { plan, image, locationId: location.id, clusters: await listClusters(deps.db(), location.id) };
}

function pickLocation(
  offered: readonly Location[],
  wanted: string | number | undefined,
  faults: FieldFault[],
): Location | undefined {
  if (wanted !== undefined) return pick(offered, wanted, 'location', faults);
  if (offered.length === 1) return offered[0];
  const allowed = offered.map((one) => one.slug);
  faults.push({ path: 'location', code: 'required', message: 'Name the location.', allowed });
  return undefined;
}

function pick<T extends { id: number; slug: string }>(
  offered: readonly T[],
  wanted: string | number,
  path: string,
  faults: FieldFault[],
): T | undefined {
  const found = offered.find((one) => one.slug === wanted || String(one.id) === String(wanted));
  if (!found) {
    const allowed = offered.map((one) => one.slug);
    faults.push({ path, code: 'unknown_value', message: `There is no such ${path}.`, allowed });
  }
  return found;
}
