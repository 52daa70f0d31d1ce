/**
 * The answers of the NVD's CVE API 2.0 and its yearly feed files, as far as they are read. Fields that are not named here are
 * ignored. One record that does not fit is set aside alone.
 */
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';

const Text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

export const WireMatch = Type.Object({
  vulnerable: Type.Boolean(),
  criteria: Text(1024),
  versionStartIncluding: Type.Optional(Text(128)),
  versionStartExcluding: Type.Optional(Text(128)),
  versionEndIncluding: Type.Optional(Text(128)),
  versionEndExcluding: Type.Optional(Text(128)),
});
export type WireMatch = Static<typeof WireMatch>;

const Operator = Type.Enum(['AND', 'OR']);

const WireNode = Type.Object({
  operator: Operator,
  negate: Type.Optional(Type.Boolean()),
  // A node without criteria says nothing, and a nested one is of the old format 1.0.
  cpeMatch: Type.Array(WireMatch, { minItems: 1, maxItems: 20_000 }),
});

export const WireConfiguration = Type.Object({
  operator: Type.Optional(Operator),
  negate: Type.Optional(Type.Boolean()),
  nodes: Type.Array(WireNode, { minItems: 1, maxItems: 1_000 }),
});
export type WireConfiguration = Static<typeof WireConfiguration>;

export const WireMetric = Type.Object({
  type: Type.Optional(Type.String({ maxLength: 32 })),
  baseSeverity: Type.Optional(Type.String({ maxLength: 16 })),
  cvssData: Type.Object({
    baseScore: Type.Number({ minimum: 0, maximum: 10 }),
    baseSeverity: Type.Optional(Type.String({ maxLength: 16 })),
    vectorString: Type.Optional(Type.String()),
  }),
});
export type WireMetric = Static<typeof WireMetric>;

const Metrics = Type.Optional(Type.Array(WireMetric, { maxItems: 100 }));

export const WireRecord = Type.Object({
  cve: Type.Object({
    id: Type.String({ pattern: '^CVE-[0-9]{4}-[0-9]{4,19}$' }),
    published: Text(40),
    lastModified: Text(40),
    vulnStatus: Type.Optional(Text(40)),
    cveTags: Type.Optional(
      Type.Array(Type.Object({ tags: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 100 }) }), {
        maxItems: 100,
      }),
    ),
    cisaExploitAdd: Type.Optional(Text(40)),
    descriptions: Type.Array(Type.Object({ lang: Type.String(), value: Type.String() }), { maxItems: 100 }),
    metrics: Type.Optional(
      Type.Object({
        cvssMetricV40: Metrics,
        cvssMetricV31: Metrics,
        cvssMetricV30: Metrics,
        cvssMetricV2: Metrics,
      }),
    ),
    configurations: Type.Optional(Type.Array(WireConfiguration, { maxItems: 1_000 })),
  }),
});
export type WireRecord = Static<typeof WireRecord>;

export const checkRecord = Compile(WireRecord);
