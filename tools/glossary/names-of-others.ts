/** Texts in which a refused term is a name of another system. Each is ignored where it appears in the file. */
export const namesOfOthers: Readonly<Record<string, readonly string[]>> = {
  'proofs/monitor/notices/documented-vectors.ts': ["It's a Secret to Everybody"],
  'operations/hypervisors/testing/libvirt-world.ts': ['s/^nobody:'],
  'service-kit/postgres/embedded.test.ts': ['/^nobody:'],
  'tools/package/package.test.ts': ['asNobody', '--reuid nobody'],
};
