import {
  type IncidentOutcomes,
  type IncidentsRequest,
  incidentsContract,
} from '#contracts/admin-api/incidents.ts';
import { defineReceiver, type FeedReceiver } from '#operations/feeds/index.ts';
import type { ProtectIncidents } from './protect-incidents.ts';

/** The receiver of the incident feed (NET-4.g). */
export function createIncidentsReceiver(incidents: Pick<ProtectIncidents, 'receive'>): FeedReceiver {
  return defineReceiver<IncidentsRequest, IncidentOutcomes>({
    contract: incidentsContract,
    hint: 'Deliver attacks on servers and their state.',
    readsTargets: true,
    invalidCode: 'protect_incidents.invalid',
    receive: (sender, request) => incidents.receive(sender, request),
  });
}
