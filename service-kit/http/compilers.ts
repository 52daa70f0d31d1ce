/**
 * How schemas become functions: each when the first request needs it.
 *
 * Compiling all of a program's schemas takes longer than the rest of its start, and most starts, those of commands and of
 * tests above all, serve few of its routes. What is served stays the same: what no schema names can't leave.
 */
import { createRequire } from 'node:module';
import { TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import type { FastifyServerOptions } from 'fastify';

type SchemaController = NonNullable<FastifyServerOptions['schemaController']>;
type Compilers = NonNullable<SchemaController['compilersFactory']>;
type BuildSerializer = NonNullable<Compilers['buildSerializer']>;
type CompileInput = typeof TypeBoxValidatorCompiler;

/** Fastify's own compiler of answers, as fastify itself finds it. */
const loadUsual = () => {
  const find = createRequire(import.meta.resolve('fastify'));
  return find('@fastify/fast-json-stringify-compiler')() as BuildSerializer;
};

type CheckInput = ReturnType<CompileInput>;
type Serialize = ReturnType<ReturnType<BuildSerializer>>;

/**
 * What a schema became, for every server of this process: a schema is a constant, and tests make hundreds of servers.
 * Bodies are told from other inputs, because only the others are converted.
 */
const checksOfBodies = new WeakMap<object, CheckInput>();
const checksOfTexts = new WeakMap<object, CheckInput>();
const serializers = new WeakMap<object, Serialize>();

function keepIn<Made>(made: WeakMap<object, Made>, schema: unknown, make: () => Made): Made {
  if (schema === null || typeof schema !== 'object') return make();
  const known = made.get(schema) ?? make();
  made.set(schema, known);
  return known;
}

/** Parameters that are whole numbers: the compiler would cut `1.5` to 1. */
function integersOf(schema: unknown): string[] {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  return Object.entries(properties).flatMap(([name, { type }]) => (type === 'integer' ? [name] : []));
}

const isText = (value: unknown) => typeof value === 'string';

/** As the compiler words a fault. */
const notWhole = (name: string) => ({
  ...{
    keyword: 'type',
    schemaPath: `#/properties/${name}`,
    instancePath: `/${name}`,
    params: { type: 'integer' },
  },
  message: 'must be integer',
});

const compileInput: CompileInput = (route) => {
  let check: CheckInput | null = null;
  const made = route.httpPart === 'body' ? checksOfBodies : checksOfTexts;
  const integers = route.httpPart === 'body' ? [] : integersOf(route.schema);
  return (value) => {
    check ??= keepIn(made, route.schema, () => TypeBoxValidatorCompiler(route));
    const wrong = integers.find((name) => isText(value?.[name]) && !/^[+-]?\d+$/.test(value[name]));
    return wrong === undefined ? check(value) : { error: [notWhole(wrong)] };
  };
};

/** For fastify's option `schemaController.compilersFactory`. */
export const lazyCompilers: Compilers = {
  // Its type knows no compiler but ajv's.
  buildValidator: (() => compileInput) as unknown as NonNullable<Compilers['buildValidator']>,
  buildSerializer(schemas, options) {
    let usual: ReturnType<BuildSerializer> | null = null;
    return (route) => {
      let serialize: Serialize | null = null;
      const compile = () => {
        usual ??= loadUsual()(schemas, options);
        return usual(route);
      };
      return (data) => {
        serialize ??= keepIn(serializers, route.schema, compile);
        return serialize(data);
      };
    };
  },
};
