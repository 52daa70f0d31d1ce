// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Makes a flood out of one Ethernet frame with IPv4: each packet goes to a random one of 4,096 addresses, and to the stack as if the
 * interface had received it (BPF_PROG_TEST_RUN with live frames).
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp")
int flood(struct xdp_md *frame)
{
	unsigned char *data = (void *)(long)frame->data;
	unsigned int random = bpf_get_prandom_u32();

	if (data + 34 > (unsigned char *)(long)frame->data_end)
		return XDP_ABORTED;
	/* What others send to the interface stays as it is. */
	if (data[30] == 10 && data[31] == 1) {
		data[32] = random >> 8 & 15;
		data[33] = random;
	}
	return XDP_PASS;
}

char SOURCE[] SEC("source") = SOURCE_HASH;
char LICENSE[] SEC("license") = "Dual MIT/GPL";
