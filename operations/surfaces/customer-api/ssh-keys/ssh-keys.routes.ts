import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import { type Call, type Handlers, notFound } from '../call.ts';
import { preconditionOn } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { bodyReader, idOf, pageOf, readSelection } from '../request-parts.ts';

const readCreate = bodyReader(schemas.CreateSshKeyRequest);
const readUpdate = bodyReader(schemas.UpdateSshKeyRequest);

export function sshKeyHandlers(deps: Features) {
  const { sshKeys } = deps;
  const find = async (call: Call, id: number) => {
    const key = await sshKeys.findKey(call.actor, call.tenant.id, id);
    if (key === null) throw notFound();
    return key;
  };
  const precondition = (request: FastifyRequest) => preconditionOn(request, schemas.SshKey, showSshKey);
  return {
    async listSshKeys(call, request, reply) {
      const keys = await sshKeys.listKeys(call.actor, call.tenant.id);
      const { page, pagination } = pageOf(request, reply, keys, (key) => key.id);
      return { ssh_keys: page.map(showSshKey), pagination };
    },

    async createSshKey(call, request, reply) {
      const body = readCreate(call, request);
      const { name, public_key: publicKey } = body;
      const key = await idempotent(deps.idempotency, {
        ...{ call, request, reply, body },
        run: (claim) =>
          sshKeys.addKey(call.actor, { tenantId: call.tenant.id, name, publicKey }, async (tx, { id }) =>
            claim?.bind(tx, { kind: 'ssh_key', id }),
          ),
        replay: ({ id }) => find(call, id),
      });
      reply.code(201).header('location', `/api/${call.version}/ssh-keys/${key.id}`);
      return showSshKey(key);
    },

    readSshKey: async (call, request) => showSshKey(await find(call, idOf(request))),

    async updateSshKey(call, request) {
      const { id } = await find(call, idOf(request));
      const { name } = readUpdate(call, request);
      const input = { tenantId: call.tenant.id, id, name };
      return showSshKey(await sshKeys.renameKey(call.actor, input, precondition(request)));
    },

    async deleteSshKey(call, request, reply) {
      const { id } = await find(call, idOf(request));
      readSelection(call, request);
      await sshKeys.deleteKey(call.actor, { tenantId: call.tenant.id, id }, precondition(request));
      return reply.code(204).send();
    },
  } satisfies Handlers;
}

function showSshKey(key: SshKey): schemas.SshKey {
  return {
    id: key.id,
    tenant_id: key.tenantId,
    name: key.name,
    public_key: key.publicKey,
    fingerprint: key.fingerprint,
    created_at: key.createdAt.toISOString(),
    updated_at: key.updatedAt.toISOString(),
  };
}
