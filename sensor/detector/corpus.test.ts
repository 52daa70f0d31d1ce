import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { capturePath, expectedFiles, hasCorpus } from '#sensor/testing/corpus.ts';
import { Detector, defaultThresholds } from './index.ts';

test('NET-1.1: no capture of the corpus has an incident', { skip: !hasCorpus() }, () => {
  const files = expectedFiles();
  assert.ok(files.length >= 100);
  for (const { file: name, packets } of files) {
    const capture = { name, linkBps: () => 1e9 };
    const detector = new Detector({ scope: null, thresholds: defaultThresholds, capture });
    const file = openCaptureFile(capturePath(name));
    let count = 0;
    while (file.next()) {
      const { bytes, offset, capturedLength, wireLength, seconds, nanoseconds, linkType } = file;
      detector.observe(bytes, offset, capturedLength, wireLength, seconds, nanoseconds, linkType, 1);
      count += 1;
    }
    file.close();
    assert.equal(count, packets, name);
    assert.deepEqual(detector.finish().incidents, [], name);
  }
});
