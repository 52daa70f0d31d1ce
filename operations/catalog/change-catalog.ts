/**
 * What operators offer: locations, plans and images.
 *
 * A slug is what customers' programs say, so it never changes; neither do a plan's sizes, because servers of the plan
 * have them. A new price is the price of later orders. What is withdrawn can't be ordered any more and stays readable.
 */
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { imageKinds } from '#contracts/capabilities.ts';
import { type Actor, requireOperator } from '#operations/accounts/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, isUniqueViolation, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

const slugPattern = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/;
const sizeMax = 1_000_000_000;
const portMbitMax = 1_000_000;

/** Throws `catalog.invalid` (details.field), `catalog.slug_taken`. Operators only, as everything here. */
export async function addLocation(
  db: Queryable,
  actor: Actor,
  given: Omit<store.Location, 'id'>,
): Promise<number> {
  requireOperator(actor);
  const location = { slug: parseSlug(given.slug), ...parseLocation(given) };
  return add(db, actor, 'location', location, (trx) => store.insertLocation(trx, location));
}

/** Throws `catalog.not_found`, as all changes below. */
export async function changeLocation(
  db: Queryable,
  actor: Actor,
  id: number,
  given: Pick<store.Location, 'name' | 'country'>,
): Promise<void> {
  requireOperator(actor);
  const after = parseLocation(given);
  await change(db, actor, 'location', id, after, store.listAllLocations, (trx) =>
    store.updateLocation(trx, id, after),
  );
}

export async function addPlan(db: Queryable, actor: Actor, given: Omit<store.Plan, 'id'>): Promise<number> {
  requireOperator(actor);
  const plan = { ...given, slug: parseSlug(given.slug), ...parseOffer(given) };
  for (const field of ['vcpus', 'memoryMb', 'diskGb'] as const)
    if (!Number.isInteger(plan[field]) || plan[field] < 1 || plan[field] > sizeMax)
      throw invalid(field, 'A whole number above zero.');
  return add(db, actor, 'plan', plan, (trx) => store.insertPlan(trx, plan));
}

export async function changePlan(
  db: Queryable,
  actor: Actor,
  id: number,
  given: Offered & { isOffered: boolean },
): Promise<void> {
  requireOperator(actor);
  const after = { ...parseOffer(given), isOffered: given.isOffered };
  await change(db, actor, 'plan', id, after, store.listAllPlans, (trx) => store.updatePlan(trx, id, after));
}

export async function addImage(db: Queryable, actor: Actor, given: Omit<store.Image, 'id'>): Promise<number> {
  requireOperator(actor);
  const family = given.family.trim().toLowerCase();
  if (!slugPattern.test(family)) throw invalid('family', 'One word in lower case, such as debian.');
  const { kind } = given;
  if (!imageKinds.includes(kind)) throw invalid('kind', `One of ${imageKinds.join(', ')}.`);
  const image = { slug: parseSlug(given.slug), name: parseName(given.name), family, kind };
  return add(db, actor, 'image', image, (trx) => store.insertImage(trx, image));
}

export async function changeImage(
  db: Queryable,
  actor: Actor,
  id: number,
  given: { name: string; isOffered: boolean },
): Promise<void> {
  requireOperator(actor);
  const after = { name: parseName(given.name), isOffered: given.isOffered };
  await change(db, actor, 'image', id, after, store.listAllImages, (trx) =>
    store.updateImage(trx, id, after),
  );
}

function parseLocation(given: Pick<store.Location, 'name' | 'country'>) {
  const country = given.country.trim().toUpperCase();
  if (!/^[A-Z]{2}$/.test(country)) throw invalid('country', 'Two letters, such as DE.');
  return { name: parseName(given.name), country };
}

/** What an operator may change of a plan. */
type Offered = Pick<store.Plan, 'name' | 'portMbit' | 'hourlyQuanta' | 'monthlyCapQuanta'>;

function parseOffer(given: Offered): Offered {
  const { portMbit, hourlyQuanta, monthlyCapQuanta } = given;
  if (portMbit !== null && (!Number.isInteger(portMbit) || portMbit < 1 || portMbit > portMbitMax))
    throw invalid('portMbit', 'A whole number of Mbit/s above zero, or nothing.');
  if (!Number.isSafeInteger(hourlyQuanta) || hourlyQuanta < 1)
    throw invalid('hourlyQuanta', 'A price above zero, such as 0.0089.');
  if (!Number.isSafeInteger(monthlyCapQuanta) || monthlyCapQuanta < hourlyQuanta)
    throw invalid('monthlyCapQuanta', 'At least the price of an hour, such as 6.00.');
  return { name: parseName(given.name), portMbit, hourlyQuanta, monthlyCapQuanta };
}

function parseSlug(text: string): string {
  const slug = text.trim();
  // A slug of digits alone would read as an id.
  if (!slugPattern.test(slug) || /^\d+$/.test(slug))
    throw invalid('slug', 'Lower-case letters, digits, dots and dashes, and not digits alone.');
  return slug;
}

function parseName(text: string): string {
  const name = oneLine(text);
  if (name === '' || name.length > 120) throw invalid('name', 'A name has 1 to 120 characters.');
  return name;
}

type Kind = 'location' | 'plan' | 'image';

async function add(
  db: Queryable,
  actor: Actor,
  kind: Kind,
  added: { slug: string },
  insert: (trx: Queryable) => Promise<number>,
): Promise<number> {
  try {
    return await inTransaction(db, async (trx) => {
      const id = await insert(trx);
      const subject = { kind, id, name: added.slug };
      await record(trx, actor, { operation: `${kind}.create`, subject, after: added });
      return id;
    });
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new CodedError('catalog.slug_taken', 'There is one of this name already.', { field: 'slug' });
  }
}

async function change<Row extends { id: number; slug: string }>(
  db: Queryable,
  actor: Actor,
  kind: Kind,
  id: number,
  after: Partial<Row>,
  list: (trx: Queryable) => Promise<Row[]>,
  update: (trx: Queryable) => Promise<boolean>,
): Promise<void> {
  await inTransaction(db, async (trx) => {
    const row = (await list(trx)).find((each) => each.id === id);
    if (!row || !(await update(trx)))
      throw new CodedError('catalog.not_found', 'There is no such location, plan or image.');
    await record(trx, actor, {
      operation: `${kind}.update`,
      subject: { kind, id, name: row.slug },
      ...changedMembers(row, { ...row, ...after }),
    });
  });
}

const invalid = (field: string, message: string) => new CodedError('catalog.invalid', message, { field });
