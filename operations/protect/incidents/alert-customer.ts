/**
 * Tells a customer of the start and the end of an attack, once each however often it is delivered.
 *
 * What is told is queued in the transaction that stores the incident: mails in `attack_mails`, webhooks as events. An
 * incident that comes back within five minutes of its recovery continues its episode and is not told again. The end goes
 * only where the start went. Information (severity `info`) is never told, and a drill only by mail where its operator asked for it.
 */

import { oneLine } from '#common/text/index.ts';
import type { Incident, IncidentAction } from '#contracts/admin-api/incidents.ts';
import { describeClass } from '#contracts/attack-classes.ts';
import { emit } from '#operations/events/index.ts';
import { type DueAttackMail, findDueAttackMail, hasSubscriber } from '#operations/views/alert-mail-store.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatBitRate, formatCount, formatDuration, formatTime } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';
import { channelsSince, findSettings, openChannels } from '../settings/index.ts';
import * as store from './store.ts';

export interface AlertDeps {
  /** Whether mails can be sent at all. */
  canMail: boolean;
}

/** The server that the incident is bound to. */
interface Subject {
  serverId: number;
  tenantId: number;
}

/** A reopening within this time of the recovery is the same attack. */
const flapMs = 5 * 60_000;
/** What was observed longer ago is history that is delivered late; it is on the page. */
const lateMs = 24 * 3_600_000;

/** Called after the incident was stored, with when it had recovered before this delivery, and what was done by then. */
export async function alertCustomer(
  deps: AlertDeps,
  tx: Queryable,
  { of, incident, recoveredBefore, actionsBefore, nowMs }: AlertInput,
): Promise<void> {
  if (incident.severity !== 'attack' || (incident.drill && !incident.drill_is_mailed)) return;
  const lastMs = Date.parse(incident.last_observed_at);
  if (lastMs < nowMs - lateMs) return;
  let told = await store.readTold(tx, incident.id);
  const isOpen = incident.state !== 'recovered';
  if (isOpen && told.isEndTold && recoveredBefore !== null && lastMs - recoveredBefore.getTime() > flapMs)
    told = { episode: told.episode + 1, isStartTold: false, isEndTold: false, told: [] };
  if (!told.isStartTold) told = await tellStart(deps, tx, of, incident, told.episode);
  if (told.told.includes('webhook')) await tellFilters(tx, of, incident, actionsBefore);
  if (!isOpen && !told.isEndTold) await tellEnd(tx, of, incident, told);
}

/** Tells of filters that began or ended since the delivery before, in that order. */
async function tellFilters(
  tx: Queryable,
  of: Subject,
  incident: Incident,
  before: readonly IncidentAction[],
): Promise<void> {
  const filters = incident.actions.filter(({ kind }) => kind === 'dropped');
  const changed = filters.flatMap(({ at, ended_at }) => {
    const known = before.find((one) => one.kind === 'dropped' && one.at === at);
    const hasEnded = ended_at !== null && (known === undefined || known.ended_at === null);
    return [
      ...(known === undefined ? ['server.filter_started' as const] : []),
      ...(hasEnded ? ['server.filter_ended' as const] : []),
    ];
  });
  if (changed.length === 0 || !openChannels(await findSettings(tx, of)).includes('webhook')) return;
  for (const type of changed) await emit(tx, { type, serverId: of.serverId, incidentId: incident.id });
}

interface AlertInput {
  of: Subject;
  incident: Incident;
  recoveredBefore: Date | null;
  /** As of the delivery before. */
  actionsBefore: readonly IncidentAction[];
  nowMs: number;
}

