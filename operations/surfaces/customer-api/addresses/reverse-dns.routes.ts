import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { NamedAddress, ReverseDns } from '#operations/reverse-dns/index.ts';
import type { Call, Handler } from '../call.ts';
import { preconditionOn } from '../conditional.ts';
import { bodyOf, idOf } from '../request-parts.ts';
import { notFound } from '../select-tenant.ts';
import { compileValidator } from '../validate-input.ts';

const checkSet = compileValidator(schemas.SetReverseDnsRequest);
const checkSelection = compileValidator(schemas.SelectionRequest);

type ReverseName = NonNullable<Awaited<ReturnType<ReverseDns['findName']>>>;

/** Names of the addresses of servers. */
export function reverseDnsHandlers({
  reverseDns,
}: {
  reverseDns: ReverseDns;
}): Record<'readReverseDns' | 'setReverseDns' | 'deleteReverseDns', Handler> {
  const addressOf = (call: Call, request: FastifyRequest): NamedAddress => {
    const { address = '' } = request.params as { address?: string };
    return { tenantId: call.tenant.id, serverId: idOf(request), address };
  };
  /** A missing address is a 404 before anything is said of the body. */
  const find = async (call: Call, request: FastifyRequest) => {
    const found = await reverseDns.findName(call.actor, addressOf(call, request));
    if (found === null) throw notFound();
    return found;
  };
  const precondition = (request: FastifyRequest) =>
    preconditionOn(request, schemas.ReverseDns, showReverseDns);
  return {
    readReverseDns: async (call, request) => showReverseDns(await find(call, request)),

    async setReverseDns(call, request) {
      await find(call, request);
      const body = bodyOf(call, request);
      checkSet(body);
      const { reverse_dns: name, force: isForced = false } = body as schemas.SetReverseDnsRequest;
      const wanted = { name, isForced };
      return showReverseDns(
        await reverseDns.setName(call.actor, addressOf(call, request), wanted, precondition(request)),
      );
    },

    async deleteReverseDns(call, request, reply) {
      await find(call, request);
      checkSelection(bodyOf(call, request));
      await reverseDns.setName(call.actor, addressOf(call, request), { name: null }, precondition(request));
      return reply.code(204).send();
    },
  };
}

function showReverseDns(of: ReverseName): schemas.ReverseDns {
  return {
    server_id: of.serverId,
    tenant_id: of.tenantId,
    address: of.address,
    reverse_dns: of.name,
    status: of.status,
    changed_at: of.changedAt?.toISOString() ?? null,
  };
}
