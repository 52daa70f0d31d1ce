// Slow: real downloads and a real crowd for some seconds each.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as peaks from './ordinary-peaks.prove.ts';
import { ordinaryInTests } from './ordinary-programs.ts';

const skip = process.getuid?.() === 0 ? false : 'network namespaces take root on Linux';

test('NET-1.1: a real download and a real crowd by TLS over every threshold are no attack', { skip }, () =>
  requireProof(2, (report) =>
    peaks.prove({ n: ordinaryInTests.length, seed: 0, report, traffic: ordinaryInTests, isEven: true }),
  ),
);
