/** The processes of a world beside its guests: the internet, which talks with them, and the truth, which counts. */
import type { Reporter } from '#common/reporter/index.ts';
import type { GuestDefinition } from './guests/guest.ts';
import type { HostedGuest, InternetProcessInput } from './traffic/internet-process.ts';
import type { TruthProcessInput } from './truth/truth-process.ts';
import type { WorldNames } from './world/name-world.ts';
import { type SupervisedProcess, superviseProcess } from './world/supervise-process.ts';

export interface WorldProcesses {
  start(input: InternetProcessInput): Promise<void>;
  stop(): Promise<void>;
  /** Tells the internet which guests are on. */
  setGuests(running: readonly GuestDefinition[]): void;
}

/** Nothing runs before `start`, which needs the namespaces. */
export function createWorldProcesses(names: WorldNames, reporter: Reporter): WorldProcesses {
  let hosted: HostedGuest[] = [];
  let internet: SupervisedProcess | null = null;
  let truth: SupervisedProcess | null = null;
  return {
    async start(input) {
      truth = superviseTruth(names, reporter);
      internet = superviseInternet(names, reporter, input, () => ({ guests: hosted }));
      await Promise.all([truth.start(), internet.start()]);
    },
    async stop() {
      await Promise.all([internet?.stop(), truth?.stop()]);
    },
    setGuests(running) {
      hosted = running.map((guest) => ({
        name: guest.name,
        addresses: guest.addresses.map((entry) => entry.address),
      }));
      internet?.send({ guests: hosted });
    },
  };
}

function superviseTruth(names: WorldNames, reporter: Reporter): SupervisedProcess {
  const input: TruthProcessInput = { ledger: names.truthLedger };
  return superviseProcess({
    namespace: names.hypervisorNamespace,
    file: 'truth/truth-process.ts',
    input,
    reporter,
  });
}

function superviseInternet(
  names: WorldNames,
  reporter: Reporter,
  input: InternetProcessInput,
  message: () => { guests: HostedGuest[] },
): SupervisedProcess {
  return superviseProcess({
    namespace: names.internetNamespace,
    file: 'traffic/internet-process.ts',
    input,
    reporter,
    ready: (process) => process.send(message()),
  });
}