async function tellStart(
  deps: AlertDeps,
  tx: Queryable,
  of: Subject,
  incident: Incident,
  episode: number,
): Promise<store.Told> {
  const chosen = channelsSince(await findSettings(tx, of), new Date(incident.started_at));
  // Programs of the customer can not tell a drill from an attack.
  const channels = chosen.filter((channel) => channel === 'mail' || !incident.drill);
  const isMailed =
    channels.includes('mail') &&
    deps.canMail &&
    (await store.queueStartMails(tx, incident.id, episode, of.serverId)) > 0;
  const hooks = channels.includes('webhook');
  if (hooks)
    await emit(tx, { type: 'server.attack_started', serverId: of.serverId, incidentId: incident.id });
  const isHooked = hooks && (await hasSubscriber(tx, of.serverId, 'server.attack_started'));
  const told = channels.filter((channel) => channel === 'webhook' || isMailed);
  const reached = told.filter((channel) => channel === 'mail' || isHooked);
  await store.noteStart(tx, incident.id, episode, told, reached);
  return { episode, isStartTold: true, isEndTold: false, told };
}

async function tellEnd(tx: Queryable, of: Subject, incident: Incident, { episode, told }: store.Told) {
  const open = openChannels(await findSettings(tx, of)).filter((channel) => told.includes(channel));
  if (open.includes('mail')) await store.queueEndMails(tx, incident.id, episode);
  if (open.includes('webhook'))
    await emit(tx, { type: 'server.attack_ended', serverId: of.serverId, incidentId: incident.id });
  await store.noteEnd(tx, incident.id);
}

/** The mail about a start goes before the one about the end. */
export const attackMails: AlertMailKind<DueAttackMail> = {
  name: 'attack mails',
  about: 'attacks',
  table: 'attack_mails',
  order: ['incident_id', 'person_id'],
  workers: 2,
  find: findDueAttackMail,
  write: attackMail,
};

function attackMail(due: DueAttackMail, linkTo: (path: string) => string): Mail {
  const server = oneLine(due.serverName);
  return writeAlertMail(due, {
    subject: `${due.isDrill ? 'Drill: ' : ''}${subjectOf(due, server)}`,
    paragraphs: [
      ...(due.isDrill ? ['This is a drill that we run. There is no attack.'] : []),
      ...(due.moment === 'started' ? startOf(due, server) : endOf(due, server)),
      linkTo(`/client/servers/${due.serverId}/protect/incidents/${due.incidentId}`),
    ],
  });
}

function subjectOf({ moment, direction, class: name }: DueAttackMail, server: string): string {
  const isInbound = direction === 'inbound';
  if (moment === 'ended') return `Attack ${isInbound ? 'on' : 'from'} ${server} has ended`;
  return isInbound
    ? `${server} is under attack: ${describeClass(name)}`
    : `${server} sends an attack: ${describeClass(name)}`;
}

function startOf(due: DueAttackMail, server: string): string[] {
  const { direction, address, class: name, startedAt } = due;
  const began = `${formatTime(startedAt.getTime(), 'seconds')}`;
  const what =
    direction === 'inbound'
      ? `${server} (${address}) has been under attack since ${began}: ${withArticle(name)}.`
      : `${server} (${address}) has been sending an attack since ${began}: ${withArticle(name)}. Check whether the server is compromised.`;
  return [`${what} ${peakOf(due)}`, 'Follow it on this page:'];
}

function endOf(due: DueAttackMail, server: string): string[] {
  const { direction, address, class: name, startedAt, recoveredAt } = due;
  const began = formatTime(startedAt.getTime(), 'seconds');
  const lasted =
    recoveredAt === null
      ? ''
      : ` It ended at ${formatTime(recoveredAt.getTime(), 'seconds')}, after ${formatDuration((recoveredAt.getTime() - startedAt.getTime()) / 1000)}.`;
  const where = direction === 'inbound' ? 'on' : 'from';
  return [
    `The attack ${where} ${server} (${address}) has ended. It began at ${began}: ${withArticle(name)}.${lasted} ${peakOf(due)}`,
    'The details are on this page:',
  ];
}

const peakOf = ({ peakPps, peakBps }: DueAttackMail) =>
  `Peak: ${formatCount(Math.round(peakPps))} packets/s, ${formatBitRate(peakBps)}.`;

/** `a SYN flood`, `an ICMP flood`. */
function withArticle(name: string): string {
  if (name === 'high_volume') return describeClass(name);
  const words = describeClass(name);
  // By sound: an ICMP flood, an RST flood, a UDP flood, a SYN flood.
  return `${/^([aeio]|rst)/i.test(words) ? 'an' : 'a'} ${words}`;
}
