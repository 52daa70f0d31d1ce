/** Texts in which a refused term is a name of another system. Each is ignored where it appears in the file. */
export const namesOfOthers: Readonly<Record<string, readonly string[]>> = {
  'operations/hypervisors/testing/libvirt-world.ts': ['s/^nobody:'],
  'service-kit/postgres/embedded.test.ts': ['/^nobody:'],
  'tools/package/package.test.ts': ['asNobody', '--reuid nobody'],
};
