/**
 * Calls of libbpf 1 (Debian's `libbpf1`) through koffi, with errors in words.
 *
 * Loading and attaching need CAP_BPF and CAP_NET_ADMIN; opening pinned maps and reading them needs neither from Linux 6.0 on.
 */
import koffi, { type LibraryHandle } from 'koffi';
import { CodedError } from '#common/errors/index.ts';

const libraryName = 'libbpf.so.1';
/** Of the verifier, which says why it refuses a program at the end. */
const logBytes = 1 << 20;
const logLines = 12;

const errnoNames = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

type Library = ReturnType<typeof loadLibrary>;
let library: Library | null = null;

/** Throws `kernel.no_library` where the library is missing. */
export function libbpf(): Library {
  library ??= loadLibrary();
  return library;
}

function loadLibrary() {
  let loaded: LibraryHandle;
  try {
    loaded = koffi.load(libraryName);
  } catch {
    throw new CodedError(
      'kernel.no_library',
      `${libraryName} can not be loaded: apt-get install libbpf1, to count in the kernel.`,
    );
  }
  const openOptions = koffi.struct({
    sz: 'size_t',
    object_name: 'const char *',
    relaxed_maps: 'bool',
    pin_root_path: 'const char *',
    unused: 'uint32_t',
    kconfig: 'const char *',
    btf_custom_path: 'const char *',
    kernel_log_buf: 'void *',
    kernel_log_size: 'size_t',
    kernel_log_level: 'uint32_t',
  });
  const hook = koffi.struct({ sz: 'size_t', ifindex: 'int', attach_point: 'int', parent: 'uint32_t' });
  const filter = koffi.struct({
    sz: 'size_t',
    prog_fd: 'int',
    flags: 'uint32_t',
    prog_id: 'uint32_t',
    handle: 'uint32_t',
    priority: 'uint32_t',
  });
  const hookPointer = koffi.pointer(hook);
  const filterPointer = koffi.inout(koffi.pointer(filter));
  const say = loaded.func('void *libbpf_set_print(void *print)');
  // Its own messages would go to standard error.
  say(null);
  return {
    sizes: { openOptions: koffi.sizeof(openOptions), hook: koffi.sizeof(hook), filter: koffi.sizeof(filter) },
    open: loaded.func('bpf_object__open_mem', 'void *', [
      'const void *',
      'size_t',
      koffi.pointer(openOptions),
    ]),
    load: loaded.func('int bpf_object__load(void *object)'),
    close: loaded.func('void bpf_object__close(void *object)'),
    findMap: loaded.func('void *bpf_object__find_map_by_name(void *object, const char *name)'),
    findProgram: loaded.func('void *bpf_object__find_program_by_name(void *object, const char *name)'),
    programFd: loaded.func('int bpf_program__fd(void *program)'),
    mapFd: loaded.func('int bpf_map__fd(void *map)'),
    setPinPath: loaded.func('int bpf_map__set_pin_path(void *map, const char *path)'),
    setMaxEntries: loaded.func('int bpf_map__set_max_entries(void *map, uint32_t entries)'),
    cpus: loaded.func('int libbpf_num_possible_cpus()'),
    createHook: loaded.func('bpf_tc_hook_create', 'int', [hookPointer]),
    destroyHook: loaded.func('bpf_tc_hook_destroy', 'int', [hookPointer]),
    attach: loaded.func('bpf_tc_attach', 'int', [hookPointer, filterPointer]),
    detach: loaded.func('bpf_tc_detach', 'int', [hookPointer, filterPointer]),
    query: loaded.func('bpf_tc_query', 'int', [hookPointer, filterPointer]),
    openPinned: loaded.func('int bpf_obj_get(const char *path)'),
    lookup: loaded.func('int bpf_map_lookup_elem(int fd, const void *key, void *value)'),
    update: loaded.func(
      'int bpf_map_update_elem(int fd, const void *key, const void *value, uint64_t flags)',
    ),
    take: loaded.func('int bpf_map_lookup_and_delete_elem(int fd, const void *key, void *value)'),
    remove: loaded.func('int bpf_map_delete_elem(int fd, const void *key)'),
    nextKey: loaded.func('int bpf_map_get_next_key(int fd, const void *key, void *next)'),
    mapInfo: loaded.func('int bpf_obj_get_info_by_fd(int fd, void *info, void *length)'),
    linkCreate: loaded.func('int bpf_link_create(int program, int target, int type, const void *options)'),
    linkUpdate: loaded.func('int bpf_link_update(int link, int program, const void *options)'),
    pin: loaded.func('int bpf_obj_pin(int fd, const char *path)'),
    testRun: loaded.func('int bpf_prog_test_run_opts(int fd, void *options)'),
  };
}

/** An object in memory, with the log of the verifier for an error. `what`: its programs in words. */
export function openObject(bytes: Uint8Array, what = 'the counting program') {
  const bpf = libbpf();
  const log = koffi.alloc('uint8_t', logBytes);
  const handle: unknown = bpf.open(bytes, bytes.length, {
    sz: bpf.sizes.openOptions,
    object_name: 'svc_sensor',
    relaxed_maps: false,
    pin_root_path: null,
    unused: 0,
    kconfig: null,
    btf_custom_path: null,
    kernel_log_buf: log,
    kernel_log_size: logBytes,
    kernel_log_level: 0,
  });
  if (handle === null) {
    const error = kernelError(`open ${what}`, -koffi.errno());
    koffi.free(log);
    throw error;
  }
  return {
    handle,
    load(): void {
      const result: number = bpf.load(handle);
      if (result < 0) throw kernelError(`load ${what}`, result, lastLines(log));
    },
    close(): void {
      bpf.close(handle);
      koffi.free(log);
    },
  };
}

function lastLines(log: unknown): string {
  const bytes = Buffer.from(koffi.view(log, logBytes));
  const text = bytes.toString('latin1', 0, bytes.indexOf(0));
  return text.trimEnd().split('\n').slice(-logLines).join('\n');
}

const closeFd: (fd: number) => number = koffi.load(null).func('int close(int fd)');

export function closeAll(fds: readonly number[]): void {
  for (const fd of fds) closeFd(fd);
}

/** Throws what a negative result of a call means. */
export function must(result: number, step: string): number {
  if (result < 0) throw kernelError(step, result);
  return result;
}

/** What a negative result means, and what helps. `log`: what the verifier said. */
export function kernelError(step: string, result: number, log = ''): CodedError {
  const name = errnoNames.get(-result) ?? `errno ${-result}`;
  if (log !== '')
    return new CodedError('kernel.refused', `The kernel refuses to ${step} (${name}). Its verifier:\n${log}`);
  if (name === 'EPERM' || name === 'EACCES')
    return new CodedError(
      'kernel.not_permitted',
      `Not permitted to ${step}: counting in the kernel is set up with CAP_BPF and CAP_NET_ADMIN, and read without them ` +
        'from Linux 6.0 on.',
    );
  return new CodedError('kernel.failed', `Could not ${step}: ${name}.`, { step, errno: -result });
}
