import type { FastifyRequest } from 'fastify';
import { schemas } from '#contracts/customer-api/index.ts';
import type { Features } from '#operations/features.ts';
import type { SshKey } from '#operations/ssh-keys/index.ts';
import { type Call, type Handler, notFound } from '../call.ts';
import { preconditionOn } from '../conditional.ts';
import { idempotent } from '../idempotent.ts';
import { bodyOf, idOf, pageOf } from '../request-parts.ts';
import { compileValidator } from '../validate-input.ts';

const checkCreate = compileValidator(schemas.CreateSshKeyRequest);
const checkUpdate = compileValidator(schemas.UpdateSshKeyRequest);
const checkSelection = compileValidator(schemas.SelectionRequest);

type SshKeyHandlers = Record<
  'listSshKeys' | 'createSshKey' | 'readSshKey' | 'updateSshKey' | 'deleteSshKey',
  Handler
>;

export function sshKeyHandlers(deps: Features): SshKeyHandlers {
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
      const body = bodyOf(call, request);
      checkCreate(body);
      const { name, public_key: publicKey } = body as schemas.CreateSshKeyRequest;
      const key = await idempotent(deps.idempotency, {
        call,
        request,
        reply,
        body,
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
      const body = bodyOf(call, request);
      checkUpdate(body);
      const { name } = body as schemas.UpdateSshKeyRequest;
      const input = { tenantId: call.tenant.id, id, name };
      return showSshKey(await sshKeys.renameKey(call.actor, input, precondition(request)));
    },

    async deleteSshKey(call, request, reply) {
      const { id } = await find(call, idOf(request));
      checkSelection(bodyOf(call, request));
      await sshKeys.deleteKey(call.actor, { tenantId: call.tenant.id, id }, precondition(request));
      return reply.code(204).send();
    },
  };
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
