import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from './alert.routes.ts';

test('an alert leads to the page of its cause', () => {
  const incident = '5e0f6b51-3f8e-4b0e-9c3c-0d2f4c1a7b11';
  const causes = {
    'sensor:4': '/sites/2/sensors/4',
    'capture:4:eth0': '/sites/2/sensors/4',
    'probe:7': '/sites/2/availability/7',
    'server:7:12': '/sites/2/vulnerabilities/servers/7/12',
    'hand-off:3': '/sites/2/protection/hand-off',
    [`incident:${incident}`]: `/sites/2/incidents/${incident}`,
  };
  for (const [subjectKey, path] of Object.entries(causes))
    assert.equal(placeOf({ siteId: 2, subjectKey }), path);
  const ofAllSites = {
    'vulnerability-copy': '/system/vulnerability-database',
    'disk:host-1:/var/lib/svc-monitor': '/system',
    'loop:maintain_metrics': '/system',
    inbox: '/system',
  };
  for (const [subjectKey, path] of Object.entries(ofAllSites))
    assert.equal(placeOf({ siteId: null, subjectKey }), path);
});
