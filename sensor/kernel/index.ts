export type { KernelMinute } from './counter.ts';
