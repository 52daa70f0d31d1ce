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

const compileInput: CompileInput = (route) => {
  let check: ReturnType<CompileInput> | null = null;
  return (value) => {
    check ??= TypeBoxValidatorCompiler(route);
    return check(value);
  };
};

/** For fastify's option `schemaController.compilersFactory`. */
export const lazyCompilers: Compilers = {
  // Its type knows no compiler but ajv's.
  buildValidator: (() => compileInput) as unknown as NonNullable<Compilers['buildValidator']>,
  buildSerializer(schemas, options) {
    let usual: ReturnType<BuildSerializer> | null = null;
    return (route) => {
      let serialize: ReturnType<ReturnType<BuildSerializer>> | null = null;
      return (data) => {
        usual ??= loadUsual()(schemas, options);
        serialize ??= usual(route);
        return serialize(data);
      };
    };
  },
};
