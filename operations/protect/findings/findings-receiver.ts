import {
  type ProjectionAcknowledgements,
  type VulnerabilitiesRequest,
  vulnerabilitiesContract,
} from '#contracts/admin-api/vulnerabilities.ts';
import { defineReceiver, type FeedReceiver } from '#operations/feeds/index.ts';
import type { ProtectFindings } from './protect-findings.ts';

/** The receiver of potential vulnerabilities (NET-4.d). */
export function createFindingsReceiver(findings: Pick<ProtectFindings, 'receive'>): FeedReceiver {
  return defineReceiver<VulnerabilitiesRequest, ProjectionAcknowledgements>({
    contract: vulnerabilitiesContract,
    hint: 'Deliver potential vulnerabilities of the services that scans found.',
    readsTargets: true,
    invalidCode: 'protect_findings.invalid',
    receive: (sender, request) => findings.receive(sender, request),
  });
}
