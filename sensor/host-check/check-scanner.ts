import { findNmap, findScanLimits } from '#sensor/scanner/index.ts';
import { type Finding, finding } from './finding.ts';

/** Whether ports of this host's servers can be scanned, and within which limits. Makes and removes a control group on trial. */
export function checkScanner(): Finding[] {
  const nmap = findNmap();
  const program = nmap
    ? finding('ok', 'nmap', `Found as ${nmap}; it can scan this host's servers.`)
    : finding(
        'warn',
        'nmap',
        "Not found, so this host's servers can not be scanned for open ports: apt-get install nmap.",
      );
  return [program, checkLimits()];
}

function checkLimits(): Finding {
  const limits = findScanLimits();
  if (typeof limits === 'string') return finding('warn', 'scan limits', `No port is scanned here: ${limits}`);
  const { version, missing } = limits;
  const lacks = missing.length === 0 ? '' : `, without ${missing.join(', ')}`;
  return finding(
    'ok',
    'scan limits',
    `A scan gets one CPU, 512 MiB and 64 tasks by control groups of version ${version}${lacks}.`,
  );
}
