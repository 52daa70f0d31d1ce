/**
 * Capture files that wait for the monitor, in the folder `evidence` of the state directory.
 *
 * At most 64 files and 32 MiB: the oldest make room, counted and logged. A file is whole or absent after a crash. Minutes and
 * incidents are worth more: without 64 MiB of free disk no file is kept.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { open, readFile, rename, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

export const filesMax = 64;
export const filesBytesMax = 32 * 1024 * 1024;
const freeBytesMin = 64 * 1024 * 1024;
const suffix = '.pcap.zst';
const named = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.pcap\.zst$/;

export interface EvidenceFilesDeps {
  stateDirectory: string;
  reporter: Reporter;
  /** Free bytes of the disk of a folder. */
  freeBytes?: (folder: string) => Promise<number>;
}

export type EvidenceFiles = ReturnType<typeof createEvidenceFiles>;

export function createEvidenceFiles(deps: EvidenceFilesDeps) {
  const { stateDirectory, reporter, freeBytes = freeBytesOf } = deps;
  const folder = join(stateDirectory, 'evidence');
  const pathOf = (id: string) => join(folder, `${id}${suffix}`);
  /** Bytes by id, the oldest first. */
  const held = new Map<string, number>();
  let dropped = 0;

  async function makeRoom(bytes: number): Promise<void> {
    const isTight = () => held.size >= filesMax || files.bytes() + bytes > filesBytesMax;
    while (held.size > 0 && isTight()) {
      const [oldest] = held.keys();
      await files.remove(oldest!);
      dropped += 1;
      reporter.warn('a capture file of an attack was dropped: too many wait for the monitor', {
        incident: oldest,
        dropped,
      });
    }
  }

  const files = {
    /** Looks at what the run before left. */
    open() {
      let names: string[];
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        names = readdirSync(folder);
      } catch (error) {
        reporter.error('the folder of capture files can not be read; none are kept', {
          why: describeError(error),
        });
        return;
      }
      // A file that was being written when the sensor was killed.
      for (const name of names) if (!named.test(name)) rmSync(join(folder, name), { force: true });
      const found = names
        .filter((name) => named.test(name))
        .map((name) => ({ name, ...sizeOf(join(folder, name)) }));
      for (const { name, size } of found.sort((a, b) => a.mtimeMs - b.mtimeMs))
        held.set(name.slice(0, -suffix.length), size);
    },
    has: (id: string) => held.has(id),
    /** The oldest first. */
    ids: (): string[] => [...held.keys()],
    bytes: () => [...held.values()].reduce((sum, one) => sum + one, 0),
    /** Files that made room for others since the start. */
    dropped: () => dropped,
    /** Keeps a file; throws when the disk does not take it. */
    async keep(id: string, bytes: Uint8Array) {
      if ((await freeBytes(folder)) < freeBytesMin + bytes.length)
        throw new Error(`less than ${freeBytesMin / 1024 / 1024} MiB of the disk are free`);
      await makeRoom(bytes.length);
      const beside = `${pathOf(id)}.new`;
      try {
        const file = await open(beside, 'w', 0o600);
        try {
          await file.writeFile(bytes);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(beside, pathOf(id));
      } catch (error) {
        await rm(beside, { force: true }).catch(() => {});
        throw error;
      }
      held.set(id, bytes.length);
    },
    read: (id: string): Promise<Uint8Array> => readFile(pathOf(id)),
    async remove(id: string) {
      held.delete(id);
      await rm(pathOf(id), { force: true });
    },
  };
  return files;
}

function sizeOf(path: string): { size: number; mtimeMs: number } {
  const { size, mtimeMs } = statSync(path);
  return { size, mtimeMs };
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
