/** Every body of the customer API, by the name of its schema. */
export * from './address-schemas.ts';
export * from './bandwidth-schemas.ts';
export * from './catalog-schemas.ts';
export * from './finding-schemas.ts';
export * from './firewall-schemas.ts';
export * from './incident-schemas.ts';
export * from './key-schemas.ts';
export * from './ledger-schemas.ts';
export * from './network-schemas.ts';
export * from './port-schemas.ts';
export * from './schema-kit.ts';
export * from './server-schemas.ts';
export * from './ssh-key-schemas.ts';
export * from './tenant-schemas.ts';
export * from './traffic-schemas.ts';
export * from './usage-schemas.ts';
export * from './webhook-schemas.ts';
