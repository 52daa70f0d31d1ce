/** As the protected address sees a packet. */
export const Direction = { inbound: 0, outbound: 1 } as const;
