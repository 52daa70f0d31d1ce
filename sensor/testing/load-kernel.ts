/** Loads both programs into the kernel. usage: node load-kernel.ts */
import { loadFilterPrograms } from '#sensor/kernel/filter.ts';
import { loadCounter } from '#sensor/kernel/load-counter.ts';

for (const isEthernet of [true, false]) loadCounter(null, isEthernet).unload();
loadFilterPrograms(null).unload();
