/** Mutations of capture files of attacks. */
import type { Mutation } from './mutation.ts';

export const mutationsOfEvidence: readonly Mutation[] = [
  {
    rule: 'NET-8.R4',
    what: 'capture files are kept eight days',
    file: 'monitor/evidence/settings.ts',
    find: "    'PCAP_RETENTION_DAYS',\n    7,",
    replace: "    'PCAP_RETENTION_DAYS',\n    8,",
  },
  {
    rule: 'NET-8.R4',
    what: 'the row of a capture file is deleted and its object stays',
    file: 'monitor/evidence/remove-expired.ts',
    find: '      await objects.remove(place.objectKey);\n',
    replace: '',
  },
  {
    rule: 'NET-8.R4',
    what: 'a store that is away does not keep the row',
    file: 'monitor/evidence/remove-expired.ts',
    find: 'await objects.remove(place.objectKey);',
    replace: 'await objects.remove(place.objectKey).catch(() => {});',
  },
  {
    rule: 'NET-8.R4',
    what: 'incidents are deleted while their capture files remain',
    file: 'monitor/kept.ts',
    find: '{ ...kept, beforeRemoval: evidence.removeOfIncidents }',
    replace: 'kept',
  },
  {
    rule: 'NET-8.R4',
    what: 'an expired capture file is shown until it is removed',
    file: 'monitor/evidence/store.ts',
    find: 'where f.site_id = ${siteId} and f.stored_at > svc_now() - make_interval(days => ${days}::int)',
    replace: 'where f.site_id = ${siteId} and f.stored_at is not null',
  },
];
