/** The open ports of one scan. What was found once stays, also when the scan fails (NET-2.7.5). */
import { type ScanService, type ScanTransport, scanServicesMax } from '#contracts/port-scan/index.ts';
import type { ReportedPort } from './nmap-xml.ts';
import type { OpenPort } from './scan.ts';

/** Open ports by transport and number, at most as many as a result takes. */
export class OpenPorts {
  readonly #found = new Map<string, ScanService>();
  readonly #scanId: string;
  #isFull = false;

  constructor(scanId: string) {
    this.#scanId = scanId;
  }

  /** More were found than a result takes. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** A port that answered, of which nothing else is known yet. */
  add({ transport, port }: OpenPort, at: string): void {
    const key = `${transport}/${port}`;
    if (this.#found.has(key)) return;
    if (this.#found.size >= scanServicesMax) {
      this.#isFull = true;
      return;
    }
    this.#found.set(key, {
      ...{ transport, port, first_observed_at: at, observed_at: at, scan_id: this.#scanId },
      ...{ service: null, product: null, version: null, extra_info: null },
      ...{ method: 'table', confidence: 0, tunnel: null, cpe: [] },
    });
  }

  /** What a run's report says of open ports. A guess from the port's number never replaces an answer. */
  describe(reported: readonly ReportedPort[], at: string): void {
    for (const one of reported) {
      this.add(one, at);
      const key = `${one.transport}/${one.port}`;
      const known = this.#found.get(key);
      if (known === undefined || (known.method === 'probed' && one.method === 'table')) continue;
      const { service, product, version, extraInfo, method, confidence, tunnel, cpe } = one;
      this.#found.set(key, {
        ...known,
        ...{ observed_at: at, service, product, version, extra_info: extraInfo },
        ...{ method, confidence, tunnel, cpe },
      });
    }
  }

  ports(transport: ScanTransport): number[] {
    return this.services()
      .filter((one) => one.transport === transport)
      .map((one) => one.port);
  }

  list(): OpenPort[] {
    return this.services().map(({ transport, port }) => ({ transport, port }));
  }

  /** By transport and port. */
  services(): ScanService[] {
    return [...this.#found.values()].sort(
      (a, b) => (a.transport < b.transport ? -1 : a.transport > b.transport ? 1 : 0) || a.port - b.port,
    );
  }
}
