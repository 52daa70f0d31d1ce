/** Prints the network tables of this namespace's kernel, from its sockets and from its files, as JSON. */
import { assembleInventory } from '#sensor/interfaces/index.ts';
import { readFiles } from '#sensor/interfaces/read-files.ts';
import { readNetlink } from '#sensor/interfaces/read-netlink.ts';

const [sockets, files] = [readNetlink(), readFiles()].map((tables) => assembleInventory(tables, 0));
process.stdout.write(JSON.stringify({ sockets, files }));
