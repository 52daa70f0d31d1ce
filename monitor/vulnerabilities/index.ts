/**
 * Potential vulnerabilities: what a public database says of the versions that scans found (NET-2.6).
 *
 * Guarantees: a finding is never more than potential. A service is assessed only where its product and its complete version are
 * known, and never as the original where a distribution made a package of it. Configurations are evaluated whole, in three
 * values: what scans can't see makes a result incomplete and never certain.
 */
export {
  type Assessment,
  assessServices,
  type FindAdvisories,
  type Finding,
} from './assess-service.ts';
export type { ServiceEvidence, UnableReason } from './identify-service.ts';
