import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { ObjectStore } from './object-store.ts';

/** The same store, which says in the log when it begins to fail and when it works again. */
export function watchObjects(objects: ObjectStore, reporter: Reporter): ObjectStore {
  let isFailing = false;
  const watched =
    <Args extends unknown[], T>(call: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      try {
        const result = await call(...args);
        if (isFailing) reporter.info('the store of capture files works again', { store: objects.place });
        isFailing = false;
        return result;
      } catch (error) {
        if (!isFailing)
          reporter.error('the store of capture files fails; sensors keep their files and send them again', {
            why: describeError(error),
          });
        isFailing = true;
        throw error;
      }
    };
  return {
    place: objects.place,
    put: watched(objects.put),
    get: watched(objects.get),
    remove: watched(objects.remove),
    check: watched(objects.check),
  };
}
