/** What the lists about servers of all customers share: filters by their subject, its columns, and the page around them. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type Column,
  type Content,
  link,
  pageHeader,
  refreshing,
  sendPage,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  idFilter,
  type ListFilter,
  type ListValues,
  linkColumn,
  numberOf,
  sendWantedFile,
} from '#service-kit/web/index.ts';
import { consoleFrame, type FrameOptions } from './frame.ts';

/** One server or customer, which other pages link to. */
export const subjectFilters: readonly ListFilter[] = [idFilter('server'), idFilter('tenant')];
export const subjectOf = ({ server, tenant, customer }: ListValues) => ({
  ...{ serverId: numberOf(server), tenantId: numberOf(tenant), customer },
});
/** Part of a name. */
export const customerFilter: ListFilter = { name: 'customer', label: 'Customer' };

/** The page of a list: its state, what must be known beside it, and the list; or the list's file. */
export function sendListPage(
  request: FastifyRequest,
  reply: FastifyReply,
  page: {
    title: string;
    current: FrameOptions['current'];
    state: { tone: Tone; text: string };
    notice?: Content;
    actions?: Content;
  },
  list: Content,
): FastifyReply {
  const { title, current, state, notice, actions } = page;
  const head = [pageHeader({ title, state, actions }), notice];
  return (
    sendWantedFile(request, reply, 'console') ??
    sendPage(
      reply,
      consoleFrame({ staff: request.staff!, title, current, breadcrumb: [{ label: title }] }, [
        refreshing({ id: `${current}-state`, url: request.url, everySeconds: 60 }, head),
        list,
      ]),
    )
  );
}

/** The server with its address; without a link where it has the address no more. */
export function serverCell(
  row: { serverId: number; serverName: string; isReleased: boolean },
  address: Content,
): Content {
  return [
    row.isReleased ? row.serverName : link(`/console/servers/${row.serverId}`, row.serverName),
    ' ',
    address,
  ];
}

export const customerColumn: Column<{ tenantId: number; tenantName: string }> = linkColumn(
  'tenant',
  'Customer',
  (row) => [row.tenantName, `/console/customers/${row.tenantId}`],
);
